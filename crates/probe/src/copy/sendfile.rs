//! `sendfile` (sendfile(2)), which splices inside the kernel.

use rustix::fs::sendfile;
use rustix::io::Errno;
use toll_wire::Failure;

use super::mover::{CALL_BYTES_MAX, CallError, Job, Moved, Mover, portion, wait_for_both};
use crate::buffer::checked_length;

pub struct Sendfile {
    chunk: usize,
}

impl Sendfile {
    /// A copier that asks for `buffer_bytes` at a time, or for all if absent.
    pub fn new(buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        let chunk = match buffer_bytes {
            Some(bytes) => checked_length(bytes)?,
            None => CALL_BYTES_MAX,
        };
        Ok(Self::with_chunk(chunk))
    }

    /// A copier that asks for `chunk` bytes at a time.
    pub fn with_chunk(chunk: usize) -> Self {
        Self { chunk }
    }
}

impl Mover for Sendfile {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let wanted = portion(job.size_bytes - moved.bytes, self.chunk);
            match sendfile(job.sink, job.source, None, wanted) {
                Ok(0) => break,
                Ok(length) => {
                    moved.calls += 1;
                    moved.bytes += length as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for_both(job),
                Err(errno) => {
                    return Err(CallError::characteristic("sendfile", errno, moved.calls));
                }
            }
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("calls of at most {} bytes", self.chunk)]
    }
}
