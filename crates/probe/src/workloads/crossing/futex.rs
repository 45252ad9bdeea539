//! A word that two ends change in turn, each waiting for the other with `futex`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::MapFlags;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use toll_wire::{CrossingPeer, CrossingRequest, Failure};

use super::kind::Crossing;
use super::ping_pong::{Cpus, bind};
use crate::failure::{self, OrFail};
use crate::fork::Child;
use crate::mapping::{Mapping, READ_WRITE};

/// Values of the word: whose turn it is, or that the other end is to stop.
const OURS: u32 = 0;
const THEIRS: u32 = 1;
const END: u32 = 2;

/// Longest wait for the other end, in seconds.
const PATIENCE_S: i64 = 10;

pub struct FutexPingPong {
    word: &'static AtomicU32,
    thread: Option<JoinHandle<()>>,
    _process: Option<Child>,
    cpus: Cpus,
}

impl FutexPingPong {
    pub fn new(request: &CrossingRequest) -> Result<Self, Failure> {
        let cpus = Cpus::choose(request.cpus)?;
        let (others, word) = (cpus.others, shared_word()?);
        let mut pair = Self {
            word,
            thread: None,
            _process: None,
            cpus,
        };
        let answer = move || {
            if bind(others).is_ok() {
                answer_turns(word);
            }
        };
        match request.peer {
            CrossingPeer::Process => {
                let child = Child::start(answer).failed_to("measure a crossing by fork")?;
                pair._process = Some(child);
            }
            CrossingPeer::Thread => {
                let thread = std::thread::Builder::new().spawn(answer);
                pair.thread = Some(thread.failed_to("measure a crossing by clone")?);
            }
        }
        pair.cpus.bind_own()?;
        Ok(pair)
    }
}

impl Drop for FutexPingPong {
    fn drop(&mut self) {
        self.word.store(END, Ordering::Release);
        wake(self.word);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Crossing for FutexPingPong {
    fn cross(&mut self, calls: u64) -> Result<(), Failure> {
        for _ in 0..calls {
            self.word.store(THEIRS, Ordering::Release);
            wake(self.word);
            while self.word.load(Ordering::Acquire) == THEIRS {
                if !wait(self.word, THEIRS) {
                    return Err(failure::failed(
                        "cannot measure a crossing by futex: the other end does not answer; see \
                         the kernel log",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Runs the other end until the word is [`END`].
fn answer_turns(word: &AtomicU32) {
    loop {
        match word.load(Ordering::Acquire) {
            OURS => {
                wait(word, OURS);
            }
            THEIRS => {
                word.store(OURS, Ordering::Release);
                wake(word);
            }
            _ => return,
        }
    }
}

/// Maps a word that a forked process shares. It stays mapped for the life of the
/// process.
fn shared_word() -> Result<&'static AtomicU32, Failure> {
    let map = || {
        let file = memfd_create("toll", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, 4096)?;
        Mapping::of_file(&file, 0, 4096, READ_WRITE, MapFlags::SHARED)
    };
    let mapping = map().failed_to("measure a crossing by memfd_create")?;
    let word = mapping.at(0, size_of::<AtomicU32>()).cast::<u32>();
    std::mem::forget(mapping);
    // SAFETY: the page stays mapped, is zeroed, and is used only as this word.
    Ok(unsafe { AtomicU32::from_ptr(word) })
}

/// Waits while the word has a value; returns false on timeout.
fn wait(word: &AtomicU32, value: u32) -> bool {
    let patience = Timespec {
        tv_sec: PATIENCE_S,
        tv_nsec: 0,
    };
    // Woken, changed before it slept (EAGAIN) or interrupted: the caller checks.
    futex::wait(word, Flags::empty(), value, Some(&patience)) != Err(Errno::TIMEDOUT)
}

fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), 1);
}
