//! The report on the leases in a capture.

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
    /// Time of the first packet, since 1970.
    pub begin_ns: Option<u64>,
    /// Number of DHCP and BOOTP messages that could be read.
    pub messages: u64,
    pub exchanges: Vec<Exchange>,
    pub leases: Vec<Lease>,
    /// Answers to the questions of "CS380L lab 2", from this capture.
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
    /// The client's identifier (option 61).
    pub client_identifier: Option<String>,
    /// The client's host name (option 12).
    pub host_name: Option<String>,
    /// The client's vendor class (option 60).
    pub vendor_class: Option<String>,
    /// The transaction id, which the client's messages and their replies carry.
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
    /// Time of the message since 1970.
    pub time_ns: Option<u64>,
    pub since_begin_ns: Option<i64>,
    /// The transport, always `UDP`: DHCP has no other.
    pub transport: &'static str,
    #[serde(flatten)]
    pub datagram: Datagram,
    pub kind: String,
    /// The purpose of a REQUEST; `None` for other messages.
    pub phase: Option<Phase>,
    pub summary: String,
    #[serde(flatten)]
    pub message: Message,
    pub repeats: Option<Repeat>,
    pub if_lost: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// Number of the packet with the first copy.
    pub packet: u64,
    /// Whether the sender sent the message again. Otherwise the network or the capture
    /// duplicated one packet.
    pub is_sent_again: bool,
}

#[derive(Debug, Serialize)]
pub struct Lease {
    pub client: String,
    pub address: Ipv4Addr,
    /// The server that granted the lease. It may be unknown if that was before the
    /// capture.
    pub server: Option<Ipv4Addr>,
    /// Link-layer address that the lease was granted from: the server's or the relay
    /// agent's.
    pub server_link: Option<String>,
    /// Packet of the ACK; `None` if the lease was granted before the capture.
    pub granted: Option<u64>,
    /// Length of the lease in seconds; 4294967295 means for ever.
    pub lease_s: Option<u32>,
    pub t1_s: Option<u32>,
    /// Seconds until the client asks every server.
    pub t2_s: Option<u32>,
    /// Whether T1 or T2 is missing from the ACK. Their defaults are a half and seven
    /// eighths of the lease (RFC 2131, 4.4.5).
    pub has_default_times: bool,
    pub renewed: Vec<u64>,
    pub end: LeaseEnd,
    pub ended: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseEnd {
    /// The lease did not end in this capture.
    Open,
    Released,
    /// The client found that another host uses the address.
    Declined,
    Refused,
}
