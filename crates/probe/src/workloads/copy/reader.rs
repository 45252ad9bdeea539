//! The thread that receives what is written to a pipe or socket.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use toll_wire::Failure;
use xxhash_rust::xxh3::Xxh3;

use crate::buffer::Buffer;
use crate::clock;
use crate::failure::OrFail;
use crate::usage::{Scope, Usage};
use crate::verify::Arrived;

/// Bytes read at a time: four times the default capacity of a pipe, and small
/// enough to stay in a second-level cache.
pub const READER_BUFFER_BYTES: usize = 256 << 10;

/// What the reader does with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Counts and discards the bytes: a timed iteration.
    Count,
    /// Moves the bytes to `/dev/null` by splice(2), which copies none of them.
    Splice,
    /// Hashes the bytes: the verification.
    Hash,
}

/// Bytes that one splice requests: more than any pipe holds.
const SPLICE_BYTES: usize = 1 << 30;

pub struct Reader {
    thread: JoinHandle<io::Result<(Arrived, Usage)>>,
    end: Arc<Moment>,
}

impl Reader {
    /// Starts a reader and returns once its buffer is ready. At the end of its
    /// source the reader wakes the thread that started it.
    pub fn start(source: OwnedFd, purpose: Purpose) -> Result<Self, Failure> {
        let (ready, end) = (Arc::new(Moment::default()), Arc::new(Moment::default()));
        let moments = (Arc::clone(&ready), Arc::clone(&end));
        let starter = thread::current();
        let body = move || {
            let mut buffer = Buffer::aligned(READER_BUFFER_BYTES);
            let before = Usage::now(Scope::Thread);
            moments.0.tell(clock::now_ns(), &starter);
            let received = receive(&source, buffer.bytes_mut(), purpose);
            let end_ns = clock::now_ns();
            let used = Usage::now(Scope::Thread).since(&before);
            moments.1.tell(end_ns, &starter);
            received.map(|arrived| (arrived, used))
        };
        let thread = thread::Builder::new()
            .spawn(body)
            .instrument_by("start the sink's reader", "raise the limit on threads")?;
        ready.wait();
        Ok(Self { thread, end })
    }

    /// Waits until everything is received. Returns when that was, in nanoseconds of
    /// the clock. This time is before the wake-up of the waiter and before the end
    /// of the thread, for which joining would wait.
    pub fn wait(&self) -> u64 {
        self.end.wait()
    }

    /// Waits for at most `patience`; returns whether everything was received.
    pub fn is_done_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.end.0.load(Ordering::Acquire) == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    /// Returns what was received, and the resource usage of receiving it.
    pub fn result(self) -> io::Result<(Arrived, Usage)> {
        self.thread.join().expect("the reader does not panic")
    }
}

/// A time on the clock that one thread sets and another waits for; 0 until it is set.
#[derive(Default)]
struct Moment(AtomicU64);

impl Moment {
    fn tell(&self, time_ns: u64, waiter: &Thread) {
        self.0.store(time_ns, Ordering::Release);
        waiter.unpark();
    }

    fn wait(&self) -> u64 {
        loop {
            match self.0.load(Ordering::Acquire) {
                0 => thread::park(),
                time_ns => return time_ns,
            }
        }
    }
}

fn receive(source: &OwnedFd, memory: &mut [u8], purpose: Purpose) -> io::Result<Arrived> {
    let mut hasher = Xxh3::new();
    let mut bytes = 0;
    let null = match purpose {
        Purpose::Splice => Some(File::options().write(true).open("/dev/null")?),
        Purpose::Count | Purpose::Hash => None,
    };
    loop {
        let moved = match &null {
            Some(null) => splice(source, None, null, None, SPLICE_BYTES, SpliceFlags::empty()),
            None => rustix::io::read(source, &mut *memory),
        };
        let length = match moved {
            Ok(0) => break,
            Ok(length) => length,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        bytes += length as u64;
        if purpose == Purpose::Hash {
            hasher.update(&memory[..length]);
        }
    }
    Ok(Arrived {
        bytes,
        xxh3: (purpose == Purpose::Hash).then(|| hasher.digest()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_when_the_last_byte_came_and_not_when_it_is_asked_for() {
        let (source, sink) = rustix::pipe::pipe().unwrap();
        let reader = Reader::start(source, Purpose::Count).unwrap();
        rustix::io::write(&sink, b"all").unwrap();
        let closed_ns = clock::now_ns();
        drop(sink);
        let late = Duration::from_millis(200);
        thread::sleep(late);
        let end_ns = reader.wait();
        assert!(end_ns >= closed_ns);
        assert!(u128::from(end_ns - closed_ns) < late.as_nanos());
        assert_eq!(reader.result().unwrap().0.bytes, 3);
    }

    #[test]
    fn whoever_waits_for_an_end_that_does_not_come_may_leave() {
        for purpose in [Purpose::Count, Purpose::Splice] {
            let (source, sink) = rustix::pipe::pipe().unwrap();
            let reader = Reader::start(source, purpose).unwrap();
            rustix::io::write(&sink, b"all").unwrap();
            assert!(!reader.is_done_within(Duration::from_millis(5)));
            drop(sink);
            assert!(reader.is_done_within(Duration::from_secs(60)));
            assert_eq!(reader.result().unwrap().0.bytes, 3);
        }
    }
}
