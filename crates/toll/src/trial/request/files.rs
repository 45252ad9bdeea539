//! Requests to work on files.

use std::path::Path;

use toll_wire::{FilesOperation, FilesRequest, Workload};

use super::TrialRequest;
use crate::trial::files::Files;

/// Bytes of the one file where none are named.
const DEFAULT_BYTES: u64 = 16 << 20;
/// Bytes of a small file where none are named.
const DEFAULT_SMALL_BYTES: u64 = 4 << 10;
/// Small files where none are named.
const DEFAULT_COUNT: u64 = 1000;
/// Buffer where none is named, in bytes: what GNU `cp` and `cat` take.
const DEFAULT_BUFFER_BYTES: u64 = 128 << 10;

impl TrialRequest<'_> {
    /// Most bytes that the files of a trial have at a time.
    ///
    /// # Errors
    /// If a parameter cannot be read.
    pub(super) fn files_bytes(&self) -> Result<u64, String> {
        let operation: FilesOperation = self.word("operation", "read-sequential")?;
        let bytes = match operation.is_of_tree() {
            // A file takes a block of its own at least.
            true => {
                let small = self.bytes("small_size", DEFAULT_SMALL_BYTES)?;
                small.next_multiple_of(4096).max(4096) * self.count("count", DEFAULT_COUNT)?
            }
            false => self.bytes("size", DEFAULT_BYTES)?,
        };
        // What an untimed pass makes is beside what the timed one does.
        Ok(2 * bytes)
    }

    /// The request for one trial.
    ///
    /// # Errors
    /// If a parameter cannot be read.
    pub(super) fn files(
        &self,
        files: Files<'_>,
        directory: &Path,
        seed: u64,
    ) -> Result<Workload, String> {
        let calls = self.level("calls");
        Ok(Workload::Files(FilesRequest {
            operation: self.word("operation", "read-sequential")?,
            directory: directory.to_owned(),
            below: files.below(&self.file_system())?,
            size_bytes: self.bytes("size", DEFAULT_BYTES)?,
            small_bytes: self.bytes("small_size", DEFAULT_SMALL_BYTES)?,
            count: self.count("count", DEFAULT_COUNT)?,
            buffer_bytes: self.bytes("buffer", DEFAULT_BUFFER_BYTES)?,
            calls: calls.map(|_| self.count("calls", 1)).transpose()?,
            durability: self.word("durability", "none")?,
            cache: self.word("cache", "warm")?,
            seed,
        }))
    }
}
