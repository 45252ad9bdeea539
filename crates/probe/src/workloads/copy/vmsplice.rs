//! `read` into a ring of pages that `vmsplice` (vmsplice(2)) lends to a pipe.

use std::os::fd::BorrowedFd;

use rustix::io::retry_on_intr;
use rustix::pipe::{IoSliceRaw, SpliceFlags, fcntl_getpipe_size, vmsplice};
use toll_wire::{Failure, Sink};

use super::mover::{CallError, Job, Moved, Mover, portion, read_full};
use super::sink::SOCKET_BUFFER_BYTES_MAX;
use super::transit_pipe::TransitPipe;
use crate::buffer::{Buffer, checked_length, page_bytes};

/// Default capacity of a pipe, in pages (pipe(7)).
const DEFAULT_PIPE_PAGES: usize = 16;

/// A ring of pages, filled and lent in turn.
///
/// A lent page stays in the pipe until the reader has copied it, and must not be
/// overwritten before that. The pipe holds at most its capacity, and one chunk is
/// being filled. So a ring of twice the capacity, in chunks of at most the capacity,
/// always has a chunk that has left the pipe. A socket holds pages without copying
/// them until its peer reads, so the size of its buffers is added.
pub struct Vmsplice {
    transit: Option<TransitPipe>,
    ring: Buffer,
    chunk: usize,
}

impl Vmsplice {
    /// Returns a copier that lends `buffer_bytes` at a time, rounded up to pages and
    /// limited to the pipe's capacity, which is also the default.
    pub fn new(buffer_bytes: Option<u64>, sink: Sink) -> Result<Self, Failure> {
        let transit = match sink {
            Sink::Pipe => None,
            _ => Some(TransitPipe::new()?),
        };
        let page = page_bytes();
        let capacity = transit
            .as_ref()
            .map_or(DEFAULT_PIPE_PAGES * page, |pipe| pipe.capacity);
        let chunk = match buffer_bytes {
            Some(bytes) => checked_length(bytes)?.next_multiple_of(page).min(capacity),
            None => capacity,
        };
        let beyond = if sink == Sink::Socket {
            SOCKET_BUFFER_BYTES_MAX
        } else {
            0
        };
        Ok(Self {
            ring: Buffer::aligned(ring_bytes(capacity + beyond, chunk)),
            transit,
            chunk,
        })
    }
}

/// Returns the size of a ring: a whole number of chunks, and at least twice `lent`.
/// One chunk may be filled while `lent` bytes are still referred to.
fn ring_bytes(lent: usize, chunk: usize) -> usize {
    assert!(chunk > 0 && chunk <= lent, "a chunk must fit into the pipe");
    (2 * lent).next_multiple_of(chunk)
}

impl Mover for Vmsplice {
    fn prepare(&mut self, job: &Job<'_>) -> Result<(), Failure> {
        if self.transit.is_some() {
            return Ok(());
        }
        let capacity = fcntl_getpipe_size(job.sink).unwrap_or(usize::MAX);
        let free = self.ring.bytes().len() - self.chunk;
        if capacity <= free {
            return Ok(());
        }
        Err(crate::failure::instrument(format!(
            "cannot lend pages to a pipe of {capacity} bytes: the ring of pages is too small \
             for it; keep the kernel's default pipe size"
        )))
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let writer = self.transit.as_ref().map_or(job.sink, |pipe| pipe.writer());
        let ring = self.ring.bytes_mut();
        let mut calls = 0;
        let mut lends = 0;
        let mut left = job.size_bytes;
        let mut position = 0;
        while left > 0 {
            let length = portion(left, self.chunk);
            let memory = &mut ring[position..position + length];
            read_full(job.source, memory, &mut calls)?;
            lend(writer, memory, &mut lends)?;
            left -= length as u64;
            if let Some(pipe) = &self.transit {
                pipe.drain(job, length, left == 0, &mut lends)?;
            }
            position += self.chunk;
            if position == ring.len() {
                position = 0;
            }
        }
        Ok(Moved {
            bytes: job.size_bytes,
            calls: calls + lends,
        })
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "chunks of {} bytes from a ring of {} bytes",
            self.chunk,
            self.ring.bytes().len()
        )]
    }
}

fn lend(writer: BorrowedFd<'_>, memory: &[u8], calls: &mut u64) -> Result<(), CallError> {
    let mut lent = 0;
    while lent < memory.len() {
        let rest = [IoSliceRaw::from_slice(&memory[lent..])];
        // SAFETY: the pages stay mapped until the ring is dropped, after the
        // sink. The ring is long enough that they are not written to while the
        // pipe refers to them.
        let moved = retry_on_intr(|| unsafe { vmsplice(writer, &rest, SpliceFlags::empty()) });
        match moved {
            Ok(0) => return Err(CallError::no_progress("vmsplice")),
            Ok(length) => {
                lent += length;
                *calls += 1;
            }
            Err(errno) => return Err(CallError::characteristic("vmsplice", errno, *calls)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_always_free_while_the_pipe_is_full() {
        for lent in [4096, 65536, 1 << 20] {
            for chunk in [4096, 12288, 65536, 1 << 20] {
                if chunk <= lent {
                    let ring = ring_bytes(lent, chunk);
                    assert!(
                        ring >= lent + chunk && ring.is_multiple_of(chunk),
                        "{lent} {chunk}"
                    );
                }
            }
        }
    }
}
