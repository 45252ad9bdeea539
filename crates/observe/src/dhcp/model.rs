//! What a capture says about leases.

use core::net::Ipv4Addr;

use serde::Serialize;

use super::frame::Checksum;
use super::meaning::Phase;
use super::options::DhcpOption;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Of this document: 1.
    pub version: u32,
    /// Packets of the capture.
    pub packets: u64,
    /// When the first of them was captured, in nanoseconds since 1970.
    pub begin_ns: Option<u64>,
    /// Messages of DHCP and BOOTP that could be read.
    pub messages: u64,
    /// The clients' exchanges with servers, by their first message.
    pub exchanges: Vec<Exchange>,
    /// What became of each address that was granted.
    pub leases: Vec<Lease>,
    /// What the lab asked, answered from this capture.
    pub answers: Vec<Answer>,
    /// Packets that are not what they say, or could not be read.
    pub problems: Vec<Problem>,
    /// What should be known about it.
    pub notes: Vec<String>,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// What this capture answers.
    pub answer: String,
}

/// Something wrong with a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its number, from 1.
    pub packet: u64,
    /// What is wrong.
    pub reason: String,
}

/// Messages of one client that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// The client's link-layer address, as its messages have it.
    pub client: String,
    /// Its identifier (option 61).
    pub client_identifier: Option<String>,
    /// Its name (option 12).
    pub host_name: Option<String>,
    /// What it is (option 60).
    pub vendor_class: Option<String>,
    /// The number that its messages and their answers carry.
    pub xid: String,
    /// In the order of the capture.
    pub messages: Vec<Event>,
    /// Addresses that were offered.
    pub offers: Vec<Offer>,
    /// What came of it, in words.
    pub outcome: String,
}

/// An address that a server offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The address.
    pub address: Ipv4Addr,
    /// Who offered it.
    pub server: Option<Ipv4Addr>,
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The packet's number in the capture, from 1.
    pub packet: u64,
    /// When, in nanoseconds since 1970.
    pub time_ns: Option<u64>,
    /// When, in nanoseconds since the capture's first packet.
    pub since_begin_ns: Option<i64>,
    /// `UDP`: DHCP has no other transport.
    pub transport: &'static str,
    /// Sender's link-layer address, where the capture has it.
    pub source_link: Option<String>,
    /// Receiver's.
    pub destination_link: Option<String>,
    /// Virtual networks that the frame is tagged with, outermost first.
    pub vlans: Vec<u16>,
    /// Sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Receiver.
    pub destination: Ipv4Addr,
    /// Its port.
    pub destination_port: u16,
    /// The UDP checksum.
    pub checksum: Checksum,
    /// `DISCOVER`, `OFFER` and so on.
    pub kind: String,
    /// Of a REQUEST: what it asks for.
    pub phase: Option<Phase>,
    /// What it says, in a few words.
    pub summary: String,
    /// The address that the client has (`ciaddr`).
    pub client_address: Option<Ipv4Addr>,
    /// The address that the client gets (`yiaddr`).
    pub your_address: Option<Ipv4Addr>,
    /// Where the client finds its boot file (`siaddr`).
    pub next_server: Option<Ipv4Addr>,
    /// The relay agent that it came by (`giaddr`).
    pub relay: Option<Ipv4Addr>,
    /// Relay agents that it came by.
    pub hops: u8,
    /// Seconds since the client began, as it counts them.
    pub seconds: u16,
    /// The client wants answers as broadcasts.
    pub wants_broadcast: bool,
    /// The server's name (`sname`).
    pub server_name: Option<String>,
    /// The boot file (`file`).
    pub boot_file: Option<String>,
    /// Options, each once.
    pub options: Vec<DhcpOption>,
    /// It says what an earlier one said.
    pub repeats: Option<Repeat>,
    /// What would happen had it been lost.
    pub if_lost: &'static str,
}

/// Why a message is there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// The packet of the first one.
    pub packet: u64,
    /// Its sender sent it again; otherwise the network or the capture doubled
    /// one packet.
    pub is_sent_again: bool,
}

/// An address that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The client's link-layer address.
    pub client: String,
    /// The address.
    pub address: Ipv4Addr,
    /// Who granted it; unknown if that was before the capture.
    pub server: Option<Ipv4Addr>,
    /// Link-layer address that the grant came from: the server's, or the relay
    /// agent's.
    pub server_link: Option<String>,
    /// Packet of the ACK; none if that was before the capture.
    pub granted: Option<u64>,
    /// For how long, in seconds; 4294967295 is for ever.
    pub lease_s: Option<u32>,
    /// When the client asks its server for more, in seconds.
    pub t1_s: Option<u32>,
    /// When it asks every server.
    pub t2_s: Option<u32>,
    /// T1 or T2 were not in the ACK and are a half and seven eighths of the
    /// lease (RFC 2131, 4.4.5).
    pub has_default_times: bool,
    /// Packets of ACKs that granted more time.
    pub renewed: Vec<u64>,
    /// How it ended, as far as the capture tells.
    pub end: LeaseEnd,
    /// The packet that ended it.
    pub ended: Option<u64>,
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaseEnd {
    /// It has not in this capture.
    Open,
    /// The client gave it back.
    Released,
    /// The client found that another host uses the address.
    Declined,
    /// The server refused to go on with it.
    Refused,
}
