//! The options that limit the length of a run.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use toll_core::spec::quantity::{parse_duration, parse_share};
use toll_core::spec::{ComparisonGoal, GUEST_TRIAL_TIMEOUT_S, RunSettings, TRIAL_TIMEOUT_S};
use toll_host::trial::COMPARISON;
use toll_system::Failure;

/// Limits of a run. A run that is continued may get others.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Limits {
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_duration,
        help = format!(
            "Time after which no new block begins, for all experiments together (90s, 5min, 2h); \
             without it, commands are compared for {} s each",
            COMPARISON.as_secs()
        )
    )]
    pub time_budget: Option<Duration>,
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_duration,
        help = format!(
            "Time after which a single trial is stopped and counted as failed (90s) [default: the \
             experiment's; without one, {TRIAL_TIMEOUT_S} s, or {GUEST_TRIAL_TIMEOUT_S} s in a guest]"
        )
    )]
    pub trial_timeout: Option<Duration>,
    /// Relative half-width at which an interval is narrow enough (2%)
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub target_ci: Option<f64>,
    /// Run exactly this many blocks, unless the time budget ends first
    #[arg(short = 'r', long, value_name = "BLOCKS", conflicts_with_all = ["min_runs", "max_runs"])]
    pub runs: Option<u32>,
    /// Run at least this many blocks
    #[arg(short = 'm', long, value_name = "BLOCKS")]
    pub min_runs: Option<u32>,
    /// Run at most this many blocks
    #[arg(short = 'M', long, value_name = "BLOCKS")]
    pub max_runs: Option<u32>,
}

impl Limits {
    /// Checks conditions that the parser cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        let (min, max) = (
            self.min_runs.unwrap_or(1),
            self.max_runs.unwrap_or(u32::MAX),
        );
        if self.runs == Some(0) || min == 0 || max < min {
            bail!(Failure::Usage(
                "cannot run: --runs and --min-runs must be at least 1, and --max-runs at least \
                 --min-runs"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Whether any limit is given.
    pub fn is_any_set(&self) -> bool {
        *self != Self::default()
    }

    /// Applies the limits to the settings of an experiment.
    pub fn apply(&self, run: &mut RunSettings) {
        if let Some(blocks) = self.runs {
            (run.min_blocks, run.max_blocks) = (blocks, blocks);
        }
        if let Some(blocks) = self.max_runs {
            run.max_blocks = blocks;
            run.min_blocks = run.min_blocks.min(blocks);
        }
        if let Some(blocks) = self.min_runs {
            run.min_blocks = blocks;
            run.max_blocks = run.max_blocks.max(blocks);
        }
        if let Some(share) = self.target_ci {
            run.target_ci = share;
            run.comparison_goal = ComparisonGoal::Precision;
        }
        if let Some(budget) = self.time_budget {
            run.time_budget_s = budget.as_secs_f64();
            run.comparison_goal = ComparisonGoal::Decision;
        }
        if let Some(limit) = self.trial_timeout {
            run.trial_timeout_s = Some(limit.as_secs_f64());
        }
    }
}
