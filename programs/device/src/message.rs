//! Messages that `master` and `slave` exchange over a file's connection.

use toll_probe::device::{Device, write_all};
use toll_probe::workloads::copy::mover::CallError;

/// First bytes of every message. The last of them is the version.
const MAGIC: [u8; 8] = *b"tolldev\x01";

/// Length of a message in bytes: magic, kind and three words, little-endian.
const MESSAGE_BYTES: usize = 40;

const OFFER: u64 = 1;
const ANSWER: u64 = 2;
const RECEIPT: u64 = 3;

/// Flag in the third word of an offer: the second word holds a hash.
const HAS_HASH: u64 = 1 << 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Offer(Offer),
    Answer(Answer),
    Receipt(Receipt),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub size_bytes: u64,
    /// XXH3-64 hash of the content, if the master verifies.
    pub xxh3: Option<u64>,
    /// Number of files that the master still has to send, including this one.
    pub files_left: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Ready,
    FilesDiffer {
        files_left: u32,
    },
    /// The slave cannot create or verify its file.
    NoFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    Kept,
    /// The hash of the received content differs from that in the offer.
    Differs,
    /// The slave could not complete the file.
    Lost,
}

impl Message {
    fn words(self) -> [u64; 4] {
        match self {
            Self::Offer(offer) => {
                let flag = offer.xxh3.map_or(0, |_| HAS_HASH);
                [
                    OFFER,
                    offer.size_bytes,
                    offer.xxh3.unwrap_or(0),
                    u64::from(offer.files_left) | flag,
                ]
            }
            Self::Answer(Answer::Ready) => [ANSWER, 0, 0, 0],
            Self::Answer(Answer::FilesDiffer { files_left }) => {
                [ANSWER, 1, u64::from(files_left), 0]
            }
            Self::Answer(Answer::NoFile) => [ANSWER, 2, 0, 0],
            Self::Receipt(receipt) => [RECEIPT, receipt as u64, 0, 0],
        }
    }

    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let (magic, words) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        for (place, word) in words.chunks_exact_mut(8).zip(self.words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Parses a message. `None` if the bytes are not a message of this version.
    fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Self> {
        let words = bytes.strip_prefix(&MAGIC)?;
        let mut words = words
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("it has eight bytes")));
        let mut next = || words.next().expect("a message has four words");
        let message = match [next(), next(), next(), next()] {
            [OFFER, size_bytes, hash, rest] => Self::Offer(Offer {
                size_bytes,
                xxh3: (rest & HAS_HASH != 0).then_some(hash),
                files_left: (rest & u64::from(u32::MAX)) as u32,
            }),
            [ANSWER, 0, ..] => Self::Answer(Answer::Ready),
            [ANSWER, 1, files_left, _] => Self::Answer(Answer::FilesDiffer {
                files_left: u32::try_from(files_left).ok()?,
            }),
            [ANSWER, 2, ..] => Self::Answer(Answer::NoFile),
            [RECEIPT, 0, ..] => Self::Receipt(Receipt::Kept),
            [RECEIPT, 1, ..] => Self::Receipt(Receipt::Differs),
            [RECEIPT, 2, ..] => Self::Receipt(Receipt::Lost),
            _ => return None,
        };
        // Unused words must be 0, so that a later version can give them a meaning.
        (message.encode() == *bytes).then_some(message)
    }

    pub fn say(self, device: &Device) -> Result<(), CallError> {
        write_all(device, &self.encode(), &mut 0)
    }

    /// Receives a message from the peer. `receive` fills memory with its bytes. `None`
    /// if the bytes are not a message of these programs.
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
            size_bytes: (1 << 40) + 3,
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
