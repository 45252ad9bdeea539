//! A server that answers as it is told.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::link::Link;
use super::super::packet::{Encoder, kind};
use super::super::session::{Patience, Peer, Session, Transport};
use super::super::source::Sftp;
use super::super::stat::Stat;

/// A request: its kind, its id, and what follows that.
pub struct Request {
    pub kind: u8,
    pub id: u32,
    pub fields: Vec<u8>,
}

/// What a server does about a request.
pub enum Answer {
    /// Sends these bytes, whatever they are.
    Bytes(Vec<u8>),
    /// Sends nothing.
    Silence,
    /// Sends these bytes and ends.
    End(Vec<u8>),
}

/// A packet of an answer.
pub fn packet(kind: u8, id: u32, fields: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut packet = Encoder::begin(&mut bytes, kind);
    packet.u32(id);
    packet.finish(fields.len());
    bytes.extend_from_slice(fields);
    bytes
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

/// A kind and permissions, a length, and times.
pub fn stat(permissions: u32, size_bytes: u64) -> Vec<u8> {
    let stat = Stat {
        size_bytes: Some(size_bytes),
        owner: Some((1, 2)),
        permissions: Some(permissions),
        times: Some((3, 4)),
    };
    let mut bytes = Vec::new();
    let mut packet = Encoder::begin(&mut bytes, 0);
    stat.encode(&mut packet);
    packet.finish(0);
    bytes.split_off(5)
}

pub const DIRECTORY: u32 = libc::S_IFDIR | 0o755;
pub const FILE: u32 = libc::S_IFREG | 0o644;

/// The greeting of version 3 with one extension.
pub fn greeting() -> Vec<u8> {
    let fsync = [string(b"fsync@openssh.com"), string(b"1")].concat();
    packet(kind::VERSION, 3, &fsync)
}

/// Answers what finds the root; what follows is a test's.
pub fn usual(request: &Request) -> Option<Answer> {
    let name = [
        &1_u32.to_be_bytes()[..],
        &string(b"/srv"),
        &string(b""),
        &[0; 4],
    ]
    .concat();
    Some(Answer::Bytes(match request.kind {
        kind::INIT => greeting(),
        kind::REALPATH => packet(kind::NAME, request.id, &name),
        kind::STAT => packet(kind::ATTRS, request.id, &stat(DIRECTORY, 0)),
        _ => return None,
    }))
}

/// The client's output, whose end the server sees, as that of a pipe.
struct Output(UnixStream);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl crate::sftp::pipe::Output for Output {}

impl Drop for Output {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

struct Line(UnixStream);

impl Peer for Line {
    fn greeted(&self) {}

    fn hang_up(&self) {
        // It may have ended.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    fn last_words(&self) -> Option<String> {
        None
    }
}

/// A way to a server that answers by a function.
pub fn transport(mut answer: impl FnMut(&Request) -> Answer + Send + 'static) -> Transport {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut stream = theirs;
        while let Some(request) = receive(&mut stream) {
            match answer(&request) {
                Answer::Bytes(bytes) if stream.write_all(&bytes).is_ok() => {}
                Answer::Silence => {}
                Answer::Bytes(_) => return,
                Answer::End(bytes) => {
                    // The client may have hung up first.
                    let _ = stream.write_all(&bytes);
                    return;
                }
            }
        }
    });
    Transport {
        reader: Box::new(ours.try_clone().unwrap()),
        writer: Box::new(Output(ours.try_clone().unwrap())),
        peer: Box::new(Line(ours)),
    }
}

fn receive(stream: &mut UnixStream) -> Option<Request> {
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

pub const PATIENCE: Patience = Patience {
    greeting: Duration::from_secs(60),
    answer: Duration::from_secs(60),
};

/// A source of a server, whose later sessions are made by `again`.
pub fn source_with(
    first: Arc<Session>,
    patience: Duration,
    again: impl Fn() -> Result<Arc<Session>, String> + Send + Sync + 'static,
) -> (Sftp, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = Arc::clone(&told);
    let link = Link::new(
        first,
        Box::new(again),
        patience,
        Box::new(move |line| keep.lock().unwrap().push(line.to_owned())),
    );
    (Sftp::over(link, "", "host:".to_owned()).unwrap(), told)
}

/// A source of a server that cannot be reached again.
pub fn source(
    answer: impl FnMut(&Request) -> Answer + Send + 'static,
) -> (Sftp, Arc<Mutex<Vec<String>>>) {
    let first = Session::establish(transport(answer), PATIENCE).unwrap();
    source_with(first, Duration::ZERO, || Err("it is gone".to_owned()))
}
