//! The outcome of each exchange, and the answers to the questions that "CS380L lab 2"
//! asks about a capture.

use core::net::Ipv4Addr;
use std::collections::{BTreeSet, HashMap};

use super::model::{Answer, Event, Exchange, Lease, LeaseEnd, Report};
use super::options::duration;

type Leases<'a> = HashMap<(&'a str, Ipv4Addr), &'a Lease>;

pub(super) fn outcomes(report: &mut Report) {
    let leases: Leases = report
        .leases
        .iter()
        .map(|lease| ((lease.client.as_str(), lease.address), lease))
        .collect();
    for exchange in &mut report.exchanges {
        exchange.outcome = outcome(exchange, &leases);
    }
}

fn last<'a>(exchange: &'a Exchange, kinds: &[&str]) -> Option<&'a Event> {
    let is_wanted = |event: &&Event| kinds.contains(&event.kind.as_str());
    exchange.messages.iter().rev().find(is_wanted)
}

fn outcome(exchange: &Exchange, leases: &Leases) -> String {
    let ends = ["ACK", "NAK", "DECLINE", "RELEASE"];
    let Some(end) = last(exchange, &ends) else {
        return unfinished(exchange);
    };
    match (end.kind.as_str(), end.message.your_address) {
        ("ACK", Some(address)) => {
            let lease = leases.get(&(exchange.client.as_str(), address)).copied();
            let times = lease.map(times).unwrap_or_default();
            let is_later = |lease: &Lease| lease.granted.is_none_or(|packet| packet < end.packet);
            let renewed = lease.is_some_and(is_later);
            let how = if renewed { "renewed" } else { "has" };
            format!("the client {how} {address}{times}")
        }
        ("ACK", None) => "the client has the parameters that it asked for".into(),
        ("NAK", _) => "refused; the client must start over".into(),
        ("DECLINE", _) => "the client refused the address because another host uses it".into(),
        _ => "the client gave its address back; no server acknowledges that".into(),
    }
}

fn unfinished(exchange: &Exchange) -> String {
    let by_kind = [
        ("BOOTREPLY", "an address without a lease, by BOOTP"),
        ("REQUEST", "no server answered the request in this capture"),
        ("OFFER", "the client took no offer in this capture"),
        ("DISCOVER", "no server made an offer in this capture"),
        ("INFORM", "no server answered in this capture"),
    ];
    let mut found = by_kind
        .iter()
        .filter(|(kind, _)| last(exchange, &[kind]).is_some());
    found
        .next()
        .map_or("nothing was granted", |(_, words)| words)
        .into()
}

fn times(lease: &Lease) -> String {
    let Some(seconds) = lease.lease_s else {
        return String::new();
    };
    if seconds == u32::MAX {
        return " for ever".into();
    }
    let mut text = format!(" for {}", duration(seconds));
    let usual = if lease.has_default_times {
        ", which are the defaults"
    } else {
        ""
    };
    if let (Some(t1), Some(t2)) = (lease.t1_s, lease.t2_s) {
        text.push_str(&format!(
            "; it asks for more time after {} (T1), and every server after {} (T2){}",
            duration(t1),
            duration(t2),
            usual
        ));
    }
    text
}

pub(super) fn answers(report: &Report) -> Vec<Answer> {
    if report.messages == 0 {
        return Vec::new();
    }
    let exchanges = &report.exchanges;
    let events = || exchanges.iter().flat_map(|exchange| &exchange.messages);
    let ports = events().map(|event| {
        let way = &event.datagram;
        format!("{} to {}", way.source_port, way.destination_port)
    });
    let clients = exchanges.iter().map(|exchange| exchange.client.clone());
    let servers = events().filter(|event| matches!(event.kind.as_str(), "OFFER" | "ACK" | "NAK"));
    let servers = servers.map(|event| match event.message.option(54) {
        Some(identifier) => identifier.value.clone(),
        None => event.datagram.source.to_string(),
    });
    let granted = report.leases.iter().filter(|lease| lease.granted.is_some());
    let granted = granted.map(|lease| format!("{} to {}", lease.address, lease.client));
    let releases = events().filter(|event| event.kind == "RELEASE");
    let releases: Vec<String> = releases.map(|event| event.packet.to_string()).collect();
    let released = if releases.is_empty() {
        "there is none in this capture".into()
    } else {
        format!("here packet {}", releases.join(", "))
    };
    let is_answered = exchanges
        .iter()
        .any(|exchange| is_release_answered(&exchange.messages));
    let acknowledged = match (releases.is_empty(), is_answered) {
        (true, _) => "",
        (false, false) => ", and none is in this capture",
        (false, true) => "; yet a server sent one in this capture",
    };
    let answer = |question, answer| Answer { question, answer };
    vec![
        answer(
            "Is DHCP carried over UDP or TCP?",
            format!("UDP; here from port {}", listed(ports, "none")),
        ),
        answer(
            "What is the host's link-layer address?",
            listed(clients, "not in this capture"),
        ),
        answer(
            "What is the server's IP address?",
            listed(servers, "no server appears in this capture"),
        ),
        answer(
            "Which address was handed out?",
            listed(granted, "none in this capture"),
        ),
        answer(
            "What is RELEASE for?",
            format!(
                "the client gives its address back before the lease runs out, so that the server \
                 may hand it to another (RFC 2131, 4.4.6); {released}"
            ),
        ),
        answer(
            "Does the server acknowledge RELEASE?",
            format!("no: the protocol has no answer to it (RFC 2131, 4.3.4){acknowledged}"),
        ),
        answer("What if a RELEASE is lost?", loss(report)),
    ]
}

/// Lists each distinct part once, in order. Returns `otherwise` if there are none.
fn listed(parts: impl Iterator<Item = String>, otherwise: &str) -> String {
    let parts: BTreeSet<String> = parts.collect();
    if parts.is_empty() {
        otherwise.to_owned()
    } else {
        parts.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// Returns whether an ACK or NAK came when the client's last message was a RELEASE. A
/// client may reuse a transaction id: an ACK after a RELEASE then answers the REQUEST
/// between them.
fn is_release_answered(messages: &[Event]) -> bool {
    let mut last_of_client = "";
    messages.iter().any(|event| match event.kind.as_str() {
        "ACK" | "NAK" => last_of_client == "RELEASE",
        "OFFER" => false,
        kind => {
            last_of_client = kind;
            false
        }
    })
}

fn loss(report: &Report) -> String {
    let mut leases = report.leases.iter();
    let released = leases.find(|lease| lease.end == LeaseEnd::Released);
    let example = released.and_then(|lease| {
        let how_long = duration(lease.lease_s?);
        let address = lease.address;
        Some(format!(
            "; here {address} would have stayed taken for {how_long} from its last grant"
        ))
    });
    "the server keeps the address for the client until the lease runs out, and then may hand it to \
     another; nothing depends on it (RFC 2131, 4.4.6)"
        .to_owned()
        + &example.unwrap_or_default()
}
