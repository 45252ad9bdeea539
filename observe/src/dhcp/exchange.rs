//! Groups messages into exchanges and leases.

use core::net::Ipv4Addr;
use std::collections::HashMap;

use super::frame::Datagram;
use super::meaning;
use super::message::Message;
use super::model::{Event, Exchange, Lease, LeaseEnd, Offer, Repeat};

#[derive(Debug, Default)]
pub(super) struct Book {
    pub exchanges: Vec<Exchange>,
    pub leases: Vec<Lease>,
    newest: HashMap<(String, u32), Place>,
    held: HashMap<(String, Ipv4Addr), usize>,
    /// Packet number and IP identification of each message that was seen. The key is
    /// the message without its field of elapsed seconds.
    seen: HashMap<Vec<u8>, (u64, u16)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    index: usize,
    /// Whether a server has granted or refused, so that the client's next message
    /// belongs to another exchange.
    is_decided: bool,
    asked: Option<Ipv4Addr>,
}

impl Book {
    pub fn add(
        &mut self,
        packet: u64,
        since: (Option<u64>, Option<i64>),
        mut datagram: Datagram,
        message: Message,
    ) {
        let repeats = self.repeat(packet, &mut datagram);
        let phase = meaning::phase(&message, datagram.destination.is_broadcast());
        let index = self.place(&message, repeats.is_some());
        if repeats.is_none() {
            self.account(packet, &datagram, &message);
        }
        let exchange = &mut self.exchanges[index];
        let words = |code: u8| message.option(code).map(|option| option.value.clone());
        if !message.is_reply {
            exchange.client_identifier = words(61).or(exchange.client_identifier.take());
            exchange.host_name = words(12).or(exchange.host_name.take());
            exchange.vendor_class = words(60).or(exchange.vendor_class.take());
        }
        if message.kind() == Some(2) {
            let offer = Offer {
                address: message.your_address.unwrap_or(Ipv4Addr::UNSPECIFIED),
                server: message.address_of(54),
            };
            // Few servers answer a client. A capture with very many offers is hostile.
            let mut newest = exchange.offers.iter().rev().take(8);
            if newest.all(|known| *known != offer) {
                exchange.offers.push(offer);
            }
        }
        let (summary, if_lost) = meaning::meaning(&message, phase);
        exchange.messages.push(Event {
            packet,
            time_ns: since.0,
            since_begin_ns: since.1,
            transport: "UDP",
            datagram,
            kind: meaning::name(&message),
            phase,
            summary,
            if_lost,
            message,
            repeats,
        });
    }

    fn repeat(&mut self, packet: u64, datagram: &mut Datagram) -> Option<Repeat> {
        let mut payload = std::mem::take(&mut datagram.payload);
        // Ignores the seconds since the client began, which grow with each retry.
        if let Some(seconds) = payload.get_mut(8..10) {
            seconds.fill(0);
        }
        // The same content for another destination is another message.
        payload.extend_from_slice(&datagram.destination.octets());
        let identification = datagram.identification;
        let (first, of_first) = *self.seen.entry(payload).or_insert((packet, identification));
        (first != packet).then_some(Repeat {
            packet: first,
            is_sent_again: identification == 0 || identification != of_first,
        })
    }

    fn place(&mut self, message: &Message, is_repeat: bool) -> usize {
        let key = (message.hardware.clone(), message.xid);
        let is_ending = matches!(message.kind(), Some(4 | 7));
        let is_more = message.is_reply || is_repeat || is_ending;
        let known = self.newest.get(&key).copied();
        let known = known.filter(|place| is_more || !place.is_decided);
        let mut place = known.unwrap_or_else(|| {
            self.exchanges.push(Exchange {
                client: message.hardware.clone(),
                xid: format!("0x{:08x}", message.xid),
                ..Exchange::default()
            });
            Place {
                index: self.exchanges.len() - 1,
                ..Place::default()
            }
        });
        match (message.is_reply, message.kind()) {
            (true, Some(5 | 6)) => place.is_decided = true,
            (false, Some(3)) => place.asked = message.address_of(50).or(message.client_address),
            _ => {}
        }
        self.newest.insert(key, place);
        place.index
    }

    fn account(&mut self, packet: u64, datagram: &Datagram, message: &Message) {
        match (message.is_reply, message.kind()) {
            (true, Some(5)) => {
                if let Some(address) = message.your_address {
                    self.grant(packet, address, datagram, message);
                }
            }
            (true, Some(6)) => {
                // The refused address is in an earlier message of the same exchange. Only
                // a known lease ends: whether the client had one before the capture is
                // uncertain.
                let key = (message.hardware.clone(), message.xid);
                let asked = self.newest.get(&key).and_then(|place| place.asked);
                let asked = asked.filter(|address| self.open(message, *address).is_some());
                self.end(packet, asked, LeaseEnd::Refused, message);
            }
            (false, Some(4)) => {
                self.end(packet, message.address_of(50), LeaseEnd::Declined, message);
            }
            (false, Some(7)) => {
                self.end(packet, message.client_address, LeaseEnd::Released, message);
            }
            _ => {}
        }
    }

    fn open(&self, message: &Message, address: Ipv4Addr) -> Option<usize> {
        let held = self.held.get(&(message.hardware.clone(), address)).copied();
        held.filter(|index| self.leases[*index].end == LeaseEnd::Open)
    }

    /// Returns the client's open lease of an address, or begins a new lease.
    fn lease(&mut self, message: &Message, address: Ipv4Addr) -> &mut Lease {
        let index = self.open(message, address).unwrap_or(self.leases.len());
        if index == self.leases.len() {
            self.held.insert((message.hardware.clone(), address), index);
            self.leases.push(Lease {
                client: message.hardware.clone(),
                address,
                server: message.address_of(54),
                server_link: None,
                granted: None,
                lease_s: None,
                t1_s: None,
                t2_s: None,
                has_default_times: false,
                renewed: Vec::new(),
                end: LeaseEnd::Open,
                ended: None,
            });
        }
        &mut self.leases[index]
    }

    fn grant(&mut self, packet: u64, address: Ipv4Addr, datagram: &Datagram, message: &Message) {
        let is_known = self.open(message, address).is_some();
        let lease_s = message.seconds_of(51);
        let share = |eighths: u64| {
            // An infinite lease has no renewal times.
            let whole = lease_s.filter(|seconds| *seconds != u32::MAX)?;
            u32::try_from(u64::from(whole) * eighths / 8).ok()
        };
        let (t1, t2) = (message.seconds_of(58), message.seconds_of(59));
        let lease = self.lease(message, address);
        if is_known {
            lease.renewed.push(packet)
        } else {
            lease.granted = Some(packet)
        }
        lease.server = message.address_of(54).or(lease.server);
        lease.server_link.clone_from(&datagram.source_link);
        lease.lease_s = lease_s;
        lease.t1_s = t1.or_else(|| share(4));
        lease.t2_s = t2.or_else(|| share(7));
        lease.has_default_times = (t1.is_none() || t2.is_none()) && lease.t1_s.is_some();
    }

    /// Ends a lease, even one that was granted before the capture.
    fn end(&mut self, packet: u64, address: Option<Ipv4Addr>, end: LeaseEnd, message: &Message) {
        if let Some(address) = address {
            let lease = self.lease(message, address);
            lease.end = end;
            lease.ended = Some(packet);
        }
    }
}
