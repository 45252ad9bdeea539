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
    /// Summary of every treatment of the plan, in plan order; twins come last.
    pub treatments: Vec<TreatmentSummary>,
    /// The A/A comparisons.
    pub twins: Vec<TwinSummary>,
    /// Verdict on every claim of the experiment, in the order of the file.
    pub verdicts: Vec<Verdict>,
    /// Result of every check of the machine and the instrument: `supported` means passed, `refuted`
    /// means failed. Each check is judged on its own, at 99 %.
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
    /// Comparison of every treatment with the reference, if the experiment names one.
    pub comparisons: Vec<Comparison>,
    /// Summary of the comparisons, if the comparisons are a list of differences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Overall>,
    /// Why treatments differ, if the treatments were profiled.
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
    /// Warnings that a reader needs before trusting the numbers.
    pub warnings: Vec<String>,
    /// Notes that apply to all treatments, such as how a metric is measured.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Comparison {
    /// Returns how far apart two runs of the reference may be, as a share; `None` if the reference
    /// has no A/A twin.
    pub fn noise(&self, analysis: &Analysis) -> Option<f64> {
        let label = &analysis.treatments[self.reference].label;
        let mut twins = analysis.twins.iter();
        let twin = twins.find(|one| one.label == *label && one.metric == self.metric)?;
        Some(twin.ratio.reach())
    }
}

/// A factor of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorSummary {
    /// Name of the factor in the experiment file.
    pub name: String,
    /// Labels of the levels, in order.
    pub levels: Vec<String>,
    /// The levels as numbers (bytes for sizes), if all levels are numeric.
    pub numbers: Option<Vec<f64>>,
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What the advice is about: `into a pipe, warm cache`.
    pub topic: String,
    /// The advice in words, or the statement that the data do not decide.
    pub text: String,
    /// Whether the data decide.
    pub decided: bool,
    /// Numbers that support the advice, each in a short sentence with its interval.
    pub evidence: Vec<String>,
    /// By what factor the median of the other choices is worse than the advised one; absent if
    /// nothing else was measured.
    #[serde(default)]
    pub gain: Option<f64>,
}

/// One kind of disturbance over all trials of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbanceSummary {
    /// Name of the disturbance, such as `steal_ns`.
    pub name: String,
    /// Description of the disturbance, and why it matters.
    pub text: String,
    /// Number of trials in which the disturbance was recorded.
    pub trials_recorded: usize,
    /// Number of trials in which the disturbance was above zero.
    pub trials_affected: usize,
    /// Median of the disturbance over trials.
    pub median: f64,
    /// Largest value of the disturbance.
    pub maximum: f64,
}

/// All boots of a run with the same parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestSummary {
    /// Boot parameters: level by name.
    pub levels: BTreeMap<String, String>,
    /// What executed the guests' instructions: `kvm`, `tcg` or `icount`; `None` if no guest came
    /// up.
    pub accelerator: Option<String>,
    /// Facts about the first guest that came up, as seen from inside, by name.
    pub facts: BTreeMap<String, String>,
    /// Number of boots.
    pub boots: usize,
    /// Number of boots that did not come up, or ended early.
    pub failed: usize,
    /// Error of the first boot that failed.
    pub first_error: Option<String>,
    /// Median time from start until the guest accepted requests, in nanoseconds; `None` if no guest
    /// came up.
    pub boot_ns: Option<f64>,
}
