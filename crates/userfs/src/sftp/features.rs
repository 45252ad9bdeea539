//! What a server can do beyond the draft, and how much at once (OpenSSH's
//! PROTOCOL, sections 3.2 to 3.10).

use super::packet::{Decoder, Malformed, VERSION};

/// The extensions that are used, as the server's greeting names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Extensions {
    pub posix_rename: bool,
    pub statvfs: bool,
    pub hardlink: bool,
    pub fsync: bool,
    pub lsetstat: bool,
    pub limits: bool,
}

impl Extensions {
    /// Reads a greeting from its version on.
    ///
    /// # Errors
    /// In words, why it is not accepted.
    pub fn decode(packet: &mut Decoder<'_>) -> Result<Self, String> {
        let malformed = |Malformed(what)| format!("the server sent {what}");
        let version = packet.u32().map_err(malformed)?;
        if version != VERSION {
            return Err(format!(
                "the server speaks SFTP version {version}, not {VERSION}"
            ));
        }
        let mut extensions = Self::default();
        while !packet.is_empty() {
            let name = packet.string().map_err(malformed)?;
            match (name, packet.string().map_err(malformed)?) {
                (b"posix-rename@openssh.com", b"1") => extensions.posix_rename = true,
                (b"statvfs@openssh.com", b"2") => extensions.statvfs = true,
                (b"hardlink@openssh.com", b"1") => extensions.hardlink = true,
                (b"fsync@openssh.com", b"1") => extensions.fsync = true,
                (b"lsetstat@openssh.com", b"1") => extensions.lsetstat = true,
                (b"limits@openssh.com", b"1") => extensions.limits = true,
                _ => {}
            }
        }
        Ok(extensions)
    }
}

/// How much one request may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes that one READ asks for.
    pub read_bytes: usize,
    /// Bytes that one WRITE carries.
    pub write_bytes: usize,
    /// Handles that may be open, if the server tells.
    pub handles: Option<usize>,
}

/// What every server takes (the draft, section 3: packets of 34,000 bytes).
const BYTES_MIN: u64 = 32 << 10;

/// More does not make a transfer faster: the cost of a request is spread over
/// enough bytes, and some of them should be in flight.
const BYTES_MAX: u64 = 128 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_bytes: BYTES_MIN as usize,
            write_bytes: BYTES_MIN as usize,
            handles: None,
        }
    }
}

impl Limits {
    /// Reads the reply to `limits@openssh.com`. What a server says there only
    /// ever chooses among sizes that are sound.
    pub fn decode(packet: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let _packet_bytes = packet.u64()?;
        let (read, write) = (packet.u64()?, packet.u64()?);
        let handles = packet.u64()?;
        Ok(Self {
            read_bytes: piece_bytes(read),
            write_bytes: piece_bytes(write),
            handles: usize::try_from(handles).ok().filter(|most| *most > 0),
        })
    }
}

/// The piece of a file that fits a limit, of which 0 means that there is
/// none: a power of two, so that pieces are whole pages.
fn piece_bytes(limit: u64) -> usize {
    let within = match limit {
        0 => BYTES_MAX,
        limit => limit.clamp(BYTES_MIN, BYTES_MAX),
    };
    1 << within.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(version: u32, words: &[&str]) -> Vec<u8> {
        let mut bytes = version.to_be_bytes().to_vec();
        for word in words {
            bytes.extend_from_slice(&u32::try_from(word.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(word.as_bytes());
        }
        bytes
    }

    #[test]
    fn extensions_count_in_the_version_that_is_known() {
        let words = [
            "fsync@openssh.com",
            "1",
            "statvfs@openssh.com",
            "2",
            "hardlink@openssh.com",
            "7",
            "unheard-of",
            "1",
        ];
        let bytes = strings(3, &words);
        let read = Extensions::decode(&mut Decoder::new(&bytes));
        let expected = Extensions {
            fsync: true,
            statvfs: true,
            ..Extensions::default()
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn limits_choose_among_sound_sizes() {
        for (limit, bytes) in [
            (0, 128 << 10),
            (1, 32 << 10),
            (33 << 10, 32 << 10),
            (65 << 10, 64 << 10),
            (261_120, 128 << 10),
            (u64::MAX, 128 << 10),
        ] {
            assert_eq!(piece_bytes(limit), bytes, "{limit}");
        }
    }
}
