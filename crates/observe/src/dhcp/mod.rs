//! What a capture of a network says about leases of addresses: DHCP (RFC 2131)
//! and BOOTP (RFC 951) over IPv4.

mod answers;
mod bytes;
mod capture;
mod exchange;
mod frame;
mod meaning;
mod message;
mod model;
mod options;

#[cfg(test)]
mod tests;

pub use capture::{LinkType, Packet, read};
pub use frame::Checksum;
pub use meaning::Phase;
pub use model::{Answer, Event, Exchange, Lease, LeaseEnd, Offer, Problem, Repeat, Report};
pub use options::{DhcpOption, duration, name as option_name, type_name};

use std::collections::BTreeMap;

use exchange::Book;
use frame::Content;

/// Most problems that are kept; further ones are counted.
const PROBLEMS_MAX: usize = 1000;

/// Takes packets one after the other. What it needs grows with the messages of
/// DHCP among them.
#[derive(Debug, Default)]
pub struct Observer {
    packets: u64,
    begin_ns: Option<u64>,
    messages: u64,
    book: Book,
    problems: Vec<Problem>,
    problems_beyond: u64,
    fragments: u64,
    dhcp_fragments: u64,
    dhcpv6: u64,
    unknown_links: BTreeMap<u16, u64>,
}

impl Observer {
    /// Takes a packet.
    pub fn take(&mut self, packet: &Packet) {
        self.packets += 1;
        if self.begin_ns.is_none() {
            self.begin_ns = packet.time_ns;
        }
        match frame::content(packet) {
            Content::Datagram(datagram) => {
                if datagram.payload.len() < datagram.payload_length {
                    let reason = format!(
                        "cut: {} of {} bytes of the message were captured",
                        datagram.payload.len(),
                        datagram.payload_length
                    );
                    self.problem(packet.number, reason);
                }
                if datagram.checksum == Checksum::Bad {
                    self.problem(packet.number, "the checksum of UDP is wrong".into());
                }
                match message::read(datagram.payload) {
                    Ok(mut message) => {
                        self.messages += 1;
                        for reason in std::mem::take(&mut message.problems) {
                            self.problem(packet.number, reason);
                        }
                        self.book
                            .add(packet.number, packet.time_ns, &datagram, message);
                    }
                    Err(reason) => self.problem(packet.number, reason),
                }
            }
            Content::Fragment { is_dhcp } => {
                self.fragments += 1;
                if is_dhcp == Some(true) {
                    self.dhcp_fragments += 1;
                    self.problem(
                        packet.number,
                        "the first fragment of a datagram; fragments are not put together".into(),
                    );
                }
            }
            Content::Dhcpv6 => self.dhcpv6 += 1,
            Content::UnknownLink(link) => *self.unknown_links.entry(link).or_default() += 1,
            Content::Malformed(reason) => self.problem(packet.number, reason),
            Content::Other => {}
        }
    }

    /// Notes what is wrong with a packet.
    pub fn problem(&mut self, packet: u64, reason: String) {
        match self.problems.len() < PROBLEMS_MAX {
            true => self.problems.push(Problem { packet, reason }),
            false => self.problems_beyond += 1,
        }
    }

    /// Packets so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// What all of them say.
    #[must_use]
    pub fn finish(self) -> Report {
        let notes = self.notes();
        let mut report = Report {
            version: 1,
            packets: self.packets,
            begin_ns: self.begin_ns,
            messages: self.messages,
            exchanges: self.book.exchanges,
            leases: self.book.leases,
            answers: Vec::new(),
            problems: self.problems,
            notes,
        };
        for exchange in &mut report.exchanges {
            for event in &mut exchange.messages {
                let times = event.time_ns.zip(report.begin_ns);
                event.since_begin_ns =
                    times.map(|(time, begin)| time.wrapping_sub(begin).cast_signed());
            }
        }
        answers::outcomes(&mut report);
        report.answers = answers::answers(&report);
        report
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.dhcpv6 > 0 {
            notes.push(format!(
                "{} packets are of DHCPv6, which is another protocol and is not looked at",
                self.dhcpv6
            ));
        }
        if self.fragments > 0 {
            notes.push(format!(
                "{} packets are fragments of UDP datagrams ({} of them surely of DHCP); they are not \
                 put together",
                self.fragments, self.dhcp_fragments
            ));
        }
        for (link, count) in &self.unknown_links {
            notes.push(format!(
                "{count} packets have link type {link}, which is not read; capture on Ethernet, or \
                 with tcpdump -i any"
            ));
        }
        if self.problems_beyond > 0 {
            notes.push(format!(
                "{} more problems are not listed",
                self.problems_beyond
            ));
        }
        notes
    }
}

/// Reads a whole capture.
///
/// # Errors
/// If it is none, with what it is instead.
pub fn observe(file: &[u8]) -> Result<Report, String> {
    let observer = std::cell::RefCell::new(Observer::default());
    read(
        file,
        &mut |packet| observer.borrow_mut().take(&packet),
        &mut |packet, reason| observer.borrow_mut().problem(packet, reason),
    )?;
    Ok(observer.into_inner().finish())
}
