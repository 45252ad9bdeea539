//! How long and how often an experiment measures.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toll_stats::Looks;

/// What a comparison continues for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonGoal {
    /// An interval as narrow as requested.
    #[default]
    Precision,
    /// An interval as narrow as requested, and a decision, within a time that the user set.
    Decision,
    /// A result after some seconds, because the user set no limit and few users want to wait.
    QuickAnswer,
}

/// Most blocks in a run. An exact interval looks at all pairs of blocks, which take
/// 100 MB at this limit.
pub const BLOCKS_MAX: u32 = 5_000;

/// How long and how often to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Timed repetitions inside a trial.
    pub iterations: u32,
    /// Untimed repetitions inside a trial, before the timed ones.
    pub warmup_iterations: u32,
    /// Number of blocks before the first look at the results.
    pub min_blocks: u32,
    /// Maximum number of blocks.
    pub max_blocks: u32,
    /// Whether treatments that no claim compares are left out.
    #[serde(default)]
    pub claims_only: bool,
    /// Number of whole blocks that run before the measured ones and are discarded.
    pub warmup_blocks: u32,
    /// Seconds after which no new block starts.
    pub time_budget_s: f64,
    /// What a comparison continues for.
    #[serde(default)]
    pub comparison_goal: ComparisonGoal,
    /// Relative half-width at which an interval is narrow enough.
    pub target_ci: f64,
    /// Seconds after which a trial is stopped and counted as failed, if given.
    pub trial_timeout_s: Option<f64>,
    /// Smallest change for the worse, as a share, that comparisons must decide about. The run
    /// continues until the comparisons are decided, and twins run with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression_limit: Option<f64>,
}

impl RunSettings {
    /// Returns after which blocks the run may end because of its results.
    pub fn looks(&self) -> Looks {
        Looks {
            first: self.min_blocks as usize,
            last: self.max_blocks as usize,
        }
    }

    /// Returns how long a trial may take. A guest may be emulated, so a trial in it gets ten times
    /// as long.
    pub fn trial_timeout(&self, is_in_guest: bool) -> Duration {
        const MACHINE_S: f64 = 60.0;
        const GUEST_S: f64 = 600.0;
        let usual_s = if is_in_guest { GUEST_S } else { MACHINE_S };
        Duration::from_secs_f64(self.trial_timeout_s.unwrap_or(usual_s))
    }
}
