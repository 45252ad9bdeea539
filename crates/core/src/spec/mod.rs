//! Experiment files: what is asked, varied, measured and claimed.
//!
//! Architecture invariant: this module does no I/O. It turns text into an
//! [`Experiment`], a plain value that is stored with each run, so that a run
//! can be resumed and judged again although its file has changed or gone.

pub mod adhoc;
pub mod builtin;
mod error;
pub mod expression;
pub mod guest;
pub mod level;
mod overrides;
pub mod quantity;
mod raw;
mod resolve;
mod shown;
mod validate;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::claim::model::{Better, ClaimDirection};
pub use error::SpecError;
pub use guest::{GuestSettings, Knob};
pub use level::{Factor, Level};
pub use overrides::{LevelOverride, apply_levels, parse_override};
pub use resolve::{parse, shell};
pub use shown::{
    AdviceKind, AdviceSpec, FigureKind, FigureSpec, GroupSpec, LineSpec, Table, TableGroup,
    TableMean, TableRow,
};
pub use validate::{BLOCKS_MAX, FILE_SYSTEMS, SERVED_FILE_SYSTEMS};

/// Levels by factor name; picks treatments.
pub type Selector = BTreeMap<String, Level>;

/// Highest `format` of experiment files that this program reads.
pub const FORMAT_VERSION: i64 = 1;

/// An experiment with its profile applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Short name, used on the command line.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// Short name of the publication it re-examines.
    pub report: Option<String>,
    /// Profile that was applied.
    pub profile: String,
    /// The metric it is mainly about.
    pub metric: String,
    /// What each trial does.
    pub workload: WorkloadSpec,
    /// The guests that trials run in; `None` where all run on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestSettings>,
    /// What is varied, in order.
    pub factors: Vec<Factor>,
    /// Constraints that every treatment meets.
    pub constraints: Vec<String>,
    /// Metrics parsed from a command's output, by name.
    pub parsed_metrics: BTreeMap<String, ParsedMetric>,
    /// Performance counters to read.
    pub counters: Vec<String>,
    /// How long and how often.
    pub run: RunSettings,
    /// Treatments that run twice a block.
    pub twins: Vec<Selector>,
    /// Treatment to which all others are compared.
    pub reference: Option<Selector>,
    /// What is to be judged.
    pub claims: Vec<Claim>,
    /// Quantities computed from several treatments.
    pub derived: Vec<Derived>,
    /// Published tables.
    pub tables: Vec<Table>,
    /// What to draw.
    pub figures: Vec<FigureSpec>,
    /// What to advise on.
    pub advice: Vec<AdviceSpec>,
}

/// What each trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Which of the probe's works.
    pub kind: WorkloadKind,
    /// Parameters held fixed, by name.
    pub parameters: BTreeMap<String, Level>,
    /// For [`WorkloadKind::Command`]: templates by level of the factor
    /// `command`.
    pub commands: BTreeMap<String, String>,
    /// How commands are started; see [`Shell`].
    pub shell: Shell,
    /// Run once before the first trial of each treatment.
    pub setup: Option<String>,
    /// Run before every timed repetition.
    pub prepare: Option<String>,
    /// Run once after the last trial of each treatment.
    pub cleanup: Option<String>,
    /// Where standard output goes: `null`, `pipe` or a file name.
    pub output: String,
    /// Take non-zero exit statuses for measurements.
    pub ignore_failure: bool,
}

impl WorkloadSpec {
    /// Whether a command has the work directory's path put into it.
    pub fn uses_work_directory(&self) -> bool {
        let beside = [&self.setup, &self.prepare, &self.cleanup];
        let beside = beside.into_iter().flatten();
        let mut all = self.commands.values().chain(beside);
        all.any(|command| command.contains("{workdir}"))
    }
}

/// The probe's works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Moving bytes from a source to a sink.
    Copy,
    /// Writing a file with a durability.
    Write,
    /// Running a program.
    Command,
    /// Touching the lines of a buffer.
    Memory,
    /// Following a random cycle of pointers.
    Chase,
    /// Using hot pages again and again while others stream by.
    Reclaim,
    /// Counting primes in user space or in the kernel.
    Primes,
    /// Crossing into the kernel and back.
    Crossing,
    /// Sending a file from one process to another.
    Transfer,
    /// Opening, reading, writing, making and removing files by their names.
    Files,
}

/// How a command line is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// By `sh`, unless the line has nothing in it that needs a shell.
    Auto,
    /// Without a shell.
    None,
    /// By this program.
    Program(String),
}

/// A metric parsed from a command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedMetric {
    /// Regular expression whose first group is the number.
    pub pattern: String,
    /// Whether to look at standard error instead of standard output.
    pub from_stderr: bool,
    /// Unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
}

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Timed repetitions inside a trial.
    pub iterations: u32,
    /// Untimed repetitions inside a trial, before.
    pub warmup_iterations: u32,
    /// Blocks before the first look at widths.
    pub min_blocks: u32,
    /// Blocks at most.
    pub max_blocks: u32,
    /// Blocks between looks.
    pub look_every: u32,
    /// Whole blocks run and thrown away before the first.
    pub warmup_blocks: u32,
    /// Seconds after which no new block starts.
    pub time_budget_s: f64,
    /// Half-width, relative, at which an interval is narrow enough.
    pub target_ci: f64,
    /// Seconds after which a trial is stopped and counted as failed, where that
    /// was given.
    pub trial_timeout_s: Option<f64>,
}

impl RunSettings {
    /// How long a trial may take. A guest may be emulated, which takes some ten
    /// times as long.
    pub fn trial_timeout(&self, is_in_guest: bool) -> Duration {
        const MACHINE_S: f64 = 60.0;
        const GUEST_S: f64 = 600.0;
        let usual_s = if is_in_guest { GUEST_S } else { MACHINE_S };
        Duration::from_secs_f64(self.trial_timeout_s.unwrap_or(usual_s))
    }
}

/// Something to be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Identifier such as `cat.align`.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if it was published.
    pub report: Option<String>,
    /// The claim of which this is the corrected form.
    pub corrects: Option<String>,
    /// How to test it.
    pub test: Test,
    /// What it says.
    pub direction: ClaimDirection,
    /// The value it is about; lower bound for `within`.
    pub threshold: f64,
    /// Upper bound for `within`.
    pub threshold_high: Option<f64>,
    /// Published value.
    pub published: Option<f64>,
    /// Least relative margin.
    pub margin: Option<f64>,
}

/// How a claim is tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// By the ratio of a metric between two treatments of each block.
    Ratio(Contrast),
    /// By a derived quantity.
    Derived(String),
    /// Not by any run on one machine, for this reason.
    Never(String),
}

/// Two treatments, or two pairs, to be compared in each block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// Metric.
    pub metric: String,
    /// Numerator.
    pub of: Selector,
    /// Denominator.
    pub to: Selector,
    /// A second numerator and denominator by whose ratio the first is divided.
    pub per: Option<(Selector, Selector)>,
}

/// A quantity computed from several treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// Identifier.
    pub id: String,
    /// What it is, in words.
    pub text: String,
    /// How it is computed.
    pub kind: DerivedKind,
    /// Factor over whose levels it is computed.
    pub factor: String,
    /// The levels that count; all if empty.
    pub among: Vec<Level>,
    /// Metric.
    pub metric: String,
    /// Levels of the other factors.
    pub at: Selector,
}

/// Ways to compute a derived quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedKind {
    /// Smallest level whose metric is within `tolerance` of the best.
    Knee {
        /// Relative tolerance.
        tolerance: f64,
    },
    /// `1 - of/to`, the acceleration ratio, at one level: the share of the time
    /// that the faster side saves.
    Acceleration {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        /// The level.
        level: Level,
    },
    /// Level at which `1 - of/to` (the acceleration ratio) falls to `value`.
    Crossing {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        /// The acceleration looked for; 0 is where the gain ends.
        value: f64,
    },
    /// Cost of one call in t = calls·a + bytes·b.
    CostPerCall,
    /// Cost of one byte in t = calls·a + bytes·b.
    CostPerByte,
    /// Share of the per-call part at one level.
    CallShare {
        /// The level.
        level: Level,
    },
    /// Largest over smallest median among the factor's levels.
    Spread,
    /// One metric over another of the same trials, at one level.
    Quotient {
        /// The metric that it is divided by.
        per: String,
        /// The level.
        level: Level,
    },
    /// The level at which the metric goes up for the `number`th time.
    Step {
        /// Which of the steps, from 1.
        number: usize,
        /// Least relative rise of a step.
        rise: f64,
    },
}

impl Experiment {
    /// Checks the experiment as a whole; needed only for one that was not made
    /// by [`parse`].
    ///
    /// # Errors
    /// If it asks for what cannot be.
    pub fn check(&self) -> Result<(), String> {
        validate::check(self).map_err(|problem| problem.message)
    }

    /// The factor of a name.
    pub fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// The value of a parameter that is held fixed, of the workload or the guest.
    pub fn fixed(&self, name: &str) -> Option<&Level> {
        let of_workload = self.workload.parameters.get(name);
        of_workload.or_else(|| self.guest.as_ref()?.fixed(name))
    }
}

#[cfg(test)]
mod tests;
