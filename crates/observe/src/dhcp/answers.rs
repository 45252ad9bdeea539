//! What came of each exchange, and the questions that the lab asks of a capture
//! ("CS380L lab 2").

use core::net::Ipv4Addr;
use std::collections::{BTreeSet, HashMap};

use super::model::{Answer, Event, Exchange, Lease, LeaseEnd, Report};
use super::options::duration;

/// The last lease of each client on each address.
type Leases<'a> = HashMap<(&'a str, Ipv4Addr), &'a Lease>;

/// Puts what came of each exchange into words.
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
    match (end.kind.as_str(), end.your_address) {
        ("ACK", Some(address)) => {
            let lease = leases.get(&(exchange.client.as_str(), address)).copied();
            let times = lease.map(times).unwrap_or_default();
            let is_later = |lease: &Lease| lease.granted.is_none_or(|packet| packet < end.packet);
            let renewed = lease.is_some_and(is_later);
            let how = if renewed { "has more time with" } else { "has" };
            format!("the client {how} {address}{times}")
        }
        ("ACK", None) => "the client has the parameters that it asked for".into(),
        ("NAK", _) => "refused; the client has to begin anew".into(),
        ("DECLINE", _) => "the client refused the address, as another host uses it".into(),
        _ => "the client gave its address back; no server acknowledges that".into(),
    }
}

fn unfinished(exchange: &Exchange) -> String {
    let has = |kind: &str| last(exchange, &[kind]).is_some();
    let text = match () {
        () if has("BOOTREPLY") => "an address without a lease, by BOOTP",
        () if has("REQUEST") => "no server answered the request in this capture",
        () if has("OFFER") => "the client took no offer in this capture",
        () if has("DISCOVER") => "no server made an offer in this capture",
        () if has("INFORM") => "no server answered in this capture",
        () => "nothing was granted",
    };
    text.into()
}

fn times(lease: &Lease) -> String {
    let Some(seconds) = lease.lease_s else {
        return String::new();
    };
    if seconds == u32::MAX {
        return " for ever".into();
    }
    let mut text = format!(" for {}", duration(seconds));
    if let (Some(t1), Some(t2)) = (lease.t1_s, lease.t2_s) {
        text.push_str(&format!(
            "; it asks for more time after {} (T1), and every server after {} (T2){}",
            duration(t1),
            duration(t2),
            if lease.has_default_times {
                ", as is usual"
            } else {
                ""
            }
        ));
    }
    text
}

/// The questions with what this capture answers.
pub(super) fn answers(report: &Report) -> Vec<Answer> {
    if report.messages == 0 {
        return Vec::new();
    }
    let answer = |question: &str, answer: String| Answer {
        question: question.to_owned(),
        answer,
    };
    vec![
        answer("Is DHCP carried over UDP or TCP?", transport(report)),
        answer("What is the host's link-layer address?", clients(report)),
        answer("What is the server's IP address?", servers(report)),
        answer("Which address was handed out?", addresses(report)),
        answer(
            "What is RELEASE for?",
            format!(
                "the client gives its address back before the lease runs out, so that the server \
                 may hand it to another (RFC 2131, 4.4.6); {}",
                releases(report)
            ),
        ),
        answer(
            "Does the server acknowledge RELEASE?",
            acknowledgement(report),
        ),
        answer("What if a RELEASE is lost?", loss(report)),
    ]
}

fn events(report: &Report) -> impl Iterator<Item = &Event> {
    report
        .exchanges
        .iter()
        .flat_map(|exchange| &exchange.messages)
}

fn listed(parts: BTreeSet<String>, otherwise: &str) -> String {
    match parts.is_empty() {
        true => otherwise.to_owned(),
        false => parts.into_iter().collect::<Vec<_>>().join(", "),
    }
}

fn transport(report: &Report) -> String {
    let ports: BTreeSet<String> = events(report)
        .map(|event| format!("{} to {}", event.source_port, event.destination_port))
        .collect();
    format!("UDP; here from port {}", listed(ports, "none"))
}

fn clients(report: &Report) -> String {
    let clients = report
        .exchanges
        .iter()
        .map(|exchange| exchange.client.clone());
    listed(clients.collect(), "this capture does not tell")
}

fn servers(report: &Report) -> String {
    let servers =
        events(report).filter(|event| matches!(event.kind.as_str(), "OFFER" | "ACK" | "NAK"));
    let servers = servers.map(|event| {
        let identifier = event.options.iter().find(|option| option.code == 54);
        identifier.map_or_else(|| event.source.to_string(), |option| option.value.clone())
    });
    listed(servers.collect(), "no server speaks in this capture")
}

fn addresses(report: &Report) -> String {
    let granted = report.leases.iter().filter(|lease| lease.granted.is_some());
    let granted: BTreeSet<String> = granted
        .map(|lease| format!("{} to {}", lease.address, lease.client))
        .collect();
    listed(granted, "none in this capture")
}

fn released(report: &Report) -> Vec<&Event> {
    events(report)
        .filter(|event| event.kind == "RELEASE")
        .collect()
}

fn releases(report: &Report) -> String {
    let packets: Vec<String> = released(report)
        .iter()
        .map(|event| event.packet.to_string())
        .collect();
    match packets.is_empty() {
        true => "there is none in this capture".into(),
        false => format!("here packet {}", packets.join(", ")),
    }
}

/// Whether an ACK or NAK came when the client's last message was a RELEASE. A
/// client may use one transaction id again: then an ACK behind a RELEASE answers
/// the REQUEST between them.
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

fn acknowledgement(report: &Report) -> String {
    let answered = report
        .exchanges
        .iter()
        .any(|exchange| is_release_answered(&exchange.messages));
    match (released(report).is_empty(), answered) {
        (true, _) => "no: the protocol has no answer to it (RFC 2131, 4.3.4)".into(),
        (false, false) => "no: the protocol has no answer to it (RFC 2131, 4.3.4), and none is in this capture".into(),
        (false, true) => "no: the protocol has no answer to it (RFC 2131, 4.3.4); yet a server sent one in this capture".into(),
    }
}

fn loss(report: &Report) -> String {
    let mut text =
        "the server keeps the address for the client until the lease runs out, and then \
                    may hand it to another; nothing depends on it (RFC 2131, 4.4.6)"
            .to_owned();
    let lease = report
        .leases
        .iter()
        .find(|lease| lease.end == LeaseEnd::Released);
    if let Some((lease, seconds)) = lease.and_then(|lease| Some((lease, lease.lease_s?))) {
        let how_long = duration(seconds);
        text.push_str(&format!(
            "; here {} would have stayed taken for {how_long} from its last grant",
            lease.address
        ));
    }
    text
}
