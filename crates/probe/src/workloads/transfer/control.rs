//! The control channel, over which the two ends communicate. It is separate from the measured
//! channel.
//!
//! A word on this channel is a length, four bytes in network order, and that many bytes of JSON. A
//! length of 0 is the receiver's signal that it has all bytes. The signal is sent while a clock
//! runs, so it is sent without allocating.

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use toll_wire::{Failure, TransferMessage, decode_transfer_message, encode_transfer_message};

use crate::clock;
use crate::failure::{self, OrFail};

/// Largest message that an end accepts, in bytes. The other end may be a stranger on the network.
const WORD_BYTES_MAX: usize = 1 << 20;
/// How long an end waits for the other end: longer than a guest takes to boot.
pub const PARTNER_DEADLINE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// How long an end whose connection broke waits for the other end's reason.
const REASON_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    Sender,
    Receiver,
}

impl Partner {
    fn noun(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

enum Word {
    Signal { heard_ns: u64 },
    Message(TransferMessage),
}

pub struct Control {
    /// The connection, which is read and closed like a file.
    stream: File,
    partner: Partner,
}

impl Control {
    /// Makes the sender's and the receiver's end, for two processes on one
    /// machine.
    pub fn pair() -> Result<(Self, Self), Failure> {
        let (near, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .instrument_by("make the control channel", "raise the limit of open files")?;
        Ok((
            Self::new(near, Partner::Receiver),
            Self::new(far, Partner::Sender),
        ))
    }

    pub fn wait_for_receiver(address: SocketAddr) -> Result<Self, Failure> {
        let waiting = format!("wait for the receiver on {address}");
        let listener = TcpListener::bind(address).failed_to(&waiting)?;
        if !is_readable_within(&listener, PARTNER_DEADLINE) {
            return Err(failure::failed(format!(
                "cannot send: no receiver connected to {address} within {} s; start it in time",
                PARTNER_DEADLINE.as_secs()
            )));
        }
        let (stream, _) = listener.accept().failed_to(&waiting)?;
        Self::over(stream, Partner::Receiver).failed_to(&waiting)
    }

    /// Connects to a sender on another host, which may not be ready yet.
    pub fn reach_sender(address: SocketAddr) -> Result<Self, Failure> {
        let start = Instant::now();
        loop {
            let left = PARTNER_DEADLINE.saturating_sub(start.elapsed());
            let connected = TcpStream::connect_timeout(&address, left.max(RETRY_PAUSE))
                .and_then(|stream| Self::over(stream, Partner::Sender));
            match connected {
                Err(_) if !left.is_zero() => std::thread::sleep(RETRY_PAUSE),
                last => {
                    let after_s = PARTNER_DEADLINE.as_secs();
                    let what = format!("receive: no sender is on {address} after {after_s} s");
                    return last.failed_by(what, "start it in time");
                }
            }
        }
    }

    fn over(stream: TcpStream, partner: Partner) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::new(stream.into(), partner))
    }

    fn new(stream: OwnedFd, partner: Partner) -> Self {
        let stream = stream.into();
        Self { stream, partner }
    }

    pub fn say(&self, message: &TransferMessage) -> Result<(), Failure> {
        let text = encode_transfer_message(message);
        let length = u32::try_from(text.len()).expect("a word is short");
        let mut word = length.to_be_bytes().to_vec();
        word.extend_from_slice(text.as_bytes());
        self.send(&word)
    }

    /// Signals to the sender that all bytes are in the file.
    pub fn signal(&self) -> Result<(), Failure> {
        self.send(&[0; 4])
    }

    /// Receives the other end's next message. If the message reports a failure, returns that as the
    /// error.
    pub fn hear(&self) -> Result<TransferMessage, Failure> {
        match self.next()? {
            Word::Message(TransferMessage::Failed(failure)) => Err(failure),
            Word::Message(message) => Ok(message),
            Word::Signal { .. } => Err(self.nonsense("a signal out of turn")),
        }
    }

    /// Waits until the receiver has all bytes. Returns when the signal arrived,
    /// in nanoseconds of this end's clock.
    pub fn hear_signal(&self) -> Result<u64, Failure> {
        match self.next()? {
            Word::Signal { heard_ns } => Ok(heard_ns),
            Word::Message(TransferMessage::Failed(failure)) => Err(failure),
            Word::Message(message) => Err(self.unexpected(&message)),
        }
    }

    /// Returns why the other end broke the connection, if it says so or is
    /// gone.
    pub fn reason_to_break(&self) -> Option<Failure> {
        let start = Instant::now();
        while is_readable_within(
            &self.stream,
            REASON_DEADLINE.saturating_sub(start.elapsed()),
        ) {
            match self.next() {
                Err(failure) | Ok(Word::Message(TransferMessage::Failed(failure))) => {
                    return Some(failure);
                }
                // The other end received all bytes before it was gone.
                Ok(_) => {}
            }
        }
        None
    }

    /// Returns the failure of an end that receives a message that it cannot act
    /// on.
    pub fn unexpected(&self, message: &TransferMessage) -> Failure {
        self.nonsense(&format!("{message:?} out of turn"))
    }

    fn nonsense(&self, what: &str) -> Failure {
        failure::instrument(format!(
            "cannot understand the {}: it sent {what}; use probes of the same build",
            self.partner.noun()
        ))
    }

    fn send(&self, mut word: &[u8]) -> Result<(), Failure> {
        while !word.is_empty() {
            let sent = retry_on_intr(|| send(&self.stream, word, SendFlags::NOSIGNAL));
            word = &word[sent.map_err(|_| self.is_gone())?..];
        }
        Ok(())
    }

    fn next(&self) -> Result<Word, Failure> {
        let mut length = [0; 4];
        self.fill(&mut length)?;
        let heard_ns = clock::now_ns();
        let length = u32::from_be_bytes(length) as usize;
        if length == 0 {
            return Ok(Word::Signal { heard_ns });
        }
        if length > WORD_BYTES_MAX {
            return Err(self.nonsense(&format!("a message of {length} bytes")));
        }
        let mut text = vec![0; length];
        self.fill(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        decode_transfer_message(&text)
            .map(Word::Message)
            .map_err(|error| failure::instrument(error.to_string()))
    }

    fn fill(&self, memory: &mut [u8]) -> Result<(), Failure> {
        let filled = (&self.stream).read_exact(memory);
        filled.map_err(|_| self.is_gone())
    }

    fn is_gone(&self) -> Failure {
        let verb = match self.partner {
            Partner::Sender => "send",
            Partner::Receiver => "receive",
        };
        failure::failed(format!(
            "cannot {verb}: the {}'s process has ended; see its host's kernel log",
            self.partner.noun()
        ))
    }
}

/// Waits at most `limit` until a descriptor is readable or at its end. Returns
/// whether it is.
pub fn is_readable_within(fd: &impl AsFd, limit: Duration) -> bool {
    let start = Instant::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        let timeout = Timespec::try_from(left).expect("a limit is short");
        let mut ends = [PollFd::new(fd, PollFlags::IN)];
        match poll(&mut ends, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
