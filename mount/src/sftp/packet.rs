//! Encodes and decodes SFTP version 3 (draft-ietf-secsh-filexfer-02), and checks names
//! and paths from the server. No input is trusted: every length is checked against the
//! bytes that have arrived.

/// The supported protocol version. OpenSSH supports no other.
pub(super) const VERSION: u32 = 3;

/// Longest packet that is accepted. OpenSSH sends at most 256 KiB, but other servers
/// send a whole listing in one packet.
pub(super) const PACKET_BYTES_MAX: usize = 1 << 20;

/// Returns the greatest accepted length of a packet of a type. It is small for types of
/// which many requests are in flight, because a server may send each reply at that
/// length.
pub(super) fn packet_bytes_max(kind: u8) -> usize {
    match kind {
        kind::NAME => PACKET_BYTES_MAX,
        kind::DATA => PIECE_BYTES_MAX + 1024,
        _ => 64 << 10,
    }
}

/// Longest handle of a file (the draft, section 6.2).
pub(super) const HANDLE_BYTES_MAX: usize = 256;

/// Packet types (the draft, section 3).
pub(super) mod kind {
    pub const INIT: u8 = 1;
    pub const VERSION: u8 = 2;
    pub const OPEN: u8 = 3;
    pub const CLOSE: u8 = 4;
    pub const READ: u8 = 5;
    pub const WRITE: u8 = 6;
    pub const LSTAT: u8 = 7;
    pub const FSTAT: u8 = 8;
    pub const SETSTAT: u8 = 9;
    pub const FSETSTAT: u8 = 10;
    pub const OPENDIR: u8 = 11;
    pub const READDIR: u8 = 12;
    pub const REMOVE: u8 = 13;
    pub const MKDIR: u8 = 14;
    pub const RMDIR: u8 = 15;
    pub const REALPATH: u8 = 16;
    pub const STAT: u8 = 17;
    pub const RENAME: u8 = 18;
    pub const READLINK: u8 = 19;
    pub const SYMLINK: u8 = 20;
    pub const STATUS: u8 = 101;
    pub const HANDLE: u8 = 102;
    pub const DATA: u8 = 103;
    pub const NAME: u8 = 104;
    pub const ATTRS: u8 = 105;
    pub const EXTENDED: u8 = 200;
    pub const EXTENDED_REPLY: u8 = 201;
}

/// Names of the extensions that are used (OpenSSH's PROTOCOL, sections 3.2 to
/// 3.10).
pub(super) mod extension {
    pub const POSIX_RENAME: &[u8] = b"posix-rename@openssh.com";
    pub const STATVFS: &[u8] = b"statvfs@openssh.com";
    pub const HARDLINK: &[u8] = b"hardlink@openssh.com";
    pub const FSYNC: &[u8] = b"fsync@openssh.com";
    pub const LSETSTAT: &[u8] = b"lsetstat@openssh.com";
    pub const LIMITS: &[u8] = b"limits@openssh.com";
    pub const ALL: [&[u8]; 6] = [POSIX_RENAME, STATVFS, HARDLINK, FSYNC, LSETSTAT, LIMITS];
}

/// Status codes (the draft, section 7).
pub(super) mod status {
    pub const OK: u32 = 0;
    pub const EOF: u32 = 1;
    pub const NO_SUCH_FILE: u32 = 2;
    pub const PERMISSION_DENIED: u32 = 3;
    pub const FAILURE: u32 = 4;
    pub const BAD_MESSAGE: u32 = 5;
    pub const NO_CONNECTION: u32 = 6;
    pub const CONNECTION_LOST: u32 = 7;
    pub const OP_UNSUPPORTED: u32 = 8;
}

/// Flags of OPEN (the draft, section 6.3).
pub(super) mod open {
    pub const READ: u32 = 0x01;
    pub const WRITE: u32 = 0x02;
    pub const CREATE: u32 = 0x08;
    pub const TRUNCATE: u32 = 0x10;
    pub const EXCLUSIVE: u32 = 0x20;
}

pub(super) struct Encoder<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Encoder<'a> {
    /// Begins a packet; its length is filled in by [`finish`](Self::finish).
    pub fn begin(buffer: &'a mut Vec<u8>, kind: u8) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&[0, 0, 0, 0, kind]);
        Self { buffer, start }
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.buffer.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.buffer.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn string(&mut self, value: &[u8]) -> &mut Self {
        self.u32(length(value.len()));
        self.buffer.extend_from_slice(value);
        self
    }

    /// Ends the packet. Its last `following` bytes are not in the buffer and are sent
    /// separately.
    pub fn finish(self, following: usize) {
        let bytes = length(self.buffer.len() - self.start - 4 + following);
        self.buffer[self.start..self.start + 4].copy_from_slice(&bytes.to_be_bytes());
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("paths and pieces of files are far shorter than 4 GiB")
}

/// Text that says what is wrong with a packet of the server. It completes a sentence
/// that begins "the server sent".
pub(super) type Malformed = &'static str;

#[derive(Debug)]
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or("a packet that ends within a field")?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?.try_into().expect("four bytes were taken");
        Ok(u32::from_be_bytes(bytes))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().expect("eight bytes were taken");
        Ok(u64::from_be_bytes(bytes))
    }

    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let bytes = self.u32()? as usize;
        self.take(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }
}

/// Decodes a greeting, starting at its version. Returns the names of the extensions
/// whose version is supported here.
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
        if packet.string().map_err(malformed)? == used && extension::ALL.contains(&name) {
            extensions.push(name.to_vec());
        }
    }
    Ok(extensions)
}

/// Bytes that one READ requests and one WRITE carries with every server (the draft,
/// section 3: packets of 34,000 bytes).
pub(super) const PIECE_BYTES_MIN: usize = 32 << 10;

/// Longest piece. Longer ones would not make a transfer faster: the cost of a request
/// is spread over enough bytes, and several requests should be in flight.
const PIECE_BYTES_MAX: usize = 128 << 10;

/// Decodes the reply to `limits@openssh.com`. Returns the length in bytes of a
/// piece of a file that fits the limits of READ and WRITE. Whatever a server sends,
/// the result is a sensible length.
pub(super) fn read_limits(packet: &mut Decoder<'_>) -> Result<usize, Malformed> {
    let _packet_bytes = packet.u64()?;
    Ok(piece_bytes(packet.u64()?).min(piece_bytes(packet.u64()?)))
}

/// Returns the largest power of two within `limit` (0: unlimited) and the bounds
/// `PIECE_BYTES_MIN` and `PIECE_BYTES_MAX`. So pieces are whole pages.
fn piece_bytes(limit: u64) -> usize {
    let within = match limit {
        0 => PIECE_BYTES_MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    1 << within.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX).ilog2()
}

/// Escapes text from the server for a message: at most 200 characters, without
/// control characters that a terminal would obey.
pub(super) fn escaped(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 200;
    let text = String::from_utf8_lossy(text);
    let mut shown = String::new();
    for (number, character) in text.trim().chars().enumerate() {
        match character {
            _ if number == CHARACTERS_MAX => return shown + "…",
            '"' | '\'' | '\\' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}

const NAME_BYTES_MAX: usize = 255;
pub(super) const PATH_BYTES_MAX: usize = 4095;

pub(super) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// Returns whether this can be a name in a directory, apart from its length. Any other
/// name would lead out of the directory, or hide what follows it.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}

/// Returns whether a path, or a name in it, is longer than Linux accepts.
pub(super) fn is_too_long(path: &[u8]) -> bool {
    path.len() > PATH_BYTES_MAX
        || path
            .split(|byte| *byte == b'/')
            .any(|name| name.len() > NAME_BYTES_MAX)
}
