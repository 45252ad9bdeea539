//! One connection to a server: sends requests, hands the replies to the callers, and
//! ends the connection.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use oneshot::{Receiver, RecvTimeoutError, Sender};
use parking_lot::Mutex;

use super::failure::{Failure, Requested};
use super::packet::{
    Decoder, Encoder, PACKET_BYTES_MAX, PIECE_BYTES_MIN, VERSION, escaped, extension, kind,
    packet_bytes_max, read_greeting, read_limits,
};
use super::pipe::TimeoutPipe;
use crate::source::Content;

/// How long a CLOSE waits to be sent with another packet. The next request mostly comes
/// sooner.
const LATER: Duration = Duration::from_millis(20);

/// A reply of the server, without its length and id.
pub(super) struct Packet {
    pub kind: u8,
    pub body: Vec<u8>,
}

/// Receives the reply to a request, unless the session ends first.
pub(super) type Reply = Receiver<Packet>;

/// The process or thread at the other end of a connection, such as the program
/// `ssh`.
pub trait Peer: Send + Sync {
    fn greeted(&self);
    /// Ends the peer, and returns when it has ended. May be called more than once.
    fn hang_up(&self);
    /// Returns the peer's messages outside the protocol, escaped for the user.
    fn last_messages(&self) -> Option<String>;
}

pub struct Transport {
    pub reader: Box<dyn Read + Send>,
    /// A pipe or socket to the server.
    pub writer: OwnedFd,
    pub peer: Box<dyn Peer>,
}

/// State shared by callers and the session's threads.
pub(super) struct Connection {
    peer: Box<dyn Peer>,
    waiting: Mutex<Waiting>,
    writer: Mutex<Writer>,
}

/// Pending requests, by their ids.
struct Waiting {
    requests: HashMap<u32, Sender<Packet>>,
    id_next: u32,
    heard: Instant,
    reason: Option<String>,
}

struct Writer {
    /// The pipe to the server; `None` when the session is being ended.
    output: Option<TimeoutPipe>,
    /// Packets that wait to be sent together with others.
    later: Vec<u8>,
}

impl Connection {
    /// Returns a new id for a request, and the receiver of its reply. Ids wrap
    /// around after 4 billion requests; a request that is still pending then is
    /// lost.
    pub fn register(&self) -> Requested<(u32, Reply)> {
        let mut waiting = self.waiting.lock();
        if waiting.reason.is_some() {
            return Err(Failure::Lost);
        }
        let (sender, reply) = oneshot::channel();
        let id = waiting.id_next;
        waiting.id_next = id.wrapping_add(1);
        waiting.requests.insert(id, sender);
        Ok((id, reply))
    }

    fn deliver(&self, id: u32, packet: Packet) -> Result<(), String> {
        let mut waiting = self.waiting.lock();
        waiting.heard = Instant::now();
        let asked = waiting.requests.remove(&id);
        drop(waiting);
        let asked = asked.ok_or("the server replied to a request that is not pending")?;
        // Nobody waits for the reply to a CLOSE.
        let _ = asked.send(packet);
        Ok(())
    }

    /// Ends the session, so that everything in flight is lost. The first reason given
    /// counts.
    pub fn end(&self, reason: &str) {
        let mut waiting = self.waiting.lock();
        waiting.reason.get_or_insert_with(|| reason.to_owned());
        waiting.requests.clear();
        drop(waiting);
        self.peer.hang_up();
    }

    /// Sends packets. `content` is the end of the last packet.
    pub fn send(&self, packets: &[u8], content: Content<'_>) -> Requested<()> {
        let mut writer = self.writer.lock();
        let Writer { output, later } = &mut *writer;
        let output = output.as_ref().ok_or(Failure::Lost)?;
        later.extend_from_slice(packets);
        let sent = match content {
            Content::Bytes(bytes) => output.write(later, bytes),
            Content::File(file, offset, bytes) => output
                .write(later, &[])
                .and_then(|()| output.write_file(file, offset, bytes)),
        };
        later.clear();
        drop(writer);
        sent.map_err(|error| {
            self.end(&format!("cannot send to the server: {error}"));
            Failure::Lost
        })
    }

    /// Runs the reader thread, which delivers every reply until the connection ends.
    fn read_until_the_end(&self, reader: Box<dyn Read + Send>, greeting: u32) {
        let mut reader = BufReader::with_capacity(256 << 10, reader);
        let mut received = self.receive(&mut reader, Some(greeting));
        while received.is_ok() {
            received = self.receive(&mut reader, None);
        }
        self.end(&received.unwrap_err());
    }

    /// Receives a reply, or the greeting. The greeting has no id and is delivered
    /// under the id `greeting`, which no other request has.
    fn receive(
        &self,
        reader: &mut BufReader<impl Read>,
        greeting: Option<u32>,
    ) -> Result<(), String> {
        let length = read(reader)?;
        self.waiting.lock().heard = Instant::now();
        let bytes = u32::from_be_bytes(length) as usize;
        // Without a valid length, no further byte is read.
        let mut is_length = (5..=PACKET_BYTES_MAX).contains(&bytes);
        let next = if is_length {
            reader.fill_buf().map_err(ending)?.first().copied()
        } else {
            None
        };
        is_length &= next.is_none_or(|kind| bytes <= packet_bytes_max(kind));
        if greeting.is_some() && !(is_length && next == Some(kind::VERSION)) {
            let text = escaped(&[&length, reader.buffer()].concat());
            return Err(format!(
                "the server sent text before SFTP began (\"{text}\"); make sure that the \
                 shell's start-up files there print nothing if the shell is not interactive"
            ));
        }
        if !is_length {
            return Err(format!(
                "the server sent a packet of an invalid length ({bytes} bytes)"
            ));
        }
        let [kind] = read(reader)?;
        let (id, bytes) = match greeting {
            Some(id) => (id, bytes - 1),
            None => (u32::from_be_bytes(read(reader)?), bytes - 5),
        };
        let mut body = vec![0; bytes];
        reader.read_exact(&mut body).map_err(ending)?;
        self.deliver(id, Packet { kind, body })
    }
}

fn read<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], String> {
    let mut head = [0; N];
    reader.read_exact(&mut head).map_err(ending)?;
    Ok(head)
}

fn ending(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the connection ended".to_owned(),
        _ => format!("the connection broke: {error}"),
    }
}

/// An established connection. Dropping this value ends the connection.
pub(super) struct Session {
    pub connection: Arc<Connection>,
    /// Wakes the thread that sends delayed packets.
    late: SyncSender<()>,
    /// Longest silence of the server while a request waits for its reply.
    timeout: Duration,
    extensions: Vec<Vec<u8>>,
    closed_last: Mutex<Option<Vec<u8>>>,
    pub piece_bytes: usize,
}

impl Session {
    /// Greets the server and asks for its limits. The server has `timeout.0` for
    /// its greeting and `timeout.1` for any further reply.
    pub fn establish(
        transport: Transport,
        timeout: (Duration, Duration),
    ) -> Result<Arc<Self>, String> {
        let (greeting_timeout, timeout) = timeout;
        let output = TimeoutPipe::new(transport.writer, timeout)
            .map_err(|error| format!("cannot set up a pipe: {error}"))?;
        let connection = Arc::new(Connection {
            peer: transport.peer,
            waiting: Mutex::new(Waiting {
                requests: HashMap::new(),
                id_next: 0,
                heard: Instant::now(),
                reason: None,
            }),
            writer: Mutex::new(Writer {
                output: Some(output),
                later: Vec::new(),
            }),
        });
        let registered = connection.register();
        let (id, greeting) = registered.expect("nothing has ended the session yet");
        let (late, wakes) = sync_channel(1);
        let begun = begin(&connection, transport.reader, id, wakes);
        begun.inspect_err(|why| connection.end(why))?;
        let mut session = Self {
            connection,
            late,
            timeout,
            extensions: Vec::new(),
            closed_last: Mutex::default(),
            piece_bytes: PIECE_BYTES_MIN,
        };
        session.greet(&greeting, greeting_timeout)?;
        let mut session = Arc::new(session);
        if session.has(extension::LIMITS) {
            let piece_bytes = session.ask_for_limits()?;
            let session = Arc::get_mut(&mut session).expect("nobody else has it yet");
            session.piece_bytes = piece_bytes;
        }
        Ok(session)
    }

    fn greet(&mut self, greeting: &Reply, timeout: Duration) -> Result<(), String> {
        let mut hello = Vec::new();
        let mut packet = Encoder::begin(&mut hello, kind::INIT);
        packet.u32(VERSION);
        packet.finish(0);
        let answer = match self.connection.send(&hello, Content::Bytes(&[])) {
            Ok(()) => greeting.recv_timeout(timeout).ok(),
            Err(_) => None,
        };
        let Some(answer) = answer else {
            self.fail_after(timeout);
            return Err(self.why_it_ended());
        };
        self.extensions = read_greeting(&mut Decoder::new(&answer.body))?;
        self.connection.peer.greeted();
        Ok(())
    }

    fn ask_for_limits(self: &Arc<Self>) -> Result<usize, String> {
        let mut batch = self.batch();
        let asked = batch.ask(kind::EXTENDED, &[extension::LIMITS]);
        match asked.and_then(|reply| batch.read_answer(reply, kind::EXTENDED_REPLY, read_limits)) {
            Err(Failure::Lost) => Err(self.why_it_ended()),
            answer => Ok(answer.unwrap_or(PIECE_BYTES_MIN)),
        }
    }

    pub fn has(&self, extension: &[u8]) -> bool {
        self.extensions.iter().any(|name| name == extension)
    }

    /// Returns why there are no further replies, followed by the peer's last messages.
    pub fn why_it_ended(&self) -> String {
        // The peer may give the cause only when it has ended.
        self.connection.peer.hang_up();
        let reason = self.connection.waiting.lock().reason.clone();
        let reason = reason.unwrap_or_default();
        match self.connection.peer.last_messages() {
            Some(words) => format!("{reason} (ssh said: {words})"),
            None => reason,
        }
    }

    pub fn is_alive(&self) -> bool {
        self.connection.waiting.lock().reason.is_none()
    }

    fn fail_after(&self, timeout: Duration) {
        self.connection.end(&format!(
            "the server did not answer for {} s",
            timeout.as_secs()
        ));
    }

    /// Closes a handle, together with the next request or after a short delay. Nobody
    /// waits for the reply: everything written has been acknowledged, so a failure
    /// changes nothing. A session that ends closes all its handles.
    pub fn close(&self, handle: &[u8]) {
        let Ok((id, _)) = self.connection.register() else {
            return;
        };
        let mut writer = self.connection.writer.lock();
        let mut packet = Encoder::begin(&mut writer.later, kind::CLOSE);
        packet.u32(id).string(handle);
        packet.finish(0);
        *self.closed_last.lock() = Some(handle.to_vec());
        drop(writer);
        // If the thread has not taken the last wake-up yet, it sends this packet
        // too.
        let _ = self.late.try_send(());
    }

    /// Returns the handle that the next opened file will probably get: OpenSSH's server
    /// first assigns the handle that was closed last (`handle_unused` in
    /// `sftp-server.c`).
    pub fn take_next_handle(&self) -> Option<Vec<u8>> {
        self.closed_last.lock().take()
    }

    /// Waits for a reply. Ends the session if the server has sent nothing at all
    /// for too long.
    pub fn answer(&self, reply: &Reply) -> Requested<Packet> {
        let asked = Instant::now();
        loop {
            let heard = self.connection.waiting.lock().heard.max(asked);
            let rest = self.timeout.saturating_sub(heard.elapsed());
            match reply.recv_timeout(rest) {
                Ok(packet) => return Ok(packet),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Lost),
                Err(RecvTimeoutError::Timeout) if rest.is_zero() => self.fail_after(self.timeout),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The server ends when its input does, and by then has carried out all
        // requests.
        self.connection.writer.lock().output = None;
        wait_until(Duration::from_secs(2), || !self.is_alive());
        self.connection.end("the session was closed");
    }
}

/// Starts the threads of a connection.
fn begin(
    connection: &Arc<Connection>,
    reader: Box<dyn Read + Send>,
    greeting: u32,
    wakes: std::sync::mpsc::Receiver<()>,
) -> Result<(), String> {
    let (reading, waking) = (Arc::clone(connection), Arc::clone(connection));
    spawn("sftp reader", move || {
        reading.read_until_the_end(reader, greeting);
    })?;
    spawn("sftp late", move || {
        while wakes.recv().is_ok() {
            std::thread::sleep(LATER);
            // The reader notices if nothing can be sent any more.
            let _ = waking.send(&[], Content::Bytes(&[]));
        }
    })
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    match thread.spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    }
}

pub(super) fn wait_until(timeout: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        match (is_true(), Instant::now() < deadline) {
            (true, _) => return true,
            (false, false) => return false,
            (false, true) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
