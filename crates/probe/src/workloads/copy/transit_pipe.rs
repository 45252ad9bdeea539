//! A pipe of the probe's own, for the calls that only move bytes into or out of a
//! pipe.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe, splice};
use toll_wire::{Failure, Sink};

use super::mover::{CallError, Job, read_full, wait_for, write_all};
use crate::failure::OrFail;

/// Requested size: the largest that an unprivileged process may have by default
/// (`pipe-max-size` in proc_sys_fs(5)).
const PIPE_BYTES: usize = 1 << 20;

pub struct TransitPipe {
    reader: OwnedFd,
    writer: OwnedFd,
    pub capacity: usize,
}

impl TransitPipe {
    /// Makes a pipe of 1 MiB, or of its default size if that is not permitted.
    pub fn new() -> Result<Self, Failure> {
        let advice = "raise the limit of open files";
        let (reader, writer) = pipe().instrument_by("make a pipe", advice)?;
        // A refusal (EPERM: the user's quota is used up) leaves the default.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        let capacity = fcntl_getpipe_size(&writer).instrument_by("make a pipe", advice)?;
        Ok(Self {
            reader,
            writer,
            capacity,
        })
    }

    pub fn writer(&self) -> BorrowedFd<'_> {
        self.writer.as_fd()
    }

    /// Splices the `length` bytes in the pipe to the job's sink. Unless they are the
    /// last of the copy, the call announces to a socket that more bytes follow.
    /// Otherwise the socket would send a short segment each time.
    pub fn drain(
        &self,
        job: &Job<'_>,
        length: usize,
        is_last: bool,
        calls: &mut u64,
    ) -> Result<(), CallError> {
        let flags = match (job.sink_kind, is_last) {
            (Sink::Socket, false) => SpliceFlags::MOVE | SpliceFlags::MORE,
            _ => SpliceFlags::MOVE,
        };
        let mut left = length;
        // Counts only splices to the sink: another call filled the pipe.
        let mut drained = 0;
        while left > 0 {
            let moved = retry_on_intr(|| splice(&self.reader, None, job.sink, None, left, flags));
            match moved {
                Ok(count) if count > 0 => {
                    left -= count;
                    drained += 1;
                }
                Err(Errno::AGAIN) => wait_for(job.sink, PollFlags::OUT),
                refused => {
                    self.pour(job.sink, left)?;
                    return Err(match refused {
                        Ok(_) => CallError::no_progress("splice"),
                        Err(errno) if *calls <= 1 => {
                            CallError::characteristic("splice", errno, drained)
                        }
                        Err(errno) => CallError::new("splice", errno),
                    });
                }
            }
        }
        *calls += drained;
        Ok(())
    }

    /// Writes what is in the pipe to a sink that refuses splices, so that nothing is
    /// lost.
    fn pour(&self, sink: BorrowedFd<'_>, length: usize) -> Result<(), CallError> {
        let mut memory = vec![0; length];
        let mut calls = 0;
        read_full(self.reader.as_fd(), &mut memory, &mut calls)?;
        write_all(sink, &memory, &mut calls)
    }
}
