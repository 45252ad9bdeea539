//! The thread that receives what is written to a pipe or socket.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};

use rustix::io::Errno;
use toll_wire::Failure;
use xxhash_rust::xxh3::Xxh3;

use crate::buffer::Buffer;
use crate::failure;
use crate::usage::{Scope, Usage};
use crate::verify::Arrived;

/// Bytes asked for at a time: four times what a pipe holds by default, and yet
/// small enough to stay in a second-level cache.
pub const READER_BUFFER_BYTES: usize = 256 << 10;

/// What becomes of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// They are counted and dropped: a timed iteration.
    Count,
    /// They are hashed: the verification.
    Hash,
}

/// A running reader.
pub struct Reader {
    thread: JoinHandle<io::Result<(Arrived, Usage)>>,
    is_done: Arc<AtomicBool>,
}

impl Reader {
    /// Starts a reader and returns once its buffer is ready. When it has come to
    /// the end it wakes the thread that started it.
    ///
    /// # Errors
    /// An instrument failure if there is no thread to be had.
    pub fn start(source: OwnedFd, purpose: Purpose) -> Result<Self, Failure> {
        let is_ready = Arc::new(AtomicBool::new(false));
        let is_done = Arc::new(AtomicBool::new(false));
        let flags = (Arc::clone(&is_ready), Arc::clone(&is_done));
        let starter = thread::current();
        let body = move || {
            let mut buffer = Buffer::aligned(READER_BUFFER_BYTES);
            let before = Usage::now(Scope::Thread);
            raise(&flags.0, &starter);
            let received = receive(&source, buffer.bytes_mut(), purpose);
            raise(&flags.1, &starter);
            received.map(|arrived| (arrived, Usage::now(Scope::Thread).since(&before)))
        };
        let thread = thread::Builder::new().spawn(body).map_err(|error| {
            failure::instrument(format!(
                "cannot start the sink's reader: {}; raise the limit of threads",
                failure::reason(&error)
            ))
        })?;
        wait_for(&is_ready);
        Ok(Self { thread, is_done })
    }

    /// Waits until everything is received. Unlike joining, this does not wait
    /// for the thread to be taken down.
    pub fn wait(&self) {
        wait_for(&self.is_done);
    }

    /// What was received, and what that used.
    ///
    /// # Errors
    /// If reading failed.
    pub fn result(self) -> io::Result<(Arrived, Usage)> {
        self.thread.join().expect("the reader does not panic")
    }
}

fn raise(flag: &AtomicBool, waiter: &Thread) {
    flag.store(true, Ordering::Release);
    waiter.unpark();
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        thread::park();
    }
}

fn receive(source: &OwnedFd, memory: &mut [u8], purpose: Purpose) -> io::Result<Arrived> {
    let mut hasher = Xxh3::new();
    let mut bytes = 0;
    loop {
        let length = match rustix::io::read(source, &mut *memory) {
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
