//! `sendfile` (sendfile(2)) and `copy_file_range` (copy_file_range(2)). The first splices inside
//! the kernel. A file system may answer the second by sharing blocks instead of copying bytes.

use rustix::fs::{copy_file_range, sendfile};
use rustix::io::Errno;
use toll_wire::Failure;

use super::mover::{CALL_BYTES_MAX, CallError, Job, Moved, Mover, chunk_or_all};
use super::mover::{portion, wait_for_both};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Sendfile,
    CopyFileRange,
}

pub struct InKernel {
    call: Call,
    chunk: usize,
}

impl InKernel {
    /// Returns a copier that requests `buffer_bytes` at a time, or all if absent.
    pub fn new(call: Call, buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        let chunk = chunk_or_all(buffer_bytes)?;
        Ok(Self { call, chunk })
    }

    pub fn all(call: Call) -> Self {
        Self {
            call,
            chunk: CALL_BYTES_MAX,
        }
    }
}

impl Mover for InKernel {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let (source, sink) = (job.source, job.sink);
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let wanted = portion(job.size_bytes - moved.bytes, self.chunk);
            let (name, result) = match self.call {
                Call::Sendfile => ("sendfile", sendfile(sink, source, None, wanted)),
                Call::CopyFileRange => (
                    "copy_file_range",
                    copy_file_range(source, None, sink, None, wanted),
                ),
            };
            match result {
                Ok(0) => break,
                Ok(length) => {
                    moved.calls += 1;
                    moved.bytes += length as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for_both(job),
                Err(errno) => return Err(CallError::characteristic(name, errno, moved.calls)),
            }
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("calls of at most {} bytes", self.chunk)];
        if self.call == Call::CopyFileRange {
            notes.push("a file system with shared extents may copy no bytes".to_owned());
        }
        notes
    }
}
