//! What a run consists of: its plan, its trials, and the machine they ran on.

mod boot;
mod machine;
mod profile;
mod record;
mod trial;

use crate::plan::Treatment;
use crate::spec::Experiment;

pub use boot::{BootRecord, LOG_BYTES_MAX, PartnerRecord};
pub use machine::{FileSystem, Machine};
pub use profile::{ProfileRecord, ProfiledFunction, ProfiledTrial};
pub use record::{RunRecord, RunStatus};
pub use trial::{TrialRecord, TrialState};

/// Everything that is stored for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub run: RunRecord,
    /// Experiment of the run, with profile and command-line levels applied.
    pub experiment: Experiment,
    /// Treatments of the run, in plan order.
    pub treatments: Vec<Treatment>,
    /// Trials of the run, in the order in which they ran.
    pub trials: Vec<TrialRecord>,
    /// Boots of the run's guests, in order.
    pub boots: Vec<BootRecord>,
    /// Profiles of the run's treatments, in the order in which they were made.
    pub profiles: Vec<ProfileRecord>,
}
