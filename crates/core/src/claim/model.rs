//! Conclusions of the claim stage: plain data, ready to be shown.
//!
//! All values are on natural scales (ratios, bytes, nanoseconds), never
//! logarithms. A ratio is always *this treatment over the one it is compared
//! with*, so a duration ratio under 1 means faster.

use std::collections::BTreeMap;

mod e_values;
mod functions;
mod over_runs;
mod overall;
mod runs;
mod selftest;
mod shown;
mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::regression::{self, Regression};
pub use crate::explain::model::{
    ExplainedCount, ExplainedRow, Explanation, ProfilingOverhead, RowKind,
};
pub use crate::spec::{Better, ClaimDirection};
pub use e_values::EValues;
pub use functions::{FunctionDifference, FunctionDifferences};
pub use over_runs::{ClaimOverRuns, ExcludedRuns, OverRuns};
pub use overall::Overall;
pub use runs::{Replicates, RunComparison, RunRatio, Sessions};
pub use selftest::{Rate, SelftestArm, SelftestReport};
pub use shown::{
    Bar, BarChart, BoxGroup, BoxPlot, Curve, CurveMark, CurvePoint, CurveSeries, Distribution,
    DistributionGroup, Figure, FiveNumbers, MeasuredBox, MeasuredMean, NearestCache, Plateau,
    PublishedGroup, PublishedRow, PublishedTable, Staircase, Step,
};
pub use verdict::{ErrorRate, NoVerdict, Outcome, Verdict};

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

/// A point estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Coverage of the interval, such as 0.95.
    pub confidence: f64,
}

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Base unit: `ns`, `bytes`, `bytes/s`, `ns/byte`, `count` or free text.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
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

/// One treatment and the results of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreatmentSummary {
    /// Position in the plan.
    pub index: usize,
    /// Levels in readable form, such as `method=page sink=null`; only factors that vary in
    /// this run.
    pub label: String,
    /// Label of the level by factor name, for all factors.
    pub levels: BTreeMap<String, String>,
    /// The treatment of which this is the A/A twin.
    pub twin_of: Option<usize>,
    /// Why none of its trials could run here.
    pub skipped: Option<String>,
    /// Trials with samples.
    pub trials_completed: usize,
    /// Trials that ended in an error.
    pub trials_failed: usize,
    /// Trials set aside because of an instrument fault.
    pub trials_excluded: usize,
    /// Message of the first failure or exclusion.
    pub first_failure: Option<String>,
    /// By metric name.
    pub estimates: BTreeMap<String, TreatmentEstimate>,
    /// Distinct notes of the probe, such as the buffer sizes that methods resolved to.
    pub notes: Vec<String>,
}

/// One metric of one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreatmentEstimate {
    /// Median over trials with its order-statistic interval.
    pub median: Estimate,
    /// One value per completed trial (the median of its samples), in block order.
    pub trial_values: Vec<f64>,
    /// Positions in `trial_values` outside Tukey's fences; shown, never
    /// dropped.
    pub outliers: Vec<usize>,
}

/// A treatment run twice in every block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwinSummary {
    /// Label of the treatment.
    pub label: String,
    /// Metric compared.
    pub metric: String,
    /// Twin over original; pure noise centres on 1.
    pub ratio: Estimate,
    /// Per-block ratios, for the plot.
    pub block_ratios: Vec<f64>,
}

impl TwinSummary {
    /// Returns the largest relative departure from 1 within the interval of the ratio: how
    /// far apart two runs of the same treatment may be.
    pub fn reach(&self) -> f64 {
        self.ratio.high.max(1.0 / self.ratio.low) - 1.0
    }
}

/// Other metrics in which the two sides of a claim about time differ; they may explain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanatoryMetrics {
    /// Metrics that differ by more than their margin, counters first.
    pub differing: Vec<SideBySide>,
    /// Names of the metrics that are the same within 1 %.
    pub same: Vec<String>,
}

/// One metric on both sides of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The metric.
    pub metric: String,
    /// Median over trials of the numerator's treatment.
    pub of: f64,
    /// Median over trials of the denominator's treatment.
    pub to: f64,
    /// Numerator over denominator, block by block; its confidence is for this interval
    /// alone. Absent if one side is 0 in some block.
    pub ratio: Option<Estimate>,
}

/// A quantity computed from several treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedEstimate {
    /// Identifier such as `knee.zero`.
    pub id: String,
    /// What it is, in words.
    pub text: String,
    /// Unit: `bytes`, `ns`, `ns/byte`, or empty for a share or ratio.
    pub unit: String,
    /// The estimate; absent if it could not be computed.
    pub estimate: Option<DerivedValue>,
    /// Further values, such as a model's residual, by name.
    pub details: BTreeMap<String, f64>,
    /// Why there is no estimate, or what qualifies it.
    pub note: Option<String>,
}

/// A line of a price list: what a row of an experiment costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// What the price is for, in words.
    pub name: String,
    /// Heading in the list; absent for a row that is measured but not listed.
    pub group: Option<String>,
    /// Index of the treatment; absent for a derived quantity.
    pub treatment: Option<usize>,
    /// Unit of work that the price is for, such as `call`; empty for a derived quantity.
    pub per: String,
    /// Unit of the value: `ns` or `bytes`.
    pub unit: String,
    /// The price; absent if it could not be measured.
    pub value: Option<DerivedValue>,
    /// Why there is no price, or what qualifies it.
    pub note: Option<String>,
}

/// A derived value whose interval may reach beyond the levels tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedValue {
    /// The point estimate; absent if beyond the largest level.
    pub value: Option<f64>,
    /// Lower end; absent if beyond the largest level.
    pub low: Option<f64>,
    /// Upper end; absent if beyond the largest level.
    pub high: Option<f64>,
    /// Minimum coverage of the interval.
    pub confidence: f64,
}

/// One treatment against the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Index of the treatment.
    pub treatment: usize,
    /// Index of the reference treatment.
    pub reference: usize,
    /// What both sides share, such as the row, in a list of differences; empty elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub common: String,
    /// Metric compared.
    pub metric: String,
    /// Treatment over reference.
    pub ratio: Estimate,
    /// What the interval shows: the same within 1 %, or which side is better by any amount.
    pub relation: Relation,
    /// Whether they differ by more than 1 %; absent if the interval does not show it.
    #[serde(default)]
    pub exceeds_margin: Option<bool>,
    /// Why it is undecided, if known.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether the interval may decide: it has enough blocks, and its times are not
    /// emulated.
    pub may_decide: bool,
    /// Whether it is judged. A metric that was not requested is only shown, and the
    /// confidence of its interval is for that interval alone.
    pub is_judged: bool,
    /// The functions that account for a difference in path length, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<FunctionDifferences>,
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

    /// Judges whether it is worse by more than `limit`, a share, and by more than twins
    /// differ.
    pub fn regression(&self, analysis: &Analysis, limit: f64) -> Regression {
        let better = analysis.metrics[&self.metric].better;
        let noise = self.noise(analysis).unwrap_or_default();
        if self.may_decide {
            regression::judge(&self.ratio, better, limit, noise)
        } else {
            Regression::Undecided
        }
    }
}

/// What an interval shows. Within a run, sides differ if the interval excludes 1; between
/// runs, and in a search over versions, if it lies beyond the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Better in the metric's sense.
    Better,
    /// Worse.
    Worse,
    /// Different, in a metric without a better side.
    Different,
    /// The same within the margin.
    Same,
    /// The interval is too wide to say.
    Undecided,
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
