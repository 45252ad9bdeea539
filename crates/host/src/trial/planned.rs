//! A trial before it has an outcome.

use std::time::Instant;

/// A trial that is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedTrial {
    pub block: u32,
    /// The trial's position in its block.
    pub position: usize,
    pub treatment: usize,
    /// Whether the block is a warm-up, which is thrown away. Warm-up blocks are numbered
    /// separately.
    pub is_warmup: bool,
}

/// A running trial.
pub(super) struct RunningTrial {
    pub planned: PlannedTrial,
    /// When the trial began, RFC 3339 in UTC.
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
