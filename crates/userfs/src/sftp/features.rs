//! What a server can do beyond the draft, and how much at once (OpenSSH's
//! PROTOCOL, sections 3.2 to 3.10).

use super::packet::{Decoder, Malformed, VERSION, extension};

/// Reads a greeting from its version on: the names of the extensions, in the
/// versions that are used here.
///
/// # Errors
/// In words, why it is not accepted.
pub(super) fn read_greeting(packet: &mut Decoder<'_>) -> Result<Vec<Vec<u8>>, String> {
    let malformed = |what: Malformed| format!("the server sent {what}");
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

/// What one READ asks for and one WRITE carries of every server (the draft,
/// section 3: packets of 34,000 bytes).
pub(super) const PIECE_BYTES_MIN: usize = 32 << 10;

/// More does not make a transfer faster: the cost of a request is spread over
/// enough bytes, and some of them should be in flight.
const PIECE_BYTES_MAX: usize = 128 << 10;

/// Reads the reply to `limits@openssh.com`: the piece of a file that fits the
/// limits of READ and WRITE. What a server says there only ever chooses among
/// sizes that are sound.
pub(super) fn read_limits(packet: &mut Decoder<'_>) -> Result<usize, Malformed> {
    let _packet_bytes = packet.u64()?;
    Ok(piece_bytes(packet.u64()?).min(piece_bytes(packet.u64()?)))
}

/// The piece that fits a limit, of which 0 means that there is none: a power of
/// two, so that pieces are whole pages.
fn piece_bytes(limit: u64) -> usize {
    let within = match limit {
        0 => PIECE_BYTES_MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    1 << within.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX).ilog2()
}
