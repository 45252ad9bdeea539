//! What a fleet of machines says about claims: plain data, ready to be shown.
//!
//! As in [`crate::claim::model`], values are on natural scales unless stated otherwise.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::model::{ClaimDirection, Estimate, Outcome};
use crate::spec::Platform;

/// One machine, and what was found on it.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetMachine {
    /// Identifier of the machine, such as its name.
    pub id: String,
    /// Facts that may explain how the machine differs, by name; see [`super::facts_of`].
    pub facts: BTreeMap<String, String>,
    /// One verdict per claim. If an experiment has several runs, the newest counts.
    pub verdicts: Vec<FleetVerdict>,
    /// Published platforms of the machine's experiments.
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
    /// For a claim over machines: the fact by which machines are said to differ.
    pub differ_by: Option<String>,
    /// Judgement of the claim.
    pub outcome: Outcome,
    /// The measured value.
    pub measured: Option<Estimate>,
    /// What the claim says.
    pub direction: ClaimDirection,
    /// The value that the claim is about; for a claim over machines, the factor between machines.
    pub threshold: f64,
}

/// Results of every claim on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReport {
    /// Machines, in the order in which they were given.
    pub machines: Vec<MachineFacts>,
    /// Results, one for every claim, quantity and unit, sorted by these.
    pub claims: Vec<FleetClaim>,
    /// Machines that publications describe. Nothing was measured on them, so they count
    /// in no claim.
    pub published_platforms: Vec<Platform>,
}

/// One machine and its facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Identifier of the machine.
    pub id: String,
    /// Facts that may explain how the machine differs, by name.
    pub facts: BTreeMap<String, String>,
}

/// One claim on all machines that judged the claim.
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
    /// Outcome on every machine that judged the claim.
    pub machines: Vec<MachineOutcome>,
    /// Number of machines by outcome.
    pub counts: OutcomeCounts,
    /// The pooled value of all machines; absent if fewer than 3 can be pooled.
    pub pooled: Option<PooledEstimate>,
    /// Facts that may explain how the machines differ, by name.
    pub facts: Vec<FleetFact>,
    /// For a claim on how machines differ: its judgement over all machines together, since one
    /// machine cannot test it.
    pub difference: Option<FleetDifference>,
    /// What the published platforms can show about a claim on how machines differ, one sentence per
    /// publication.
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
    /// Judgement of the claim.
    pub outcome: Outcome,
    /// The two levels that decide, or differ most; absent if none can be compared.
    pub levels: Option<LevelRatio>,
    /// Other explaining facts; only machines that are alike in these facts are compared.
    pub alike_in: Vec<String>,
    /// Facts that split the machines as this one does, so that either may be the cause.
    pub confounded_with: Vec<String>,
}

/// Ratio of the values of one level's machines to those of another level's machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelRatio {
    /// Level of the numerator, such as `xfs`.
    pub of: String,
    /// Level of the denominator.
    pub to: String,
    /// Ratio of the levels' geometric means. The intervals of all levels hold simultaneously.
    pub ratio: Estimate,
}

/// Outcome of a claim on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineOutcome {
    /// Identifier of the machine.
    pub machine: String,
    /// Judgement of the claim.
    pub outcome: Outcome,
    /// The measured value.
    pub measured: Option<Estimate>,
    /// Whether the value is so far from the others that the pooled value leaves it out.
    pub is_outlying: bool,
}

/// Number of machines by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCounts {
    /// Machines on which the claim holds.
    pub supported: usize,
    /// Machines on which the claim does not hold.
    pub refuted: usize,
    /// Machines whose interval is too wide for a verdict.
    pub undecided: usize,
    /// Machines that cannot test the claim.
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
    /// Interval for the true value of a further machine, if that machine is not outlying.
    pub prediction: Estimate,
    /// Standard deviation between the true values of machines that are not outlying; of
    /// their logarithms if these were pooled.
    pub between_deviation: f64,
    /// Machines that lie far from the others. Among fewer than 10 machines, none can be found.
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
    /// Name of the fact, such as `file system`.
    pub name: String,
    /// How the fact is related to the differences.
    pub role: FactRole,
    /// Explaining fact with which this one is confounded or associated.
    pub with: Option<String>,
    /// Probability of a difference this large between levels if the fact has no effect.
    pub p: Option<f64>,
    /// Probability `p` with Holm's adjustment for all facts tested for this claim.
    pub p_adjusted: Option<f64>,
    /// Share of the variance of the machines' ranks that lies between levels, corrected for the
    /// number of levels.
    pub explained: Option<f64>,
    /// Levels of the fact, by name.
    pub levels: Vec<FactLevel>,
}

/// How a fact is related to differences between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactRole {
    /// Machines differ by the fact, even among those that are alike in the facts found before.
    Explains,
    /// The fact splits the machines as an explaining fact does, so that either may be the cause.
    Confounded,
    /// Machines differ by the fact, but no longer among those that are alike in an explaining fact.
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
    /// Machines on which the claim holds.
    pub supported: usize,
    /// Centre of the machines' values; absent if fewer than 3 can be pooled.
    pub mean: Option<Estimate>,
}
