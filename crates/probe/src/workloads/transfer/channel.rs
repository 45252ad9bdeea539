//! What every channel has: its name, its kind, its address and its metrics.

use std::net::{Ipv4Addr, SocketAddr};

use toll_wire::{Channel, Sink, TransferPart, TransferRequest};

/// Ports on which the sender's side of a channel and of the control channel wait, if the two ends
/// are on different hosts.
const CHANNEL_PORT: u16 = 2325;
pub const CONTROL_PORT: u16 = 2326;

pub fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::Device => "the device",
        Channel::Tcp => "a TCP connection",
        Channel::Unix => "a Unix socket",
        Channel::Pipe => "a pipe",
    }
}

pub fn kind_of(channel: Channel) -> Sink {
    match channel {
        Channel::Pipe => Sink::Pipe,
        Channel::Device | Channel::Tcp | Channel::Unix => Sink::Socket,
    }
}

/// What an end reports of an iteration besides its times: names and values.
pub type Metrics = Vec<(&'static str, u64)>;

/// Returns where the sender's side of a channel with addresses waits.
pub fn waiting_address(transfer: &TransferRequest) -> SocketAddr {
    match transfer.part {
        TransferPart::Sender { listen } => (listen, CHANNEL_PORT).into(),
        _ => (Ipv4Addr::LOCALHOST, 0).into(),
    }
}
