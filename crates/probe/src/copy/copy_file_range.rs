//! `copy_file_range` (copy_file_range(2)), which a file system may answer by
//! sharing blocks instead of copying bytes.

use rustix::fs::copy_file_range;
use rustix::io::Errno;
use toll_wire::Failure;

use super::mover::{CALL_BYTES_MAX, CallError, Job, Moved, Mover, portion, wait_for_both};
use crate::buffer::checked_length;

pub struct CopyFileRange {
    chunk: usize,
}

impl CopyFileRange {
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

impl Mover for CopyFileRange {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let wanted = portion(job.size_bytes - moved.bytes, self.chunk);
            match copy_file_range(job.source, None, job.sink, None, wanted) {
                Ok(0) => break,
                Ok(length) => {
                    moved.calls += 1;
                    moved.bytes += length as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for_both(job),
                Err(errno) => {
                    return Err(CallError::characteristic(
                        "copy_file_range",
                        errno,
                        moved.calls,
                    ));
                }
            }
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!("calls of at most {} bytes", self.chunk),
            "a file system with shared extents may copy no byte".to_owned(),
        ]
    }
}
