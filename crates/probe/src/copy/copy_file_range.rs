//! `copy_file_range` (copy_file_range(2)), which a file system may answer by
//! sharing blocks instead of copying bytes.

use rustix::fs::copy_file_range;
use rustix::io::Errno;
use toll_wire::Failure;

use super::mover::{CALL_BYTES_MAX, CallError, Job, Mover, portion};
use crate::buffer::checked_length;

/// Calls of a chunk each.
pub struct CopyFileRange {
    chunk: usize,
}

impl CopyFileRange {
    /// A copier that asks for `buffer_bytes` at a time, or for all if absent.
    ///
    /// # Errors
    /// An instrument failure if that is no size for a buffer.
    pub fn new(buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        let chunk = match buffer_bytes {
            Some(bytes) => checked_length(bytes)?,
            None => CALL_BYTES_MAX,
        };
        Ok(Self { chunk })
    }
}

impl Mover for CopyFileRange {
    fn run(&mut self, job: &Job<'_>) -> Result<u64, CallError> {
        let mut calls = 0;
        let mut left = job.size_bytes;
        while left > 0 {
            match copy_file_range(job.source, None, job.sink, None, portion(left, self.chunk)) {
                Ok(0) => return Err(CallError::no_progress("copy_file_range")),
                Ok(length) => {
                    calls += 1;
                    left -= length as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(CallError::characteristic("copy_file_range", errno, calls));
                }
            }
        }
        Ok(calls)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!("calls of at most {} bytes", self.chunk),
            "a file system with shared extents may copy no byte".to_owned(),
        ]
    }
}
