//! Everything concluded from one run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Comparison, DerivedEstimate, Explanation, Figure, Metric, Overall, Price, PublishedTable,
    Staircase, TreatmentSummary, TwinSummary, Verdict,
};

/// Everything concluded from one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// Blocks in which every testable treatment has an outcome.
    pub blocks: usize,
    /// The metric that the experiment is mainly about; always in `metrics`.
    pub primary_metric: String,
    /// Metrics that appear in the run, by name.
    pub metrics: BTreeMap<String, Metric>,
    /// Factors in the order of the experiment file.
    pub factors: Vec<FactorSummary>,
    /// One for every treatment of the plan, in plan order; twins come last.
    pub treatments: Vec<TreatmentSummary>,
    /// The A/A comparisons.
    pub twins: Vec<TwinSummary>,
    /// One for every claim of the experiment, in its order.
    pub verdicts: Vec<Verdict>,
    /// One for every check of the machine and the instrument: `supported` means passed,
    /// `refuted` means failed. Each is judged on its own, at 99 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Verdict>,
    /// Quantities computed from several treatments, such as a knee.
    pub derived: Vec<DerivedEstimate>,
    /// Price of each row, in an experiment of rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Price>,
    /// Curves that rise in steps, if the experiment asks for the steps.
    #[serde(default)]
    pub staircases: Vec<Staircase>,
    /// Every treatment against the reference, if the experiment names one.
    pub comparisons: Vec<Comparison>,
    /// Summary of the comparisons, if they are a list of differences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Overall>,
    /// Why treatments differ, if they were profiled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
    /// Published tables with the measured values beside them.
    pub tables: Vec<PublishedTable>,
    /// Curves and distributions to draw, in order.
    pub figures: Vec<Figure>,
    /// Advice for this machine, drawn from this run's intervals.
    pub advice: Vec<Advice>,
    /// The guests that trials ran in, if any did.
    #[serde(default)]
    pub guests: Vec<GuestSummary>,
    /// What disturbed the trials.
    pub disturbances: Vec<DisturbanceSummary>,
    /// What a reader must know before trusting the numbers.
    pub warnings: Vec<String>,
    /// Notes that apply to all treatments, such as how a metric is taken.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Comparison {
    /// Returns how far apart two runs of the reference may be, as a share; `None` if it has
    /// no A/A twin.
    pub fn noise(&self, analysis: &Analysis) -> Option<f64> {
        let label = &analysis.treatments[self.reference].label;
        let mut twins = analysis.twins.iter();
        let twin = twins.find(|one| one.label == *label && one.metric == self.metric)?;
        Some(twin.reach())
    }
}

/// A factor of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorSummary {
    /// Its name in the experiment file.
    pub name: String,
    /// Its levels as labels, in order.
    pub levels: Vec<String>,
    /// The levels as numbers (bytes for sizes) if all of them are numeric.
    pub numbers: Option<Vec<f64>>,
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What it is about: `into a pipe, warm cache`.
    pub topic: String,
    /// What to do, or that the data do not decide.
    pub text: String,
    /// Whether the data decide.
    pub decided: bool,
    /// Numbers that support it, each in a short sentence with its interval.
    pub evidence: Vec<String>,
    /// How many times worse the median of the other choices is than the advised one; absent
    /// if nothing else was measured.
    #[serde(default)]
    pub gain: Option<f64>,
}

/// One kind of disturbance over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbanceSummary {
    /// Its name, such as `steal_ns`.
    pub name: String,
    /// Description, with why it matters.
    pub text: String,
    /// Trials in which it was recorded.
    pub trials_recorded: usize,
    /// Trials in which it was above zero.
    pub trials_affected: usize,
    /// Median over trials.
    pub median: f64,
    /// Largest value.
    pub maximum: f64,
}

/// All boots of a run with the same parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestSummary {
    /// Boot parameters: level by name.
    pub levels: BTreeMap<String, String>,
    /// What executed their instructions: `kvm`, `tcg` or `icount`; `None` if
    /// none of them came up.
    pub accelerator: Option<String>,
    /// Facts about the first one that came up, as seen from inside, by name.
    pub facts: BTreeMap<String, String>,
    /// Number of boots.
    pub boots: usize,
    /// Boots that did not come up, or ended early.
    pub failed: usize,
    /// The first of their errors.
    pub first_error: Option<String>,
    /// Median time from start until the guest accepted requests, in nanoseconds; `None` if
    /// none came up.
    pub boot_ns: Option<f64>,
}
