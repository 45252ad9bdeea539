//! What the two ends of a transfer say to each other, beside the channel that is
//! measured.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Channel, Failure, ReceiveMethod, SendMethod, TransferRequest, WIRE_VERSION, WireError,
};

/// A word from one end to the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransferMessage {
    /// The receiver's first: what it was asked to do, which must be what the
    /// sender was.
    Hello {
        terms: TransferTerms,
        /// How its method resolved what it was free to choose.
        notes: Vec<String>,
    },
    /// The sender's: an iteration begins.
    Begin {
        /// Where the receiver connects to, over a channel with addresses.
        connect: Option<SocketAddr>,
    },
    /// The receiver's: it is connected and waits for bytes.
    Ready {
        /// Where it connected from, over a channel with addresses.
        from: Option<SocketAddr>,
    },
    /// The receiver's: the iteration is over and its file was looked at.
    Received(ReceiverReport),
    /// Either end's: it cannot go on.
    Failed(Failure),
    /// The sender's: no iteration follows.
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
    /// When it had all bytes in its file, in nanoseconds of its own clock.
    pub end_ns: u64,
    /// From the return of its first call that brought bytes until then, in
    /// nanoseconds.
    pub duration_ns: u64,
    /// Its data-moving system calls.
    pub calls: u64,
    pub bytes: u64,
    pub xxh3: u64,
    /// Time in user mode from before it waited for bytes until the end, in
    /// nanoseconds.
    pub user_ns: u64,
    /// Time in kernel mode likewise, in nanoseconds.
    pub system_ns: u64,
    /// Page faults served without storage likewise.
    pub minor_faults: u64,
    /// What its channel tells besides: metrics' names and values.
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
    let envelope: Envelope = crate::decode(line, "what the other end of the transfer says")?;
    Ok(envelope.message)
}
