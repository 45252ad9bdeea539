//! What a capture says about leases.

use core::net::Ipv4Addr;

use serde::Serialize;

use super::frame::Datagram;
use super::meaning::Phase;
use super::message::Message;

#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Of this document: 1.
    pub version: u32,
    pub packets: u64,
    /// When the first packet was captured, since 1970.
    pub begin_ns: Option<u64>,
    /// Messages of DHCP and BOOTP that could be read.
    pub messages: u64,
    pub exchanges: Vec<Exchange>,
    pub leases: Vec<Lease>,
    /// What the lab asked, answered from this capture.
    pub answers: Vec<Answer>,
    /// Packets that are not what they say, or could not be read.
    pub problems: Vec<Problem>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Answer {
    pub question: &'static str,
    pub answer: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub packet: u64,
    pub reason: String,
}

#[derive(Debug, Default, Serialize)]
pub struct Exchange {
    /// The client's link-layer address, as its messages have it.
    pub client: String,
    /// Option 61.
    pub client_identifier: Option<String>,
    /// Option 12.
    pub host_name: Option<String>,
    /// Option 60.
    pub vendor_class: Option<String>,
    /// The number that its messages and their answers carry.
    pub xid: String,
    pub messages: Vec<Event>,
    pub offers: Vec<Offer>,
    pub outcome: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub address: Ipv4Addr,
    pub server: Option<Ipv4Addr>,
}

#[derive(Debug, Serialize)]
pub struct Event {
    /// The packet's number in the capture, from 1.
    pub packet: u64,
    /// Since 1970.
    pub time_ns: Option<u64>,
    pub since_begin_ns: Option<i64>,
    /// `UDP`: DHCP has no other transport.
    pub transport: &'static str,
    #[serde(flatten)]
    pub datagram: Datagram,
    pub kind: String,
    /// Of a REQUEST: what it asks for.
    pub phase: Option<Phase>,
    pub summary: String,
    #[serde(flatten)]
    pub message: Message,
    pub repeats: Option<Repeat>,
    pub if_lost: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// The packet of the first one.
    pub packet: u64,
    /// Its sender sent it again; otherwise the network or the capture doubled
    /// one packet.
    pub is_sent_again: bool,
}

#[derive(Debug, Serialize)]
pub struct Lease {
    pub client: String,
    pub address: Ipv4Addr,
    /// Who granted it; unknown if that was before the capture.
    pub server: Option<Ipv4Addr>,
    /// Link-layer address that the grant came from: the server's, or the relay
    /// agent's.
    pub server_link: Option<String>,
    /// Packet of the ACK; none if that was before the capture.
    pub granted: Option<u64>,
    /// 4294967295 is for ever.
    pub lease_s: Option<u32>,
    pub t1_s: Option<u32>,
    /// When it asks every server.
    pub t2_s: Option<u32>,
    /// T1 or T2 were not in the ACK and are a half and seven eighths of the
    /// lease (RFC 2131, 4.4.5).
    pub has_default_times: bool,
    pub renewed: Vec<u64>,
    pub end: LeaseEnd,
    pub ended: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseEnd {
    /// It has not in this capture.
    Open,
    Released,
    /// The client found that another host uses the address.
    Declined,
    Refused,
}
