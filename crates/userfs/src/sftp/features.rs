//! What a server can do beyond the draft, and how much at once (OpenSSH's
//! PROTOCOL, sections 3.2 to 3.10).

use super::packet::{Decoder, Malformed, VERSION, extension};

/// Reads a greeting from its version on: the names of the extensions, in the
/// versions that are used here.
///
/// # Errors
/// In words, why it is not accepted.
pub(super) fn read_greeting(packet: &mut Decoder<'_>) -> Result<Vec<Vec<u8>>, String> {
    let malformed = |Malformed(what)| format!("the server sent {what}");
    let version = packet.u32().map_err(malformed)?;
    if version != VERSION {
        return Err(format!(
            "the server speaks SFTP version {version}, not {VERSION}"
        ));
    }
    let mut extensions = Vec::new();
    while !packet.is_empty() {
        let name = packet.string().map_err(malformed)?;
        let used = if name == extension::STATVFS {
            b"2"
        } else {
            b"1"
        };
        if packet.string().map_err(malformed)? == used {
            extensions.push(name.to_vec());
        }
    }
    Ok(extensions)
}

/// How many bytes one request may ask for or carry.
pub(super) struct Limits {
    pub read_bytes: usize,
    pub write_bytes: usize,
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
        }
    }
}

impl Limits {
    /// Reads the reply to `limits@openssh.com`. What a server says there only
    /// ever chooses among sizes that are sound.
    pub fn decode(packet: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let _packet_bytes = packet.u64()?;
        Ok(Self {
            read_bytes: piece_bytes(packet.u64()?),
            write_bytes: piece_bytes(packet.u64()?),
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
