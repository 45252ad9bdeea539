//! Curves that go up in steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DerivedValue, Estimate};

/// A metric that goes up in steps along a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staircase {
    /// Levels of the other factors in words: `huge_pages=none`. Empty if no
    /// other factor varies.
    pub at: String,
    /// Factor along which it goes up.
    pub factor: String,
    /// Unit of the factor: `bytes` or empty.
    pub factor_unit: String,
    /// Metric that goes up.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The stretches between the steps, in ascending order of the factor.
    pub treads: Vec<Tread>,
    /// The steps that the experiment asks for and the curve has.
    pub steps: Vec<Step>,
}

/// A stretch of levels over which a metric stays about the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tread {
    /// Its first level.
    pub from: f64,
    /// Its last level.
    pub to: f64,
    /// Geometric mean over its levels of the metric's medians over blocks.
    pub value: Estimate,
}

/// A place where a metric goes up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The derived quantity, such as `step1.none`.
    pub id: String,
    /// What it is, in words.
    pub text: String,
    /// Where it lies; its interval reaches to the levels on both sides.
    pub at: DerivedValue,
    /// The metric on the tread before it.
    pub before: Estimate,
    /// The metric on the tread after it.
    pub after: Estimate,
    /// After over before.
    pub rise: f64,
    /// The cache of this machine whose size is nearest, if the factor is a
    /// size, the machine tells its caches, and one is within a factor of two.
    pub nearest_cache: Option<NearestCache>,
}

/// The cache whose size a step is nearest to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearestCache {
    /// Its name, such as `L2`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The step's place as a share of its size.
    pub share: f64,
}
