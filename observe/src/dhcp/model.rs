//! What a capture says about leases.

use core::net::Ipv4Addr;

use serde::Serialize;

use super::frame::Datagram;
use super::meaning::Phase;
use super::message::Message;

#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Version of this document: 1.
    pub version: u32,
    pub packets: u64,
    /// When the first packet was captured, since 1970.
    pub begin_ns: Option<u64>,
    /// DHCP and BOOTP messages that could be read.
    pub messages: u64,
    pub exchanges: Vec<Exchange>,
    pub leases: Vec<Lease>,
    /// Answers to the lab's questions, from this capture.
    pub answers: Vec<Answer>,
    /// Packets that are malformed, or could not be read.
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
    /// The client's link-layer address, as in its messages.
    pub client: String,
    /// Option 61.
    pub client_identifier: Option<String>,
    /// Option 12.
    pub host_name: Option<String>,
    /// Option 60.
    pub vendor_class: Option<String>,
    /// The number that its messages and their replies carry.
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
    /// Time since 1970.
    pub time_ns: Option<u64>,
    pub since_begin_ns: Option<i64>,
    /// `UDP`: DHCP has no other transport.
    pub transport: &'static str,
    #[serde(flatten)]
    pub datagram: Datagram,
    pub kind: String,
    /// For a REQUEST: what it asks for.
    pub phase: Option<Phase>,
    pub summary: String,
    #[serde(flatten)]
    pub message: Message,
    pub repeats: Option<Repeat>,
    pub if_lost: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// The packet of the first copy.
    pub packet: u64,
    /// The sender sent it again; otherwise the network or the capture duplicated one
    /// packet.
    pub is_sent_again: bool,
}

#[derive(Debug, Serialize)]
pub struct Lease {
    pub client: String,
    pub address: Ipv4Addr,
    /// The server that granted it; may be unknown if that was before the capture.
    pub server: Option<Ipv4Addr>,
    /// Link-layer address that the grant came from: the server's or the relay agent's.
    pub server_link: Option<String>,
    /// Packet of the ACK; `None` if that was before the capture.
    pub granted: Option<u64>,
    /// 4294967295 means for ever.
    pub lease_s: Option<u32>,
    pub t1_s: Option<u32>,
    /// When the client asks every server.
    pub t2_s: Option<u32>,
    /// T1 or T2 were missing from the ACK, and are a half and seven eighths of the lease
    /// (RFC 2131, 4.4.5).
    pub has_default_times: bool,
    pub renewed: Vec<u64>,
    pub end: LeaseEnd,
    pub ended: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseEnd {
    /// It did not end in this capture.
    Open,
    Released,
    /// The client found that another host uses the address.
    Declined,
    Refused,
}
