//! Takes the packets of a capture one by one, and makes a report at the end.

use std::collections::BTreeMap;

use super::exchange::Book;
use super::frame::{self, Checksum, Content, Datagram, Packet};
use super::model::{Problem, Report};
use super::{answers, message};

const PROBLEMS_MAX: usize = 1000;

/// Takes packets one by one. Memory grows with the number of DHCP messages.
#[derive(Debug, Default)]
pub struct Observer {
    report: Report,
    book: Book,
    problems_beyond: u64,
    fragments: u64,
    dhcp_fragments: u64,
    dhcpv6: u64,
    unknown_links: BTreeMap<u16, u64>,
}

impl Observer {
    pub fn take(&mut self, packet: &Packet) {
        self.report.packets += 1;
        if self.report.begin_ns.is_none() {
            self.report.begin_ns = packet.time_ns;
        }
        match frame::content(packet) {
            Ok(Content::Datagram(datagram)) => self.message(packet, *datagram),
            Ok(Content::Fragment { is_dhcp }) => {
                self.fragments += 1;
                if is_dhcp {
                    self.dhcp_fragments += 1;
                    let reason = "the first fragment of a datagram; fragments are not reassembled";
                    self.problem(packet.number, reason.into());
                }
            }
            Ok(Content::Dhcpv6) => self.dhcpv6 += 1,
            Ok(Content::UnknownLink(link)) => *self.unknown_links.entry(link).or_default() += 1,
            Ok(Content::Other) => {}
            Err(reason) => self.problem(packet.number, reason),
        }
    }

    fn message(&mut self, packet: &Packet, datagram: Datagram) {
        let mut problems = Vec::new();
        let (captured, length) = (datagram.payload.len(), datagram.payload_length);
        if captured < length {
            problems.push(format!(
                "truncated: {captured} of {length} bytes of the message were captured"
            ));
        }
        if datagram.checksum == Checksum::Bad {
            problems.push("the UDP checksum is wrong".into());
        }
        match message::read(&datagram.payload, &mut problems) {
            Ok(message) => {
                self.report.messages += 1;
                let times = packet.time_ns.zip(self.report.begin_ns);
                let since_begin = times.map(|(time, begin)| time.wrapping_sub(begin).cast_signed());
                let times = (packet.time_ns, since_begin);
                self.book.add(packet.number, times, datagram, message);
            }
            Err(reason) => problems.push(reason),
        }
        for reason in problems {
            self.problem(packet.number, reason);
        }
    }

    pub fn problem(&mut self, packet: u64, reason: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(Problem { packet, reason })
        } else {
            self.problems_beyond += 1
        }
    }

    #[must_use]
    pub fn finish(self) -> Report {
        let notes = self.notes();
        let mut report = Report {
            version: 1,
            exchanges: self.book.exchanges,
            leases: self.book.leases,
            notes,
            ..self.report
        };
        answers::outcomes(&mut report);
        report.answers = answers::answers(&report);
        report
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{what}: {count}"));
            }
        };
        note(
            self.dhcpv6,
            "packets of DHCPv6, another protocol, which is not examined",
        );
        let of_dhcp = self.dhcp_fragments;
        let fragments = format!(
            "fragments of UDP datagrams, which are not reassembled ({of_dhcp} of them certainly \
             of DHCP)"
        );
        note(self.fragments, &fragments);
        for (link, count) in &self.unknown_links {
            let unknown = format!(
                "packets with link type {link}, which is not supported (capture on Ethernet, or \
                 with tcpdump -i any)"
            );
            note(*count, &unknown);
        }
        note(
            self.problems_beyond,
            "further problems, which are not listed",
        );
        notes
    }
}
