//! What the two programs tell each other over the connection that the file takes:
//! JSON, with spaces behind it, so that every message has the same length.

use serde::{Deserialize, Serialize};
use toll_probe::copy::mover::CallError;
use toll_probe::device::{Device, write_all};

const VERSION: u32 = 1;

const MESSAGE_BYTES: usize = 160;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    tolldev: u32,
    message: Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    Offer(Offer),
    Answer(Answer),
    Receipt(Receipt),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    pub size_bytes: u64,
    /// XXH3-64 of them, if the master was asked to verify.
    pub xxh3: Option<u64>,
    /// Files that the master still has, this one among them.
    pub files_left: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Ready,
    FilesDiffer {
        files_left: u32,
    },
    /// It cannot make its file.
    NoFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    Kept,
    /// Its content has another hash than the offer.
    Differs,
    /// The file could not be completed.
    Lost,
}

impl Message {
    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let text = toll_wire::encode(&Envelope {
            tolldev: VERSION,
            message: self,
        });
        let mut bytes = [b' '; MESSAGE_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// `None` if it is none of this version.
    fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let envelope: Envelope = serde_json::from_slice(bytes).ok()?;
        (envelope.tolldev == VERSION).then_some(envelope.message)
    }

    pub fn say(self, device: &Device) -> Result<(), CallError> {
        write_all(device, &self.encode(), &mut 0)
    }

    /// Hears what the partner says, by what fills memory with its bytes; `None` if
    /// it is nothing of this program's.
    pub fn hear(
        receive: impl FnOnce(&mut [u8]) -> Result<(), CallError>,
    ) -> Result<Option<Self>, CallError> {
        let mut bytes = [0; MESSAGE_BYTES];
        receive(&mut bytes)?;
        Ok(Self::decode(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        let offer = |xxh3| Offer {
            size_bytes: u64::MAX,
            xxh3,
            files_left: u32::MAX,
        };
        for message in [
            Message::Offer(offer(None)),
            Message::Offer(offer(Some(0))),
            Message::Offer(offer(Some(u64::MAX))),
            Message::Answer(Answer::Ready),
            Message::Answer(Answer::FilesDiffer { files_left: 3 }),
            Message::Answer(Answer::NoFile),
            Message::Receipt(Receipt::Kept),
            Message::Receipt(Receipt::Differs),
            Message::Receipt(Receipt::Lost),
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn garbage_and_another_version_are_no_message() {
        let good = Message::Answer(Answer::Ready).encode();
        for position in 0..MESSAGE_BYTES {
            let mut bad = good;
            bad[position] ^= 0x55;
            assert_eq!(Message::decode(&bad), None, "{position}");
        }
        assert_eq!(Message::decode(&[0; MESSAGE_BYTES]), None);
    }
}
