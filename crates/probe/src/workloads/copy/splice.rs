//! `splice` (splice(2)): moves pages through a pipe without copying them to user
//! space.

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use toll_wire::{Failure, Sink};

use super::mover::{
    CALL_BYTES_MAX, CallError, Job, Moved, Mover, portion, wait_for, wait_for_both,
};
use super::transit_pipe::TransitPipe;
use crate::buffer::checked_length;

/// Splices directly into a sink that is a pipe, otherwise through its own pipe.
pub struct Splice {
    transit: Option<TransitPipe>,
    chunk: usize,
    /// Whether the job's size tells where the copy ends. Only then can a call announce to a socket
    /// that more bytes follow.
    knows_end: bool,
}

impl Splice {
    /// Returns a copier that requests `buffer_bytes` at a time, or as much as one call
    /// takes if absent.
    pub fn new(buffer_bytes: Option<u64>, sink: Sink) -> Result<Self, Failure> {
        let transit = match sink {
            Sink::Pipe => None,
            _ => Some(TransitPipe::new()?),
        };
        let limit = transit
            .as_ref()
            .map_or(CALL_BYTES_MAX, |pipe| pipe.capacity);
        let chunk = match buffer_bytes {
            Some(bytes) => checked_length(bytes)?.min(limit),
            None => limit,
        };
        Ok(Self {
            transit,
            chunk,
            knows_end: true,
        })
    }

    /// Returns a copier between any two ends that passes at most `chunk` bytes at a
    /// time through its own pipe, until the source ends. The end is not known
    /// beforehand, so no call announces further bytes: the socket would wait for
    /// them.
    pub fn through_own_pipe(chunk: usize) -> Result<Self, Failure> {
        let pipe = TransitPipe::new()?;
        Ok(Self {
            chunk: chunk.min(pipe.capacity),
            transit: Some(pipe),
            knows_end: false,
        })
    }

    /// Returns a copier between two ends of which at least one is a pipe.
    pub fn direct() -> Self {
        Self {
            transit: None,
            chunk: CALL_BYTES_MAX,
            knows_end: false,
        }
    }

    /// Returns the largest number of bytes of one call, and the capacity of the copier's own pipe,
    /// if the copier has one.
    pub fn sizes(&self) -> (usize, Option<usize>) {
        (self.chunk, self.transit.as_ref().map(|pipe| pipe.capacity))
    }

    /// Copies, and calls `on_splice` after each splice that took bytes from the source.
    #[inline]
    pub fn run_telling(
        &mut self,
        job: &Job<'_>,
        mut on_splice: impl FnMut(),
    ) -> Result<Moved, CallError> {
        let writer = self.transit.as_ref().map_or(job.sink, |pipe| pipe.writer());
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let left = job.size_bytes - moved.bytes;
            let wanted = portion(left, self.chunk);
            let length = match splice(job.source, None, writer, None, wanted, SpliceFlags::MOVE) {
                Ok(0) => break,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    match &self.transit {
                        // The own pipe is empty here, so only the source blocks.
                        Some(_) => wait_for(job.source, PollFlags::IN),
                        None => wait_for_both(job),
                    }
                    continue;
                }
                Err(errno) => return Err(CallError::characteristic("splice", errno, moved.calls)),
            };
            on_splice();
            moved.calls += 1;
            moved.bytes += length as u64;
            if let Some(pipe) = &self.transit {
                let is_last = !self.knows_end || moved.bytes == job.size_bytes;
                pipe.drain(job, length, is_last, &mut moved.calls)?;
            }
        }
        Ok(moved)
    }
}

impl Mover for Splice {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        self.run_telling(job, || {})
    }

    fn notes(&self) -> Vec<String> {
        vec![match &self.transit {
            None => format!(
                "calls of at most {} bytes directly into the sink",
                self.chunk
            ),
            Some(pipe) => format!(
                "calls of at most {} bytes through the probe's own pipe of {} bytes",
                self.chunk, pipe.capacity
            ),
        }]
    }
}
