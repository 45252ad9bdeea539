//! What `toll` itself costs: its part of a trial, the clock that it reads, what
//! of a run is not measured, and how long it takes over many samples.
//!
//! Architecture invariant: as in [`crate::document`], a [`Document`] holds
//! every value that was measured, and [`table::render`] makes the whole table of
//! it alone.

mod harness;
pub mod measure;
mod program;
pub mod table;
mod timer;
mod volume;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kept::Kept;
use crate::machine::Machine;

/// Version of the format.
pub const VERSION: u32 = 1;

/// Samples of the runs that are reported and compared, the most last.
pub const SAMPLES: [u64; 3] = [250_000, 500_000, 1_000_000];

/// Something that is measured once a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// Starting `true` and waiting for it, in nanoseconds.
    SpawnNs,
    /// A trial of `true` less the command itself, the store in memory, in
    /// nanoseconds.
    HarnessNs,
    /// The same with the store on a disk, to which each trial is committed.
    HarnessDiskNs,
    /// One reading of the clock of timed regions, in nanoseconds.
    ClockNs,
    /// An empty system call as `toll run crossing` measures it, in nanoseconds.
    TollCallNs,
    /// The same by `perf bench syscall basic`.
    PerfCallNs,
    /// The same by lmbench's `lat_syscall null`.
    LmbenchCallNs,
    /// Share of a run's wall time outside of timed regions.
    UnmeasuredShare,
    /// Wall time of `toll list`, in nanoseconds.
    ListNs,
}

/// What is asked of a store of many samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// `toll show`.
    Show,
    /// `toll report`, the HTML file.
    Report,
    /// `toll compare` of two runs of so many samples each.
    Compare,
}

/// All of them.
pub const QUESTIONS: [Question; 3] = [Question::Show, Question::Report, Question::Compare];

/// What an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// Samples of a run.
    pub samples: u64,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// Largest resident set, in bytes.
    pub max_rss_bytes: u64,
}

/// A run of `bench-toll`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Time of the start in UTC, to the second.
    pub date: String,
    /// Command line of the run.
    pub command_line: String,
    /// The machine.
    pub machine: Machine,
    /// What the programs say of themselves.
    pub versions: Vec<String>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// How long the command of [`Series::UnmeasuredShare`] takes, in milliseconds.
    pub work_ms: f64,
    /// Runs in the store that is listed.
    pub runs_listed: usize,
    /// A value for each block; all blocks have all series that there are.
    pub series: BTreeMap<Series, Vec<f64>>,
    /// Every answer over many samples.
    pub answers: Vec<Answer>,
}

impl Kept for Document {
    const VERSION: u32 = VERSION;
    const NAME: &'static str = "toll";

    fn version(&self) -> u32 {
        self.version
    }

    fn table(&self) -> String {
        table::render(self)
    }
}
