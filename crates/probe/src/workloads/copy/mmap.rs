//! `mmap` of the source and `write` from the mapping.

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use toll_wire::Failure;

use super::mover::{CallError, Job, Moved, Mover, chunk_or_all, portion, write_all};
use crate::buffer::page_bytes;
use crate::mapping::Mapping;

/// Writes a mapping in chunks. Mapping and unmapping are part of the method and
/// so inside the timed region, as are the mapping's page faults.
pub struct Mapped {
    chunk: usize,
    /// Bytes mapped at a time, in whole pages; `None` maps the whole source.
    window_bytes: Option<usize>,
}

/// Returns the bytes of a window for calls of at most `buffer_bytes`: whole pages.
pub fn window_bytes(buffer_bytes: usize) -> usize {
    buffer_bytes.next_multiple_of(page_bytes())
}

impl Mapped {
    /// Returns a copier that writes `buffer_bytes` at a time, or all if absent, from
    /// one private mapping.
    pub fn whole(buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        Ok(Self {
            chunk: chunk_or_all(buffer_bytes)?,
            window_bytes: None,
        })
    }

    /// Returns a copier that writes at most `buffer_bytes` at a time, from shared
    /// mappings of [`window_bytes`].
    pub fn by_windows(buffer_bytes: usize) -> Self {
        Self {
            chunk: buffer_bytes,
            window_bytes: Some(window_bytes(buffer_bytes)),
        }
    }

    fn run_whole(&self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut calls = 0;
        // A mapping of 0 bytes is an error (mmap(2)), and there is nothing to copy.
        if job.size_bytes > 0 {
            let length = usize::try_from(job.size_bytes).map_err(|_| Errno::NOMEM);
            let mapping = length
                .and_then(|length| {
                    Mapping::of_file(job.source, 0, length, ProtFlags::READ, MapFlags::PRIVATE)
                })
                .map_err(|errno| CallError::characteristic("mmap", errno, 0))?;
            // SAFETY: the bytes only go to write(2).
            for chunk in unsafe { mapping.bytes() }.chunks(self.chunk) {
                write_all(job.sink, chunk, &mut calls)?;
            }
        }
        Ok(Moved {
            bytes: job.size_bytes,
            calls,
        })
    }

    fn run_windows(&self, job: &Job<'_>, window_bytes: usize) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let length = portion(job.size_bytes - moved.bytes, window_bytes);
            let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
            let window = Mapping::of_file(job.source, moved.bytes, length, access, flags)
                .map_err(|errno| CallError::characteristic("mmap", errno, moved.calls))?;
            // SAFETY: the bytes only go to write(2).
            for chunk in unsafe { window.bytes() }.chunks(self.chunk) {
                write_all(job.sink, chunk, &mut moved.calls)?;
            }
            moved.bytes += length as u64;
        }
        Ok(moved)
    }
}

impl Mover for Mapped {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        match self.window_bytes {
            None => self.run_whole(job),
            Some(window_bytes) => self.run_windows(job, window_bytes),
        }
    }

    fn notes(&self) -> Vec<String> {
        let from = match self.window_bytes {
            None => "the mapping".to_owned(),
            Some(window_bytes) => format!("windows of {window_bytes} bytes"),
        };
        vec![format!(
            "writes of at most {} bytes from {from}",
            self.chunk
        )]
    }
}
