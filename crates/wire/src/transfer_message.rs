//! Messages between the two ends of a transfer, outside of the measured channel.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Channel, Failure, ReceiveMethod, SendMethod, TransferRequest, WIRE_VERSION, WireError,
};

/// A message from one end to the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransferMessage {
    /// The receiver's first message: its parameters, which must equal the sender's.
    Hello {
        terms: TransferTerms,
        /// Notes on what the receiver's method chose, such as sizes.
        notes: Vec<String>,
    },
    /// From the sender: an iteration begins.
    Begin {
        /// Address to connect to, if the channel has addresses.
        connect: Option<SocketAddr>,
    },
    /// From the receiver: it is connected and waits for bytes.
    Ready {
        /// Address from which the receiver connected, if the channel has addresses.
        from: Option<SocketAddr>,
    },
    /// From the receiver: the iteration is over and its file was checked.
    Received(ReceiverReport),
    /// From either end: it cannot continue.
    Failed(Failure),
    /// From the sender: no iteration follows.
    End,
}

/// What both ends of a transfer must agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferTerms {
    pub channel: Channel,
    pub sender: SendMethod,
    pub receiver: ReceiveMethod,
    pub buffer_bytes: u64,
    pub receiver_buffer_bytes: u64,
    pub size_bytes: u64,
}

impl From<&TransferRequest> for TransferTerms {
    fn from(request: &TransferRequest) -> Self {
        Self {
            channel: request.channel,
            sender: request.sender,
            receiver: request.receiver,
            buffer_bytes: request.buffer_bytes,
            receiver_buffer_bytes: request.receiver_buffer_bytes,
            size_bytes: request.size_bytes,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverReport {
    /// Time at which all bytes were in the receiver's file, in nanoseconds of the receiver's clock.
    pub end_ns: u64,
    /// Time from the return of the first call that received bytes until `end_ns`, in nanoseconds.
    pub duration_ns: u64,
    /// Number of system calls that moved data.
    pub calls: u64,
    pub bytes: u64,
    pub xxh3: u64,
    /// Time in user mode from before the wait for bytes until the end, in nanoseconds.
    pub user_ns: u64,
    /// Time in kernel mode over the same period as `user_ns`, in nanoseconds.
    pub system_ns: u64,
    /// Page faults served without storage over the same period as `user_ns`.
    pub minor_faults: u64,
    /// Further metrics that the channel reports, by name.
    pub metrics: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    version: u32,
    message: TransferMessage,
}

pub fn encode_transfer_message(message: &TransferMessage) -> String {
    crate::encode(&Envelope {
        version: WIRE_VERSION,
        message: message.clone(),
    })
}

pub fn decode_transfer_message(line: &str) -> Result<TransferMessage, WireError> {
    let envelope: Envelope = crate::decode(line, "the message from the other end of the transfer")?;
    Ok(envelope.message)
}
