//! A trial before it has an outcome.

use std::time::Instant;

/// A trial that is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedTrial {
    pub block: u32,
    /// Position in the block.
    pub position: usize,
    pub treatment: usize,
    /// Whether its block is a warm-up, which is thrown away; those are numbered separately.
    pub is_warmup: bool,
}

/// A running trial.
pub(super) struct RunningTrial {
    pub planned: PlannedTrial,
    /// RFC 3339 in UTC.
    pub started_at: String,
    pub begin: Instant,
}

impl RunningTrial {
    pub fn begin(planned: PlannedTrial) -> Self {
        Self {
            planned,
            started_at: jiff::Timestamp::now().to_string(),
            begin: Instant::now(),
        }
    }
}
