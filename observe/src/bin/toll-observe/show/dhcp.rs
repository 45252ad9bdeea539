//! Shows address leases as timelines.

use std::collections::BTreeSet;

use jiff::Timestamp;
use toll_document::{Document, Paint, heading, notes, paragraph, paragraphs, plural, section};
use toll_observe::dhcp::{Checksum, Event, Exchange, Lease, LeaseEnd, Message, Report, duration};

/// Codes of options whose content is already in the line of a message.
const SAID: [u8; 2] = [53, 255];

/// Returns the report for a terminal on the leases in a capture. `of` is the capture's
/// name.
pub fn of_report(report: &Report, of: &str) -> Document {
    let mut head = heading(&format!("dhcp: {of}"));
    let begin = report
        .begin_ns
        .and_then(|ns| Timestamp::from_nanosecond(ns.into()).ok());
    let begin = begin.map(|begin| format!(", from {}", begin.strftime("%Y-%m-%d %H:%M:%S UTC")));
    let line = format!(
        "{}, {} of DHCP, {}{}",
        plural(report.packets as usize, "packet"),
        plural(report.messages as usize, "message"),
        plural(report.exchanges.len(), "exchange"),
        begin.unwrap_or_default()
    );
    head += paragraph(&line, 0, Paint::Plain);
    let leases = report.leases.iter();
    let leases = paragraphs(leases.map(lease), 0, Paint::Plain);
    let answers = report.answers.iter().map(|answer| {
        paragraph(answer.question, 0, Paint::Bold) + paragraph(&answer.answer, 2, Paint::Plain)
    });
    let problems = report
        .problems
        .iter()
        .map(|problem| format!("packet {}: {}", problem.packet, problem.reason));
    let problems = paragraphs(problems, 0, Paint::Red);
    let exchanges = report.exchanges.iter().map(exchange);
    let sections = std::iter::once(head).chain(exchanges).chain([
        section("Leases", leases),
        section("Questions", answers.collect()),
        section("Wrong packets", problems),
    ]);
    Document::sections(sections) + notes(&report.notes, Paint::Yellow)
}

fn exchange(exchange: &Exchange) -> Document {
    let mut about = vec![format!("number {}", exchange.xid)];
    let known = [
        ("host name", &exchange.host_name),
        ("vendor class", &exchange.vendor_class),
        ("identifier", &exchange.client_identifier),
    ];
    for (name, value) in known {
        about.extend(value.as_ref().map(|value| format!("{name} {value}")));
    }
    let title = format!("client {}", exchange.client);
    let mut text = heading(&title);
    text += paragraph(about.join(", "), 0, Paint::Dim);
    let mut shown = BTreeSet::new();
    for event in &exchange.messages {
        let is_new = event.repeats.is_none() && shown.insert((&event.kind, event.if_lost));
        text += message(event, is_new);
    }
    let outcome = format!("→ {}", exchange.outcome);
    text + paragraph(&outcome, 0, Paint::Green)
}

fn message(event: &Event, is_new: bool) -> Document {
    let since = match event.since_begin_ns {
        Some(since) => format!("{:+.6} s", since as f64 / 1e9),
        None => "without a time".into(),
    };
    let line = format!(
        "{since}  packet {}  {}: {}",
        event.packet, event.kind, event.summary
    );
    let mut text = paragraph(&line, 0, Paint::Bold);
    text += paragraph(way(event), 4, Paint::Plain);
    if let Some(repeat) = event.repeats {
        let why = if repeat.is_sent_again {
            "sent again: the same as packet"
        } else {
            "duplicated by the network or the capture: the same as packet"
        };
        let line = format!("{why} {}", repeat.packet);
        text += paragraph(&line, 4, Paint::Yellow);
        return text;
    }
    let fields = fields(&event.message);
    if !fields.is_empty() {
        text += paragraph(fields.join(", "), 4, Paint::Plain);
    }
    for option in event
        .message
        .options
        .iter()
        .filter(|option| !SAID.contains(&option.code))
    {
        let line = format!("{}: {}", option.name, option.value);
        text += paragraph(&line, 4, Paint::Dim);
    }
    if is_new {
        let line = format!("if it is lost, {}", event.if_lost);
        text += paragraph(&line, 4, Paint::Plain);
    }
    text
}

/// Formats the source and destination of a message.
fn way(event: &Event) -> String {
    let way = &event.datagram;
    let end = |address: &dyn std::fmt::Display, port: u16, link: &Option<String>| match link {
        Some(link) => format!("{address}:{port} ({link})"),
        None => format!("{address}:{port}"),
    };
    let mut text = format!(
        "{} from {} to {}",
        event.transport,
        end(&way.source, way.source_port, &way.source_link),
        end(
            &way.destination,
            way.destination_port,
            &way.destination_link
        )
    );
    for vlan in &way.vlans {
        text.push_str(&format!(", VLAN {vlan}"));
    }
    text.push_str(match way.checksum {
        Checksum::Good | Checksum::Unknown => "",
        Checksum::None => ", without a checksum",
        Checksum::Offloaded => ", checksum left to the network card",
        Checksum::Bad => ", wrong checksum",
    });
    text
}

fn fields(message: &Message) -> Vec<String> {
    let mut fields = Vec::new();
    let addresses = [
        ("client's address", message.client_address),
        ("address for the client", message.your_address),
        ("next server", message.next_server),
        ("relay agent", message.relay),
    ];
    for (name, address) in addresses {
        fields.extend(address.map(|address| format!("{name} {address}")));
    }
    if message.hops > 0 {
        fields.push(plural(message.hops.into(), "hop"));
    }
    if message.seconds > 0 {
        fields.push(format!("{} s after the client began", message.seconds));
    }
    if message.wants_broadcast {
        fields.push("the client asks for broadcast answers".into());
    }
    let texts = [
        ("server's name", &message.server_name),
        ("boot file", &message.boot_file),
    ];
    for (name, text) in texts {
        fields.extend(text.as_ref().map(|text| format!("{name} {text}")));
    }
    fields
}

fn lease(lease: &Lease) -> String {
    let mut text = format!("{} for {}", lease.address, lease.client);
    if let Some(server) = lease.server {
        text.push_str(&format!(", from {server}"));
    }
    if let Some(link) = &lease.server_link {
        text.push_str(&format!(" ({link})"));
    }
    match lease.granted {
        Some(packet) => text.push_str(&format!(", granted by packet {packet}")),
        None => text.push_str(", granted before the capture"),
    }
    match lease.lease_s {
        Some(u32::MAX) => text.push_str(" for ever"),
        Some(seconds) => text.push_str(&format!(" for {}", duration(seconds))),
        None => {}
    }
    if let (Some(t1), Some(t2)) = (lease.t1_s, lease.t2_s) {
        text.push_str(&format!(" (T1 {}, T2 {})", duration(t1), duration(t2)));
    }
    if !lease.renewed.is_empty() {
        let packets: Vec<String> = lease.renewed.iter().map(u64::to_string).collect();
        text.push_str(&format!(", renewed by packet {}", packets.join(", ")));
    }
    let ended = match (lease.end, lease.ended) {
        (LeaseEnd::Released, Some(packet)) => format!(", given back by packet {packet}"),
        (LeaseEnd::Declined, Some(packet)) => format!(", declined by packet {packet}"),
        (LeaseEnd::Refused, Some(packet)) => format!(", refused by packet {packet}"),
        _ => ", open at the capture's end".into(),
    };
    text + &ended
}
