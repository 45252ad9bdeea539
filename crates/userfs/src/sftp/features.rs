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

#[cfg(test)]
mod tests {
    use super::super::packet::Encoder;
    use super::*;

    #[test]
    fn extensions_count_in_the_version_that_is_known() {
        let mut bytes = Vec::new();
        let mut packet = Encoder::begin(&mut bytes, 0);
        packet.u32(3);
        for (name, version) in [
            (extension::FSYNC, b"1"),
            (extension::STATVFS, b"2"),
            (extension::HARDLINK, b"7"),
        ] {
            packet.string(name).string(version);
        }
        packet.finish(0);
        let read = read_greeting(&mut Decoder::new(&bytes[5..]));
        let expected = [extension::FSYNC, extension::STATVFS];
        assert_eq!(read, Ok(expected.map(<[u8]>::to_vec).to_vec()));
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
