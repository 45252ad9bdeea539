//! What a fleet of machines says about claims: plain data, ready to be shown.
//!
//! As in [`crate::claim::model`], values are on natural scales unless it says otherwise.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::model::{ClaimDirection, Estimate, Outcome};
use crate::spec::Platform;

/// One machine, and what was found on it.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetMachine {
    /// Identifier, such as its name.
    pub id: String,
    /// Facts that may explain how it differs, by name; see [`super::facts_of`].
    pub facts: BTreeMap<String, String>,
    /// One per claim. If an experiment has several runs, the newest counts.
    pub verdicts: Vec<FleetVerdict>,
    /// The published platforms of its experiments.
    pub platforms: Vec<Platform>,
}

/// One claim, judged on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetVerdict {
    /// Identifier such as `cat.align`.
    pub claim: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if the claim was published.
    pub report: Option<String>,
    /// Metric, or name of the derived quantity.
    pub quantity: String,
    /// Unit of `measured`; empty for a ratio.
    pub unit: String,
    /// For a claim over machines: the fact by which they are said to differ.
    pub differ_by: Option<String>,
    /// The judgement.
    pub outcome: Outcome,
    /// The measured value.
    pub measured: Option<Estimate>,
    /// What the claim says.
    pub direction: ClaimDirection,
    /// The value that the claim is about; for a claim over machines, the factor between
    /// them.
    pub threshold: f64,
}

/// Every claim on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReport {
    /// In the order they were given.
    pub machines: Vec<MachineFacts>,
    /// One for every claim, quantity and unit, sorted by these.
    pub claims: Vec<FleetClaim>,
    /// Machines that publications describe. Nothing was measured on them, so they count
    /// in no claim.
    pub published_platforms: Vec<Platform>,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Identifier of the machine.
    pub id: String,
    /// Facts that may explain how it differs, by name.
    pub facts: BTreeMap<String, String>,
}

/// One claim on all machines that judged it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetClaim {
    /// Identifier such as `cat.align`.
    pub claim: String,
    /// The claim in words.
    pub text: String,
    /// Short name of the publication, if the claim was published.
    pub report: Option<String>,
    /// Metric, or name of the derived quantity.
    pub quantity: String,
    /// Unit of all values; empty for a ratio.
    pub unit: String,
    /// The value that the claim is about.
    pub threshold: f64,
    /// One for every machine that judged it.
    pub machines: Vec<MachineOutcome>,
    /// Number of machines by outcome.
    pub counts: OutcomeCounts,
    /// The pooled value of all machines; absent if fewer than 3 can be pooled.
    pub pooled: Option<PooledEstimate>,
    /// Facts that may explain how the machines differ, by name.
    pub facts: Vec<FleetFact>,
    /// For a claim on how machines differ: the judgement of all of them together, since
    /// one alone cannot test it.
    pub difference: Option<FleetDifference>,
    /// What the published platforms can show about such a claim, one sentence per publication.
    pub published: Vec<String>,
    /// The result in a sentence, such as `holds on 37 of 40 machines, refuted on 2,
    /// undecided on 1; differs by file system, not by kernel`.
    pub sentence: String,
}

/// Whether machines differ by a fact as a claim says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDifference {
    /// The fact.
    pub fact: String,
    /// The judgement.
    pub outcome: Outcome,
    /// The two levels that decide, or differ most; absent if none can be compared.
    pub levels: Option<LevelRatio>,
    /// Other facts that explain; only machines alike in them are compared.
    pub alike_in: Vec<String>,
    /// Facts that split the machines as this one does, so that either may be the cause.
    pub confounded_with: Vec<String>,
}

/// Machines of one level over those of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelRatio {
    /// The numerator, such as `xfs`.
    pub of: String,
    /// The denominator.
    pub to: String,
    /// Ratio of their geometric means. The intervals of all levels hold simultaneously.
    pub ratio: Estimate,
}

/// How a claim fares on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineOutcome {
    /// The machine.
    pub machine: String,
    /// The judgement.
    pub outcome: Outcome,
    /// The measured value.
    pub measured: Option<Estimate>,
    /// Whether the value is so far from the others that the pooled one leaves it out.
    pub is_outlying: bool,
}

/// Machines by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCounts {
    /// The claim holds.
    pub supported: usize,
    /// It does not.
    pub refuted: usize,
    /// The interval is too wide to say.
    pub undecided: usize,
    /// The machine cannot test it.
    pub not_testable: usize,
}

impl OutcomeCounts {
    /// Returns the number of machines.
    pub fn total(&self) -> usize {
        self.supported + self.refuted + self.undecided + self.not_testable
    }
}

/// The pooled value of all machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledEstimate {
    /// Scale on which values were pooled.
    pub scale: PoolingScale,
    /// Machines with a value and an interval that can be pooled.
    pub machines: usize,
    /// Centre of the machines that are not outlying.
    pub mean: Estimate,
    /// Where the true value of a further machine lies, if it is not outlying.
    pub prediction: Estimate,
    /// Standard deviation between the true values of machines that are not outlying; of
    /// their logarithms if these were pooled.
    pub between_deviation: f64,
    /// Machines that lie far from the others. None can be found among fewer than 10.
    pub outlying: Vec<String>,
}

/// Scale on which values are approximately normally distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolingScale {
    /// Logarithms, for ratios that are all positive.
    Logarithmic,
    /// The values themselves.
    Linear,
}

/// A fact about machines, and whether it explains how they differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetFact {
    /// Its name, such as `file system`.
    pub name: String,
    /// Whether it explains differences.
    pub role: FactRole,
    /// The explaining fact that it is confounded or associated with.
    pub with: Option<String>,
    /// Probability of a difference this large between levels if the fact has no effect.
    pub p: Option<f64>,
    /// The same with Holm's adjustment for all facts tested for this claim.
    pub p_adjusted: Option<f64>,
    /// Share of the variance of the machines' ranks that lies between levels, corrected for
    /// their number.
    pub explained: Option<f64>,
    /// Its levels, by name.
    pub levels: Vec<FactLevel>,
}

/// How a fact is related to differences between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactRole {
    /// Machines differ by it, even among those that are alike in the facts found before.
    Explains,
    /// It splits the machines as an explaining fact does, so that either may be the cause.
    Confounded,
    /// Machines differ by it, but no longer among those that are alike in an explaining
    /// fact.
    Associated,
    /// No difference was found.
    NoDifference,
    /// Fewer than two levels have two machines with a value.
    NotTested,
}

/// The machines of one level of a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactLevel {
    /// The level, such as `ext4`.
    pub level: String,
    /// Machines with a verdict.
    pub machines: usize,
    /// Those on which the claim holds.
    pub supported: usize,
    /// Centre of their values; absent if fewer than 3 can be pooled.
    pub mean: Option<Estimate>,
}
