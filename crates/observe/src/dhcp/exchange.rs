//! From messages to exchanges and leases.

use core::net::Ipv4Addr;
use std::collections::HashMap;

use super::frame::Datagram;
use super::meaning::{self, Phase};
use super::message::Message;
use super::model::{Event, Exchange, Lease, LeaseEnd, Offer, Repeat};

/// Exchanges and leases so far.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub exchanges: Vec<Exchange>,
    pub leases: Vec<Lease>,
    /// The newest exchange of a client and a number.
    newest: HashMap<(String, u32), Place>,
    /// The newest lease of a client on an address.
    held: HashMap<(String, Ipv4Addr), usize>,
    /// Packets that carried a message, without the seconds in it, and their
    /// identification of IP.
    seen: HashMap<Vec<u8>, (u64, u16)>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    index: usize,
    /// A server has granted or refused, so that what the client says next is
    /// another matter.
    is_decided: bool,
    /// The address that its last REQUEST was about.
    asked: Option<Ipv4Addr>,
}

fn given(address: Ipv4Addr) -> Option<Ipv4Addr> {
    (!address.is_unspecified()).then_some(address)
}

impl Book {
    /// Takes a message in.
    pub fn add(
        &mut self,
        packet: u64,
        time_ns: Option<u64>,
        datagram: &Datagram,
        message: Message,
    ) {
        let repeats = self.repeat(packet, datagram);
        let phase = meaning::phase(&message, datagram.destination.is_broadcast());
        let index = self.place(&message, repeats.is_some());
        if repeats.is_none() {
            self.account(packet, datagram, &message);
        }
        let exchange = &mut self.exchanges[index];
        let words = |code: u8| message.words_of(code).map(str::to_owned);
        if !message.is_reply {
            exchange.client_identifier = words(61).or(exchange.client_identifier.take());
            exchange.host_name = words(12).or(exchange.host_name.take());
            exchange.vendor_class = words(60).or(exchange.vendor_class.take());
        }
        if message.kind() == Some(2) {
            let offer = Offer {
                address: message.your,
                server: message.address_of(54),
            };
            if !exchange
                .offers
                .iter()
                .rev()
                .take(8)
                .any(|known| *known == offer)
            {
                exchange.offers.push(offer);
            }
        }
        exchange
            .messages
            .push(event(packet, time_ns, datagram, message, phase, repeats));
    }

    fn repeat(&mut self, packet: u64, datagram: &Datagram) -> Option<Repeat> {
        let mut payload = datagram.payload.to_vec();
        // Seconds since the client began; they grow from one try to the next.
        if let Some(seconds) = payload.get_mut(8..10) {
            seconds.fill(0);
        }
        // The same words to another are another message.
        payload.extend_from_slice(&datagram.destination.octets());
        let identification = datagram.identification;
        let (first, of_first) = *self.seen.entry(payload).or_insert((packet, identification));
        (first != packet).then_some(Repeat {
            packet: first,
            is_sent_again: identification == 0 || identification != of_first,
        })
    }

    /// The exchange that a message belongs to.
    fn place(&mut self, message: &Message, is_repeat: bool) -> usize {
        let key = (message.hardware.clone(), message.xid);
        let is_ending = matches!(message.kind(), Some(4 | 7));
        let is_more = message.is_reply || is_repeat || is_ending;
        let known = self.newest.get(&key).copied();
        let known = known.filter(|place| is_more || !place.is_decided);
        let index = match known {
            Some(place) => place.index,
            None => {
                self.exchanges.push(Exchange {
                    client: message.hardware.clone(),
                    client_identifier: None,
                    host_name: None,
                    vendor_class: None,
                    xid: format!("0x{:08x}", message.xid),
                    messages: Vec::new(),
                    offers: Vec::new(),
                    outcome: String::new(),
                });
                self.exchanges.len() - 1
            }
        };
        let is_decision = message.is_reply && matches!(message.kind(), Some(5 | 6));
        let is_request = !message.is_reply && message.kind() == Some(3);
        let place = Place {
            index,
            is_decided: is_decision || known.is_some_and(|place| place.is_decided),
            asked: match is_request {
                true => message.address_of(50).or(given(message.client)),
                false => known.and_then(|place| place.asked),
            },
        };
        self.newest.insert(key, place);
        index
    }

    fn account(&mut self, packet: u64, datagram: &Datagram, message: &Message) {
        let client = &message.hardware;
        match (message.is_reply, message.kind()) {
            (true, Some(5)) if !message.your.is_unspecified() => {
                self.grant(packet, datagram, message);
            }
            (true, Some(6)) => {
                // It refuses what the client asked for, which is in an earlier
                // message of the same exchange.
                let key = (client.clone(), message.xid);
                if let Some(address) = self.newest.get(&key).and_then(|place| place.asked) {
                    self.end(packet, client, address, LeaseEnd::Refused, message, false);
                }
            }
            (false, Some(4)) => {
                if let Some(address) = message.address_of(50) {
                    self.end(packet, client, address, LeaseEnd::Declined, message, true);
                }
            }
            (false, Some(7)) if !message.client.is_unspecified() => {
                self.end(
                    packet,
                    client,
                    message.client,
                    LeaseEnd::Released,
                    message,
                    true,
                );
            }
            _ => {}
        }
    }

    fn grant(&mut self, packet: u64, datagram: &Datagram, message: &Message) {
        let key = (message.hardware.clone(), message.your);
        let lease_s = message.seconds_of(51);
        let share = |eighths: u64| {
            // For ever has no part.
            let whole = lease_s.filter(|seconds| *seconds != u32::MAX)?;
            u32::try_from(u64::from(whole) * eighths / 8).ok()
        };
        let (t1, t2) = (message.seconds_of(58), message.seconds_of(59));
        let known = self.held.get(&key).copied();
        let known = known.filter(|index| self.leases[*index].end == LeaseEnd::Open);
        let index = match known {
            Some(index) => {
                self.leases[index].renewed.push(packet);
                index
            }
            None => {
                self.leases
                    .push(unknown_lease(&message.hardware, message.your));
                self.leases.len() - 1
            }
        };
        let lease = &mut self.leases[index];
        if known.is_none() {
            lease.granted = Some(packet);
        }
        lease.server = message.address_of(54).or(lease.server);
        lease.server_link.clone_from(&datagram.source_link);
        lease.lease_s = lease_s;
        lease.t1_s = t1.or_else(|| share(4));
        lease.t2_s = t2.or_else(|| share(7));
        lease.has_default_times = (t1.is_none() || t2.is_none()) && lease.t1_s.is_some();
        self.held.insert(key, index);
    }

    /// Ends a lease; one of before the capture is noted if it is surely one.
    fn end(
        &mut self,
        packet: u64,
        client: &str,
        address: Ipv4Addr,
        end: LeaseEnd,
        message: &Message,
        is_lease: bool,
    ) {
        let key = (client.to_owned(), address);
        let known = self.held.get(&key).copied();
        let known = known.filter(|index| self.leases[*index].end == LeaseEnd::Open);
        let index = match known {
            Some(index) => index,
            None if is_lease => {
                let mut lease = unknown_lease(client, address);
                lease.server = message.address_of(54);
                self.leases.push(lease);
                self.leases.len() - 1
            }
            None => return,
        };
        self.leases[index].end = end;
        self.leases[index].ended = Some(packet);
        self.held.insert(key, index);
    }
}

fn unknown_lease(client: &str, address: Ipv4Addr) -> Lease {
    Lease {
        client: client.to_owned(),
        address,
        server: None,
        server_link: None,
        granted: None,
        lease_s: None,
        t1_s: None,
        t2_s: None,
        has_default_times: false,
        renewed: Vec::new(),
        end: LeaseEnd::Open,
        ended: None,
    }
}

fn event(
    packet: u64,
    time_ns: Option<u64>,
    datagram: &Datagram,
    message: Message,
    phase: Option<Phase>,
    repeats: Option<Repeat>,
) -> Event {
    Event {
        packet,
        time_ns,
        since_begin_ns: None,
        transport: "UDP",
        source_link: datagram.source_link.clone(),
        destination_link: datagram.destination_link.clone(),
        vlans: datagram.vlans.clone(),
        source: datagram.source,
        source_port: datagram.source_port,
        destination: datagram.destination,
        destination_port: datagram.destination_port,
        checksum: datagram.checksum,
        kind: meaning::name(&message),
        phase,
        summary: meaning::summary(&message, phase),
        if_lost: meaning::if_lost(&message, phase),
        client_address: given(message.client),
        your_address: given(message.your),
        next_server: given(message.next_server),
        relay: given(message.relay),
        hops: message.hops,
        seconds: message.seconds,
        wants_broadcast: message.wants_broadcast,
        server_name: message.server_name,
        boot_file: message.boot_file,
        options: message.options,
        repeats,
    }
}
