//! How long and how often an experiment measures.

use std::time::Duration;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use toll_stats::Looks;

use super::level::share;
use super::quantity::parse_duration;

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

/// Seconds that a trial may take if nothing else is set.
pub const TRIAL_TIMEOUT_S: f64 = 60.0;

/// The same in a guest, which may be emulated.
pub const GUEST_TRIAL_TIMEOUT_S: f64 = 600.0;

/// Maximum number of blocks in a run. An exact interval looks at all pairs of blocks, which take
/// 100 MB at this limit.
pub const BLOCKS_MAX: u32 = 5_000;

/// Defines [`RunSettings`], and [`RunTable`] with those settings that files can have. Such a
/// setting has brackets, with its type in files and how it is read.
macro_rules! run_settings {
    ($($(#[$attribute:meta])* $name:ident: $kind:ty $(= [$value:ty $(, $($read:tt)+)?])?;)*) => {
        /// How long and how often to measure.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
        pub struct RunSettings {
            $($(#[$attribute])* pub $name: $kind,)*
        }

        /// The section `run` of an experiment file, or of a profile in it.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct RunTable {
            $($($(#[serde($($read)+)])? $name: Option<$value>,)?)*
        }

        impl RunSettings {
            /// Replaces the settings that a table has.
            pub(super) fn with(self, table: RunTable) -> Self {
                Self {
                    $($($name: table.$name.map_or(self.$name, <$kind as From<$value>>::from),)?)*
                    ..self
                }
            }
        }
    };
}

run_settings! {
    /// Timed repetitions inside a trial.
    iterations: u32 = [u32];
    /// Untimed repetitions inside a trial, before the timed ones.
    warmup_iterations: u32 = [u32];
    /// Number of blocks before the first look at the results.
    min_blocks: u32 = [u32];
    /// Maximum number of blocks.
    max_blocks: u32 = [u32];
    /// Whether treatments that no claim compares are left out.
    #[serde(default)]
    claims_only: bool = [bool];
    /// Number of whole blocks that run before the measured ones and are discarded.
    warmup_blocks: u32 = [u32];
    /// Seconds after which no new block starts.
    time_budget_s: f64 = [f64, rename = "time_budget", deserialize_with = "seconds"];
    /// What a comparison continues for.
    #[serde(default)]
    comparison_goal: ComparisonGoal;
    /// Relative half-width at which an interval is narrow enough.
    target_ci: f64 = [f64, deserialize_with = "share"];
    /// Seconds after which a trial is stopped and counted as failed, if given.
    trial_timeout_s: Option<f64> = [f64, rename = "trial_timeout", deserialize_with = "seconds"];
    /// Smallest change for the worse, as a share, that comparisons must decide about. The run
    /// continues until the comparisons are decided, and twins run with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    regression_limit: Option<f64>;
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let duration = parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)?;
    Ok(Some(duration.as_secs_f64()))
}

impl RunSettings {
    /// Returns a profile's settings for everything that an experiment leaves open.
    pub(super) fn of_profile(profile: &str) -> Self {
        let (min_blocks, max_blocks, time_budget_s, target_ci) = match profile {
            "quick" => (8, 20, 60.0, 0.05),
            "full" => (20, 200, 3600.0, 0.01),
            _ => (8, 60, 600.0, 0.02),
        };
        Self {
            iterations: 1,
            min_blocks,
            max_blocks,
            time_budget_s,
            target_ci,
            ..Self::default()
        }
    }

    /// Returns after which blocks the run may end because of its results.
    pub fn looks(&self) -> Looks {
        Looks {
            first: self.min_blocks as usize,
            last: self.max_blocks as usize,
        }
    }

    /// Returns how long a trial may take.
    pub fn trial_timeout(&self, is_in_guest: bool) -> Duration {
        let usual_s = if is_in_guest {
            GUEST_TRIAL_TIMEOUT_S
        } else {
            TRIAL_TIMEOUT_S
        };
        Duration::from_secs_f64(self.trial_timeout_s.unwrap_or(usual_s))
    }
}
