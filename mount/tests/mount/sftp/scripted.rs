//! A server that sends scripted answers, byte for byte. A real one keeps to the protocol,
//! and does not fail at a chosen moment.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toll_mount::sftp::{Address, Options, Peer, Sftp, Transport};

/// Types of packets (draft-ietf-secsh-filexfer-02, section 3).
pub mod kind {
    macro_rules! kinds {
        ($($name:ident = $number:literal),*) => { $(pub const $name: u8 = $number;)* };
    }
    kinds! {
        INIT = 1, VERSION = 2, OPEN = 3, CLOSE = 4, READ = 5, WRITE = 6, LSTAT = 7, FSTAT = 8,
        SETSTAT = 9, OPENDIR = 11, READDIR = 12, REMOVE = 13, REALPATH = 16, STAT = 17,
        RENAME = 18, READLINK = 19, STATUS = 101, HANDLE = 102, DATA = 103, NAME = 104,
        ATTRS = 105, EXTENDED = 200, EXTENDED_REPLY = 201
    }
}

/// A request: its kind, its id, and the fields after that.
pub struct Request {
    pub kind: u8,
    pub id: u32,
    pub fields: Vec<u8>,
}

impl Request {
    pub fn answer(&self, kind: u8, fields: &[u8]) -> Option<Answer> {
        Some(Answer::Bytes(packet(kind, self.id, fields)))
    }

    pub fn status(&self, code: u32) -> Option<Answer> {
        Some(Answer::Bytes(status(self.id, code)))
    }

    /// Returns the strings at the start of the request's fields: paths or handles.
    pub fn strings<const N: usize>(&self) -> [Vec<u8>; N] {
        let mut rest = &self.fields[..];
        std::array::from_fn(|_| {
            let Some((length, after)) = rest.split_first_chunk() else {
                return Vec::new();
            };
            let bytes = (u32::from_be_bytes(*length) as usize).min(after.len());
            let (string, after) = after.split_at(bytes);
            rest = after;
            string.to_vec()
        })
    }
}

pub enum Answer {
    /// Sends these bytes, whatever they are.
    Bytes(Vec<u8>),
    Silence,
    End(Vec<u8>),
}

pub fn packet(kind: u8, id: u32, fields: &[u8]) -> Vec<u8> {
    let length = u32::try_from(5 + fields.len()).unwrap().to_be_bytes();
    [&length[..], &[kind], &id.to_be_bytes(), fields].concat()
}

pub fn string(value: &[u8]) -> Vec<u8> {
    [&u32::try_from(value.len()).unwrap().to_be_bytes(), value].concat()
}

pub fn status(id: u32, code: u32) -> Vec<u8> {
    let fields = [
        &code.to_be_bytes()[..],
        &string(b"\x1b[2Jtext"),
        &string(b"en"),
    ]
    .concat();
    packet(kind::STATUS, id, &fields)
}

/// Encodes attributes: type and permissions, length, and times.
pub fn stat(permissions: u32, size_bytes: u64) -> Vec<u8> {
    let mut bytes = 0xf_u32.to_be_bytes().to_vec();
    bytes.extend(size_bytes.to_be_bytes());
    for field in [1, 2, permissions, 3, 4] {
        bytes.extend(field.to_be_bytes());
    }
    bytes
}

/// Encodes attributes of a file that was changed at a time, in seconds since 1970.
pub fn stat_at(changed: u32) -> Vec<u8> {
    let mut bytes = stat(FILE, 0);
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(&changed.to_be_bytes());
    bytes
}

pub const DIRECTORY: u32 = libc::S_IFDIR | 0o755;
pub const FILE: u32 = libc::S_IFREG | 0o644;

/// Encodes the greeting of version 3 with extensions, each with its version.
pub fn greeting(extensions: &[&str]) -> Vec<u8> {
    let words = extensions.iter().map(|word| string(word.as_bytes()));
    packet(kind::VERSION, 3, &words.collect::<Vec<_>>().concat())
}

pub fn name(name: &[u8], stat: &[u8]) -> Vec<u8> {
    [
        &1_u32.to_be_bytes()[..],
        &string(name),
        &string(b"long"),
        stat,
    ]
    .concat()
}

/// Answers the requests that find the root; the test answers the others.
fn usual(request: &Request) -> Option<Answer> {
    match request.kind {
        kind::INIT => Some(Answer::Bytes(greeting(&["fsync@openssh.com", "1"]))),
        kind::REALPATH => request.answer(kind::NAME, &name(b"/srv", &[0; 4])),
        kind::STAT => request.answer(kind::ATTRS, &stat(DIRECTORY, 0)),
        _ => None,
    }
}

/// Controls no program: the server sees the end of its input by itself.
struct NoProgram;

impl Peer for NoProgram {
    fn greeted(&self) {}

    fn hang_up(&self) {}

    fn last_messages(&self) -> Option<String> {
        None
    }
}

/// Returns the transport to a server that answers by a function. Requests that the function
/// does not answer get the usual answer, or none.
pub fn transport(mut answer: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> Transport {
    let (mut input, writer): (PipeReader, PipeWriter) = std::io::pipe().unwrap();
    let (reader, mut output) = std::io::pipe().unwrap();
    std::thread::spawn(move || {
        while let Some(request) = receive(&mut input) {
            let answer = match request.kind {
                // The source asks once for the server's clock: there is no such file.
                kind::LSTAT if request.strings() == [b"/proc/self/stat"] => request.status(2),
                _ => answer(&request).or_else(|| usual(&request)),
            };
            match answer.unwrap_or(Answer::Silence) {
                Answer::Bytes(bytes) if output.write_all(&bytes).is_ok() => {}
                Answer::Silence => {}
                Answer::Bytes(_) => return,
                Answer::End(bytes) => {
                    // The client may have hung up first.
                    let _ = output.write_all(&bytes);
                    return;
                }
            }
        }
    });
    Transport {
        reader: Box::new(reader),
        writer: writer.into(),
        peer: Box::new(NoProgram),
    }
}

fn receive(stream: &mut impl Read) -> Option<Request> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut packet = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut packet).ok()?;
    let (head, fields) = packet.split_at(5);
    Some(Request {
        kind: head[0],
        id: u32::from_be_bytes(head[1..].try_into().unwrap()),
        fields: fields.to_vec(),
    })
}

/// The messages that the user would see.
pub type Told = Arc<Mutex<Vec<String>>>;

/// Options with timeouts for a busy machine, except that for reconnecting.
pub fn options(reconnect_timeout: Duration) -> (Options, Told) {
    let found = Told::default();
    let keep = Arc::clone(&found);
    let options = Options {
        connect_timeout: Duration::from_secs(60),
        answer_timeout: Duration::from_secs(60),
        reconnect_timeout,
        notice: Arc::new(move |line| keep.lock().unwrap().push(line.to_owned())),
        ..Options::default()
    };
    (options, found)
}

/// Connects a source by `first`, and later by `again`.
pub fn connect(
    first: Transport,
    again: impl Fn() -> Result<Transport, String> + Send + Sync + 'static,
    options: &Options,
) -> Result<Sftp, String> {
    let first = Mutex::new(Some(first));
    let connect = move |_| first.lock().unwrap().take().map_or_else(&again, Ok);
    let address = Address::parse("host:").unwrap();
    Sftp::over(Box::new(connect), &address, options)
}

/// A source whose server cannot be connected again.
pub fn source(answer: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> (Sftp, Told) {
    let (options, found) = options(Duration::ZERO);
    let again = || Err("it is gone".to_owned());
    let source = connect(transport(answer), again, &options).unwrap();
    (source, found)
}
