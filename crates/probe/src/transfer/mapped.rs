//! Sending from and receiving into a mapping of the file, window by window.
//!
//! A window has the bytes of the buffer, in whole pages; calls never move more
//! than the buffer's bytes. Mapping and unmapping are part of the method, and so
//! are the mapping's faults.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;
use rustix::fs::ftruncate;
use rustix::io::Errno;

use super::end::Arrival;
use super::receive::Taker;
use super::window::{Access, Window, window_bytes};
use crate::copy::mover::{CallError, Job, Moved, Mover, portion, wait_for, write_all};

pub struct MappedSend {
    buffer_bytes: usize,
    window_bytes: usize,
}

impl MappedSend {
    /// A sender that writes at most `buffer_bytes` at a time.
    pub fn new(buffer_bytes: usize) -> Self {
        Self {
            buffer_bytes,
            window_bytes: window_bytes(buffer_bytes),
        }
    }
}

impl Mover for MappedSend {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let length = portion(job.size_bytes - moved.bytes, self.window_bytes);
            let window = Window::new(job.source, moved.bytes, length, Access::Read)
                .map_err(|errno| CallError::characteristic("mmap", errno, moved.calls))?;
            for chunk in window.bytes().chunks(self.buffer_bytes) {
                write_all(job.sink, chunk, &mut moved.calls)?;
            }
            moved.bytes += length as u64;
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "writes of at most {} bytes from windows of {} bytes",
            self.buffer_bytes, self.window_bytes
        )]
    }
}

pub struct MappedReceive {
    buffer_bytes: usize,
    window_bytes: usize,
}

impl MappedReceive {
    /// A receiver that reads at most `buffer_bytes` at a time.
    pub fn new(buffer_bytes: usize) -> Self {
        Self {
            buffer_bytes,
            window_bytes: window_bytes(buffer_bytes),
        }
    }

    /// Fills a window as far as the stream goes, and tells how far that is.
    fn fill(
        &self,
        channel: BorrowedFd<'_>,
        memory: &mut [u8],
        calls: &mut u64,
    ) -> Result<usize, CallError> {
        let mut filled = 0;
        while filled < memory.len() {
            let end = memory.len().min(filled + self.buffer_bytes);
            match rustix::io::read(channel, &mut memory[filled..end]) {
                Ok(0) => break,
                Ok(length) => {
                    filled += length;
                    *calls += 1;
                }
                Err(Errno::INTR) => {}
                // A page of the window for which the file system has no block.
                Err(Errno::FAULT) => return Err(CallError::of("read", Errno::NOSPC)),
                Err(errno) => return Err(CallError::of("read", errno)),
            }
        }
        Ok(filled)
    }
}

impl Taker for MappedReceive {
    fn take(
        &mut self,
        channel: BorrowedFd<'_>,
        file: &File,
        size_bytes: u64,
        arrival: &mut Arrival,
    ) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        if size_bytes == 0 {
            return Ok(moved);
        }
        // As published, the file grows and is mapped when there is something to
        // put into it. Done while the sender has not begun, it would cost
        // nothing.
        wait_for(channel, PollFlags::IN);
        arrival.note();
        ftruncate(file, size_bytes).map_err(|errno| CallError::of("ftruncate", errno))?;
        while moved.bytes < size_bytes {
            let length = portion(size_bytes - moved.bytes, self.window_bytes);
            let mut window = Window::new(file.as_fd(), moved.bytes, length, Access::Write)
                .map_err(|errno| CallError::characteristic("mmap", errno, moved.calls))?;
            let filled = self.fill(channel, window.bytes_mut(), &mut moved.calls)?;
            moved.bytes += filled as u64;
            if filled < length {
                break;
            }
        }
        Ok(moved)
    }

    fn note(&self) -> String {
        format!(
            "reads of at most {} bytes into windows of {} bytes",
            self.buffer_bytes, self.window_bytes
        )
    }
}
