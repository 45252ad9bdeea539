//! `splice` (splice(2)): pages change hands through a pipe without being
//! copied to user space.

use rustix::io::retry_on_intr;
use rustix::pipe::{SpliceFlags, splice};
use toll_wire::{Failure, Sink};

use super::mover::{CALL_BYTES_MAX, CallError, Job, Mover, portion};
use super::transit_pipe::TransitPipe;
use crate::buffer::checked_length;

/// Splices straight into a sink that is a pipe, else through an own pipe.
pub struct Splice {
    transit: Option<TransitPipe>,
    chunk: usize,
}

impl Splice {
    /// A copier that asks for `buffer_bytes` at a time, or for as much as goes.
    ///
    /// # Errors
    /// An instrument failure if that is no size for a buffer or if there is no
    /// pipe to be had.
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
        Ok(Self { transit, chunk })
    }
}

impl Mover for Splice {
    fn run(&mut self, job: &Job<'_>) -> Result<u64, CallError> {
        let writer = self.transit.as_ref().map_or(job.sink, |pipe| pipe.writer());
        let mut calls = 0;
        let mut left = job.size_bytes;
        while left > 0 {
            let wanted = portion(left, self.chunk);
            let moved =
                retry_on_intr(|| splice(job.source, None, writer, None, wanted, SpliceFlags::MOVE));
            let length = match moved {
                Ok(0) => return Err(CallError::no_progress("splice")),
                Ok(length) => length,
                Err(errno) => return Err(CallError::characteristic("splice", errno, calls)),
            };
            calls += 1;
            left -= length as u64;
            if let Some(pipe) = &self.transit {
                pipe.drain(job, length, left == 0, &mut calls)?;
            }
        }
        Ok(calls)
    }

    fn notes(&self) -> Vec<String> {
        vec![match &self.transit {
            None => format!(
                "calls of at most {} bytes straight into the sink",
                self.chunk
            ),
            Some(pipe) => format!(
                "calls of at most {} bytes through an own pipe of {} bytes",
                self.chunk, pipe.capacity
            ),
        }]
    }
}
