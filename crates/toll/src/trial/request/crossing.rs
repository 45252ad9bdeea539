//! Requests to cross into the kernel.

use toll_wire::{CrossingRequest, Workload};

use super::TrialRequest;

/// Bytes of a copy where none are named.
const DEFAULT_BYTES: u64 = 4;
/// Calls where none are named.
const DEFAULT_CALLS: u64 = 1000;

impl TrialRequest<'_> {
    /// The request for one trial.
    ///
    /// # Errors
    /// If a parameter cannot be read.
    pub(super) fn crossing(&self) -> Result<Workload, String> {
        Ok(Workload::Crossing(CrossingRequest {
            operation: self.word("operation", "empty-syscall")?,
            size_bytes: self.bytes("size", DEFAULT_BYTES)?,
            calls: self.count("calls", DEFAULT_CALLS)?,
            cpus: self.word("cpus", "one")?,
        }))
    }
}
