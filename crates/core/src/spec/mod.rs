//! Experiment files: question, factors, metrics and claims.
//!
//! Architecture invariant: this module does no I/O. It turns text into an
//! [`Experiment`], a plain value that is stored with each run, so that a run
//! can be resumed and judged again after its file was changed or removed.

pub mod adhoc;
pub mod builtin;
mod claims;
pub(crate) mod constraints;
mod derived;
mod error;
pub mod expression;
mod file;
pub mod guest;
mod kernel_name;
mod kernels;
mod left_out;
pub mod level;
mod near;
mod overrides;
mod parts;
mod platform;
mod published;
pub mod quoting;
mod references;
mod row;
mod shown;
pub mod trees;
mod validate;
mod workload;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toll_stats::Looks;
pub use toll_wire::{Better, WorkloadKind, quantity};

pub use claims::{Claim, ClaimDirection, Contrast, Test};
pub use derived::{Derived, DerivedKind};
pub use error::SpecError;
pub use file::{located, parse};
pub use guest::{GuestSettings, Knob};
pub use kernel_name::KernelName;
pub use level::{Factor, Level};
pub use near::{nearest, suggestion};
pub use overrides::{LevelOverride, apply_levels, parse_override};
pub use parts::ReportPart;
pub use platform::{FACTS, KERNEL, Platform};
pub use row::{ROW, Row};
pub use shown::{
    AdviceKind, AdviceSpec, FigureKind, FigureSpec, GroupSpec, LineSpec, Table, TableMean,
    TableQuantity, TableRow,
};
pub use validate::{BLOCKS_MAX, Problem};
pub use workload::{NOWHERE, PerCommand, Shell, WorkloadSpec, shell};

/// Levels by factor name, which select treatments.
pub type Selector = BTreeMap<String, Level>;

/// Adds levels of factors that a selector does not name yet.
fn join(selector: &mut Selector, at: &Selector) {
    for (name, level) in at {
        selector
            .entry(name.clone())
            .or_insert_with(|| level.clone());
    }
}

/// An experiment with its profile applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Short name, used on the command line.
    pub name: String,
    /// Heading.
    pub title: String,
    /// The question that it asks.
    pub question: String,
    /// Short name of the publication it re-examines.
    pub report: Option<String>,
    /// Profile that was applied.
    pub profile: String,
    /// Main metric.
    pub metric: String,
    /// Further metrics in which treatments are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_metrics: Vec<String>,
    /// What each trial does.
    pub workload: WorkloadSpec,
    /// Workloads that differ between treatments: the levels of the factor `row`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// The guests that trials run in; `None` if all trials run on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestSettings>,
    /// Factors, in order.
    pub factors: Vec<Factor>,
    /// Constraints that every treatment must meet.
    pub constraints: Vec<String>,
    /// Metrics parsed from a command's output, by name.
    pub parsed_metrics: BTreeMap<String, ParsedMetric>,
    /// Performance counters to read.
    pub counters: Vec<String>,
    /// How long and how often to measure.
    pub run: RunSettings,
    /// Treatments that run twice in each block; empty means the first treatment.
    pub twins: Vec<Selector>,
    /// Whether no treatment runs twice: the run is a step of a search, which has its own
    /// check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_twin: bool,
    /// Treatment with which all others are compared.
    pub reference: Option<Selector>,
    /// The work trees of two commits, if the experiment compares commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<trees::Trees>,
    /// Claims to judge.
    pub claims: Vec<Claim>,
    /// Claims whose levels this profile leaves out, each with the first profile that has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_to: BTreeMap<String, String>,
    /// Quantities computed from several treatments.
    pub derived: Vec<Derived>,
    /// Parts of the publication, with their counterparts here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReportPart>,
    /// Published tables.
    pub tables: Vec<Table>,
    /// Figures to draw.
    pub figures: Vec<FigureSpec>,
    /// Topics to advise on.
    pub advice: Vec<AdviceSpec>,
    /// Machines that the publication describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
}

/// A metric parsed from a command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParsedMetric {
    /// Regular expression whose first group is the number.
    pub pattern: String,
    #[serde(default)]
    pub stream: OutputStream,
    #[serde(default)]
    pub unit: String,
    #[serde(default)]
    pub better: Better,
}

/// An output of a command.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    #[default]
    Stdout,
    Stderr,
}

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonGoal {
    /// An interval as narrow as requested.
    #[default]
    Precision,
    /// Such an interval, and a decision: the user said how long it may take.
    Decision,
    /// Whatever is known after some seconds: the user set no limit, and few want to wait.
    QuickAnswer,
}

/// How long and how often to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Timed repetitions inside a trial.
    pub iterations: u32,
    /// Untimed repetitions inside a trial, before the timed ones.
    pub warmup_iterations: u32,
    /// Blocks before the first look.
    pub min_blocks: u32,
    /// Maximum number of blocks.
    pub max_blocks: u32,
    /// Whether treatments that no claim compares are left out.
    #[serde(default)]
    pub claims_only: bool,
    /// Whole blocks that run before the first one and are discarded.
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
    /// Smallest change for the worse, as a share, that comparisons must decide about. They
    /// continue until they can, and their twins run with them.
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

    /// Returns how long a trial may take. A guest may be emulated, so it gets ten times
    /// as long.
    pub fn trial_timeout(&self, is_in_guest: bool) -> Duration {
        const MACHINE_S: f64 = 60.0;
        const GUEST_S: f64 = 600.0;
        let usual_s = if is_in_guest { GUEST_S } else { MACHINE_S };
        Duration::from_secs_f64(self.trial_timeout_s.unwrap_or(usual_s))
    }
}

impl Experiment {
    /// Makes the run continue until its comparisons are decided against a limit (a share)
    /// or its time ends. An experiment with claims keeps its number of blocks.
    pub fn decide_against(&mut self, limit: f64) {
        /// At least a minute for commands of 20 ms, each in three copies.
        const BLOCKS: u32 = 1000;
        self.run.regression_limit = Some(limit);
        if self.claims.is_empty() {
            self.run.max_blocks = match self.run.comparison_goal {
                // The user did not say how long it may take.
                ComparisonGoal::QuickAnswer => BLOCKS,
                _ => self.run.max_blocks.max(BLOCKS),
            };
        }
    }

    /// Checks the experiment as a whole; needed only if [`parse`] did not make it.
    pub fn check(&self) -> Result<(), String> {
        validate::check(self).map_err(|problem| problem.message)
    }

    /// Refuses a compared metric that no trial of the experiment can have.
    pub fn check_metric(&self) -> Result<(), String> {
        references::check_metric(self).map_err(|problem| problem.message)
    }

    /// Returns the claims that are judged together.
    pub fn claim_family(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| !claim.is_check)
    }

    /// Returns the checks of the machine and the instrument, each judged on its own.
    pub fn checks(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.is_check)
    }

    /// Returns the metrics in which treatments are compared, the main one first.
    pub fn compared_metrics(&self) -> impl Iterator<Item = &str> {
        let further = self.further_metrics.iter();
        std::iter::once(&self.metric)
            .chain(further)
            .map(String::as_str)
    }

    /// Sets the metrics in which treatments are compared; the first is the main one.
    pub fn compare_in(&mut self, metrics: &[String]) {
        let Some((main, further)) = metrics.split_first() else {
            return;
        };
        self.metric.clone_from(main);
        self.further_metrics.clear();
        for metric in further {
            if !self.compared_metrics().any(|known| known == metric) {
                self.further_metrics.push(metric.clone());
            }
        }
    }

    /// Returns the factor with a name.
    pub fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// Returns the value of a fixed parameter of the workload or the guest.
    pub fn fixed(&self, name: &str) -> Option<&Level> {
        let of_workload = self.workload.parameters.get(name);
        of_workload.or_else(|| self.guest.as_ref()?.parameters.get(name))
    }

    /// Returns all combinations of the levels of some factors, each added to `at`.
    pub(crate) fn combinations(&self, names: &[String], at: &Selector) -> Vec<Selector> {
        let mut all = vec![at.clone()];
        for factor in names.iter().filter_map(|name| self.factor(name)) {
            let with = |at: &Selector, level: &Level| {
                let mut at = at.clone();
                at.insert(factor.name.clone(), level.clone());
                at
            };
            let levels = |at| factor.levels.iter().map(move |level| with(at, level));
            all = all.iter().flat_map(levels).collect();
        }
        all
    }

    /// Returns all levels of all factors, each with the factor's name.
    pub fn varied(&self) -> impl Iterator<Item = (&String, &Level)> {
        self.factors
            .iter()
            .flat_map(|factor| factor.levels.iter().map(move |level| (&factor.name, level)))
    }
}

#[cfg(test)]
mod tests;
