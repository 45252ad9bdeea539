//! The shape of an experiment file, before names and values are checked.
//!
//! `docs/FORMAT.md` is the description for people; a field here is documented
//! there.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::level::{Range, Scalar};
use crate::claim::model::{Better, ClaimDirection};

pub type RawSelector = BTreeMap<String, Scalar>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawExperiment {
    pub format: Spanned<i64>,
    pub name: Spanned<String>,
    pub title: Option<String>,
    #[serde(default)]
    pub question: String,
    pub report: Option<String>,
    pub metric: Option<Spanned<String>>,
    pub workload: Spanned<RawWorkload>,
    pub guest: Option<Spanned<RawGuest>>,
    #[serde(default, rename = "factor")]
    pub factors: Vec<Spanned<RawFactor>>,
    #[serde(default)]
    pub require: Vec<Spanned<String>>,
    #[serde(default)]
    pub metrics: BTreeMap<String, Spanned<RawParsedMetric>>,
    #[serde(default)]
    pub counters: Vec<String>,
    #[serde(default)]
    pub run: RawRun,
    #[serde(default, rename = "profile")]
    pub profiles: BTreeMap<String, Spanned<RawProfile>>,
    #[serde(default)]
    pub twins: Vec<Spanned<RawSelector>>,
    pub reference: Option<Spanned<RawSelector>>,
    #[serde(default, rename = "claim")]
    pub claims: Vec<Spanned<RawClaim>>,
    #[serde(default)]
    pub derived: Vec<Spanned<RawDerived>>,
    #[serde(default, rename = "table")]
    pub tables: Vec<Spanned<RawTable>>,
    #[serde(default, rename = "figure")]
    pub figures: Vec<Spanned<RawFigure>>,
    #[serde(default)]
    pub advice: Vec<Spanned<RawAdvice>>,
}

#[derive(Debug, Deserialize)]
pub struct RawWorkload {
    pub kind: super::WorkloadKind,
    pub command: Option<String>,
    #[serde(default)]
    pub commands: BTreeMap<String, String>,
    pub shell: Option<String>,
    pub setup: Option<String>,
    pub prepare: Option<String>,
    pub cleanup: Option<String>,
    pub output: Option<String>,
    #[serde(default)]
    pub ignore_failure: bool,
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Scalar>,
}

#[derive(Debug, Deserialize)]
pub struct RawGuest {
    #[serde(default)]
    pub knobs: BTreeMap<String, RawKnob>,
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawKnob {
    pub path: String,
    #[serde(default)]
    pub values: BTreeMap<String, Scalar>,
    pub value: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawFactor {
    pub name: String,
    pub levels: RawLevels,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum RawLevels {
    List(Vec<Scalar>),
    Range(Range),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawParsedMetric {
    pub pattern: String,
    #[serde(default)]
    pub stream: RawStream,
    #[serde(default)]
    pub unit: String,
    #[serde(default = "neither")]
    pub better: Better,
}

fn neither() -> Better {
    Better::Neither
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RawStream {
    #[default]
    Stdout,
    Stderr,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRun {
    pub iterations: Option<u32>,
    pub warmup_iterations: Option<u32>,
    pub warmup_blocks: Option<u32>,
    pub min_blocks: Option<u32>,
    pub max_blocks: Option<u32>,
    pub look_every: Option<u32>,
    pub time_budget: Option<Spanned<String>>,
    pub target_ci: Option<Spanned<String>>,
    pub trial_timeout: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawProfile {
    #[serde(default)]
    pub factors: BTreeMap<String, RawLevels>,
    #[serde(default)]
    pub workload: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub guest: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub require: Vec<Spanned<String>>,
    #[serde(default)]
    pub run: RawRun,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawClaim {
    pub id: String,
    pub text: String,
    pub report: Option<String>,
    pub corrects: Option<String>,
    pub not_testable: Option<String>,
    pub metric: Option<String>,
    #[serde(default)]
    pub of: Option<RawSelector>,
    #[serde(default)]
    pub to: Option<RawSelector>,
    #[serde(default)]
    pub per_of: Option<RawSelector>,
    #[serde(default)]
    pub per_to: Option<RawSelector>,
    #[serde(default)]
    pub at: RawSelector,
    pub derived: Option<String>,
    pub direction: Option<ClaimDirection>,
    pub threshold: Option<Scalar>,
    pub between: Option<(Scalar, Scalar)>,
    pub published: Option<Scalar>,
    pub margin: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawDerivedKind {
    Knee,
    Acceleration,
    Crossing,
    CostPerCall,
    CostPerByte,
    CallShare,
    Spread,
    Quotient,
    Step,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDerived {
    pub id: String,
    pub text: String,
    pub kind: RawDerivedKind,
    pub factor: String,
    pub metric: Option<String>,
    #[serde(default)]
    pub at: RawSelector,
    pub tolerance: Option<String>,
    pub of: Option<RawSelector>,
    pub to: Option<RawSelector>,
    #[serde(default)]
    pub value: f64,
    pub level: Option<Scalar>,
    pub per: Option<String>,
    pub step: Option<usize>,
    pub rise: Option<String>,
    #[serde(default)]
    pub among: Vec<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTable {
    pub title: String,
    pub report: Option<String>,
    pub metric: Option<String>,
    pub unit: Option<String>,
    pub scale: Option<f64>,
    pub relative_to: Option<String>,
    pub mean: Option<super::TableMean>,
    pub note: Option<String>,
    #[serde(default)]
    pub at: RawSelector,
    #[serde(default)]
    pub rows: Vec<RawTableRow>,
    #[serde(default)]
    pub conditions: Vec<RawTableCondition>,
    #[serde(default)]
    pub quantities: Vec<RawTableQuantity>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTableRow {
    pub label: String,
    pub at: Option<RawSelector>,
    pub published: Option<f64>,
    pub deviation: Option<f64>,
    pub text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTableCondition {
    pub label: String,
    pub at: RawSelector,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTableQuantity {
    pub label: String,
    pub metric: String,
    pub per: Option<String>,
    #[serde(default)]
    pub unit: String,
    pub scale: Option<f64>,
    pub published: Vec<f64>,
    #[serde(default)]
    pub deviation: Vec<f64>,
    #[serde(default)]
    pub text: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawFigure {
    pub title: String,
    pub kind: super::FigureKind,
    #[serde(default)]
    pub factor: String,
    pub metric: Option<String>,
    pub series: Option<String>,
    #[serde(default)]
    pub at: RawSelector,
    #[serde(default)]
    pub except: Vec<Scalar>,
    pub acceleration_of: Option<RawSelector>,
    pub acceleration_to: Option<RawSelector>,
    #[serde(default)]
    pub log_y: bool,
    #[serde(default)]
    pub marks: Vec<String>,
    pub scale: Option<f64>,
    #[serde(default)]
    pub lines: Vec<RawLine>,
    #[serde(default)]
    pub groups: Vec<RawGroup>,
    pub relative_to: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLine {
    pub label: String,
    #[serde(default)]
    pub at: RawSelector,
    #[serde(default)]
    pub published: Vec<(Scalar, f64)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGroup {
    pub label: String,
    pub at: RawSelector,
    pub published: Option<PublishedNumbers>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum PublishedNumbers {
    /// Of a bar.
    One(f64),
    /// Of a box.
    Five([f64; 5]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawAdviceKind {
    Best,
    Saturation,
    Cost,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAdvice {
    pub topic: String,
    pub kind: RawAdviceKind,
    pub factor: String,
    pub metric: Option<String>,
    #[serde(default)]
    pub each: Vec<String>,
    #[serde(default)]
    pub at: RawSelector,
    #[serde(default)]
    pub except: Vec<Scalar>,
    pub over: Option<String>,
}
