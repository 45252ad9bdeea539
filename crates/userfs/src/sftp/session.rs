//! One connection to a server: what is sent, the thread that reads what
//! comes, and the end of both.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::features::{Extensions, Limits};
use super::mailbox::{Ended, Mailbox, Packet, Pending};
use super::packet::{Decoder, Encoder, PACKET_BYTES_MAX, VERSION, escaped, kind};
use super::pipe::PatientPipe;
use super::requests::{Failure, HandleId, RequestBatch};
use crate::source::Content;

/// How long a packet waits for others to go with: a file is closed a moment
/// after its last use, and what is asked next mostly comes sooner.
const LATER: Duration = Duration::from_millis(20);

/// What holds the other end of a connection, such as the program `ssh`.
pub trait Peer: Send + Sync {
    /// The server has answered for the first time.
    fn greeted(&self);
    /// Ends it now, and returns when it has ended; called more than once.
    fn hang_up(&self);
    /// What it said of itself beside the protocol, fit for a message.
    fn last_words(&self) -> Option<String>;
}

/// A way to a server.
pub struct Transport {
    /// What comes from the server.
    pub reader: Box<dyn Read + Send>,
    /// A pipe or socket to the server.
    pub writer: OwnedFd,
    /// What holds the other end.
    pub peer: Box<dyn Peer>,
}

/// How long a session waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the server's first word.
    pub greeting: Duration,
    /// For any word while something is asked.
    pub answer: Duration,
}

/// What callers and the reader thread share.
struct Line {
    pending: Pending,
    peer: Box<dyn Peer>,
    began: Instant,
    /// When the server last sent anything, in milliseconds since `began`.
    heard_ms: AtomicU64,
    writer: Mutex<Writer>,
    has_later: Condvar,
}

/// What goes to the server.
struct Writer {
    /// Gone when the session is being ended.
    output: Option<PatientPipe>,
    /// Goes with whatever is sent next.
    later: Vec<u8>,
}

impl Line {
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn heard(&self) {
        self.heard_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    fn end(&self, reason: &str) {
        self.pending.end(reason);
        self.peer.hang_up();
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends packets, of which the last one ends with `content`; an error without a reason is that of a session that ends.
    fn send(&self, packets: &[u8], content: Content<'_>) -> Result<(), Option<std::io::Error>> {
        let mut writer = self.writer();
        let Writer { output, later } = &mut *writer;
        let output = output.as_ref().ok_or(None)?;
        let head = match later.is_empty() {
            true => packets,
            false => {
                later.extend_from_slice(packets);
                &later[..]
            }
        };
        let sent = match content {
            Content::Bytes(bytes) => output.write(head, bytes),
            Content::File(file, offset, bytes) => output
                .write(head, &[])
                .and_then(|()| output.write_file(file, offset, bytes)),
        };
        later.clear();
        sent.map_err(Some)
    }

    /// The thread that sends what nothing else has taken along.
    fn send_what_is_late(&self) {
        let mut writer = self.writer();
        loop {
            if writer.output.is_none() {
                return;
            }
            if writer.later.is_empty() {
                let waited = self.has_later.wait(writer);
                writer = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(writer);
            std::thread::sleep(LATER);
            // What cannot be sent any more is noticed by the reader.
            let _ = self.send(&[], Content::Bytes(&[]));
            writer = self.writer();
        }
    }
}

/// An established connection. Dropping it ends it.
pub(super) struct Session {
    line: Arc<Line>,
    reader: JoinHandle<()>,
    patience: Patience,
    pub extensions: Extensions,
    pub limits: Limits,
    /// Handles that the server holds open for this session.
    pub handles_open: AtomicUsize,
    closed_last: Mutex<Option<HandleId>>,
}

impl Session {
    /// Greets the server and asks for its limits.
    ///
    /// # Errors
    /// In words, why there is no session.
    pub fn establish(transport: Transport, patience: Patience) -> Result<Arc<Self>, String> {
        let output = PatientPipe::new(transport.writer, patience.answer)
            .map_err(|error| format!("cannot set up a pipe: {error}"))?;
        let line = Arc::new(Line {
            pending: Pending::default(),
            peer: transport.peer,
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
            writer: Mutex::new(Writer {
                output: Some(output),
                later: Vec::new(),
            }),
            has_later: Condvar::new(),
        });
        let greeting = Arc::new(Mailbox::default());
        // The greeting has no id; it is the answer to whatever is asked first.
        let expected = line.pending.register(Some((&greeting, 0)));
        let expected = expected.expect("nothing has ended the session yet");
        let (read_line, reader) = (Arc::clone(&line), transport.reader);
        let thread = std::thread::Builder::new()
            .name("sftp reader".to_owned())
            .spawn(move || read_until_the_end(&read_line, reader, expected))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let late = Arc::clone(&line);
        std::thread::Builder::new()
            .name("sftp late".to_owned())
            .spawn(move || late.send_what_is_late())
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let mut session = Self {
            line,
            reader: thread,
            patience,
            extensions: Extensions::default(),
            limits: Limits::default(),
            handles_open: AtomicUsize::new(0),
            closed_last: Mutex::default(),
        };
        session.greet(&greeting)?;
        let mut session = Arc::new(session);
        if session.extensions.limits {
            let limits = session.ask_for_limits()?;
            let session = Arc::get_mut(&mut session).expect("nobody else has it yet");
            session.limits = limits.unwrap_or_default();
        }
        Ok(session)
    }

    fn greet(&mut self, greeting: &Mailbox) -> Result<(), String> {
        let mut hello = Vec::new();
        let mut packet = Encoder::begin(&mut hello, kind::INIT);
        packet.u32(VERSION);
        packet.finish(0);
        let sent = self.send(&hello, Content::Bytes(&[]));
        let answer = match sent {
            Ok(()) => greeting.next(self.patience.greeting),
            Err(Ended) => None,
        };
        match answer {
            Some((_, Some(Packet { body, .. }))) => {
                let read = Extensions::decode(&mut Decoder::new(&body));
                self.extensions = read?;
                self.line.peer.greeted();
                Ok(())
            }
            _ => {
                let seconds = self.patience.greeting.as_secs();
                self.fail(&format!("it did not answer for {seconds} s"));
                Err(self.why_it_ended())
            }
        }
    }

    fn ask_for_limits(self: &Arc<Self>) -> Result<Option<Limits>, String> {
        let mut batch = self.batch();
        let asked = batch.ask(kind::EXTENDED, &[b"limits@openssh.com"]);
        match asked.and_then(|tag| batch.extended_reply(tag, Limits::decode)) {
            Ok(limits) => Ok(Some(limits)),
            Err(Failure::Refused(_)) => Ok(None),
            Err(Failure::Lost) => Err(self.why_it_ended()),
        }
    }

    /// Why there are no further answers, with what the other end said.
    pub fn why_it_ended(&self) -> String {
        // What ended the connection is told after its end.
        self.line.peer.hang_up();
        let reason = self.line.pending.reason().unwrap_or_default();
        match self.line.peer.last_words() {
            Some(words) => format!("{reason} (ssh said: {words})"),
            None => reason,
        }
    }

    /// Whether requests may be answered.
    pub fn is_alive(&self) -> bool {
        self.line.pending.is_open()
    }

    /// Ends the session: everything in flight is lost.
    pub fn fail(&self, reason: &str) {
        self.line.end(reason);
    }

    /// A batch of requests of one caller.
    pub fn batch(self: &Arc<Self>) -> RequestBatch {
        RequestBatch::new(self)
    }

    /// Registers a request whose answer goes to a mailbox.
    pub fn register(&self, mailbox: &Arc<Mailbox>, tag: usize) -> Result<u32, Ended> {
        self.line.pending.register(Some((mailbox, tag)))
    }

    /// Sends packets, of which the last one ends with `content`.
    pub fn send(&self, packets: &[u8], content: Content<'_>) -> Result<(), Ended> {
        let sent = self.line.send(packets, content);
        sent.map_err(|error| {
            if let Some(error) = error {
                self.fail(&format!("nothing more can be sent: {error}"));
            }
            Ended
        })
    }

    /// Closes a handle with whatever is sent next, or after a little while.
    /// Nobody waits for the answer: nothing can be done about a failure after
    /// everything written was answered for, and a session that ends closes all
    /// its handles.
    pub fn close(&self, handle: &HandleId) {
        self.handles_open.fetch_sub(1, Ordering::Relaxed);
        let Ok(id) = self.line.pending.register(None) else {
            return;
        };
        let mut writer = self.line.writer();
        let mut packet = Encoder::begin(&mut writer.later, kind::CLOSE);
        packet.u32(id).string(&handle.0);
        packet.finish(0);
        *self.closed_last() = Some(handle.clone());
        drop(writer);
        self.line.has_later.notify_one();
    }

    fn closed_last(&self) -> MutexGuard<'_, Option<HandleId>> {
        let closed = self.closed_last.lock();
        closed.unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle that the next file to be opened probably gets: OpenSSH's server
    /// gives the one away first that was closed last (`handle_unused` in
    /// `sftp-server.c`).
    pub fn take_next_handle(&self) -> Option<HandleId> {
        self.closed_last().take()
    }

    /// The next answer in a mailbox. A server that has sent nothing at all
    /// for too long ends the session.
    pub fn next(&self, mailbox: &Mailbox) -> Option<(usize, Packet)> {
        let asked_ms = self.line.elapsed_ms();
        let patience_ms = u64::try_from(self.patience.answer.as_millis()).unwrap_or(u64::MAX);
        let mut rest = self.patience.answer;
        loop {
            if let Some((tag, packet)) = mailbox.next(rest) {
                return packet.map(|packet| (tag, packet));
            }
            let last_ms = self.line.heard_ms.load(Ordering::Relaxed).max(asked_ms);
            let silent_ms = self.line.elapsed_ms().saturating_sub(last_ms);
            if silent_ms >= patience_ms {
                let seconds = self.patience.answer.as_secs();
                self.fail(&format!("it did not answer for {seconds} s"));
                // The end is in the mailbox now.
                rest = Duration::from_secs(1);
            } else {
                rest = Duration::from_millis(patience_ms - silent_ms);
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The server ends when its input does, and has then done all that it
        // was asked for.
        self.line.writer().output = None;
        self.line.has_later.notify_one();
        if self.is_alive() {
            wait_until(Duration::from_secs(2), || self.reader.is_finished());
        }
        self.line.end("it was closed");
    }
}

/// Waits for something to become true; says whether it did.
pub(super) fn wait_until(patience: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        match (is_true(), Instant::now() < deadline) {
            (true, _) => return true,
            (false, false) => return false,
            (false, true) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// The reader thread: hands every answer over until there are no more.
fn read_until_the_end(line: &Line, reader: Box<dyn Read + Send>, greeting: u32) {
    let mut reader = BufReader::with_capacity(256 << 10, reader);
    let reason = match receive_greeting(line, &mut reader, greeting) {
        Err(reason) => reason,
        Ok(()) => loop {
            if let Err(reason) = receive(line, &mut reader) {
                break reason;
            }
        },
    };
    line.end(&reason);
}

fn receive_greeting(line: &Line, reader: &mut BufReader<impl Read>, id: u32) -> Result<(), String> {
    let head: [u8; 5] = read_head(line, reader)?;
    let [length @ .., kind] = head;
    let bytes = u32::from_be_bytes(length) as usize;
    if kind != kind::VERSION || !(5..=PACKET_BYTES_MAX).contains(&bytes) {
        let mut text = head.to_vec();
        text.extend_from_slice(reader.buffer());
        return Err(format!(
            "the server sent text before SFTP began (\"{}\"); make the start-up files of the \
             shell there print nothing when it is not interactive",
            escaped(&text)
        ));
    }
    let body = read_body(line, reader, bytes - 1)?;
    line.pending.deliver(id, Packet { kind, body });
    Ok(())
}

fn receive(line: &Line, reader: &mut impl BufRead) -> Result<(), String> {
    let bytes = u32::from_be_bytes(read_head(line, reader)?) as usize;
    if !(5..=PACKET_BYTES_MAX).contains(&bytes) {
        return Err(format!("the server sent a packet of {bytes} bytes"));
    }
    let [kind, id @ ..]: [u8; 5] = read_head(line, reader)?;
    let body = read_body(line, reader, bytes - 5)?;
    match line
        .pending
        .deliver(u32::from_be_bytes(id), Packet { kind, body })
    {
        true => Ok(()),
        // After the end nothing waits any more.
        false if !line.pending.is_open() => Err(String::new()),
        false => Err("the server answered what was not asked".to_owned()),
    }
}

fn read_head<const N: usize>(line: &Line, reader: &mut impl BufRead) -> Result<[u8; N], String> {
    let mut head = [0; N];
    reader
        .read_exact(&mut head)
        .map_err(|error| ending(&error))?;
    line.heard();
    Ok(head)
}

fn read_body(line: &Line, reader: &mut impl BufRead, bytes: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::with_capacity(bytes);
    let read = reader.by_ref().take(bytes as u64).read_to_end(&mut body);
    match read {
        Ok(read) if read == bytes => line.heard(),
        Ok(_) => return Err(ending(&std::io::ErrorKind::UnexpectedEof.into())),
        Err(error) => return Err(ending(&error)),
    }
    Ok(body)
}

fn ending(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the connection ended".to_owned(),
        _ => format!("the connection broke: {error}"),
    }
}
