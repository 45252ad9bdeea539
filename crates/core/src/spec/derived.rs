//! Quantities computed from several treatments.

use serde::{Deserialize, Serialize};

use super::level::one_share;
use super::selector::join;
use super::{Level, Selector};

/// The metric of calls in cost models.
pub const CALLS: &str = "calls";

/// The metrics of bytes in cost models: each workload that moves bytes records one of them.
pub const BYTES_MOVED: [&str; 3] = ["bytes_written", "bytes_copied", "bytes_transferred"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// Identifier of the quantity.
    pub id: String,
    /// Description in words.
    pub text: String,
    /// Heading of the price list under which the quantity is listed, if it is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How the quantity is computed. Refuses keys that belong neither to the kind nor to another
    /// field.
    #[serde(flatten)]
    pub kind: DerivedKind,
    /// Factor over whose levels the quantity is computed.
    pub factor: String,
    /// The levels to include; all if empty.
    #[serde(default)]
    pub among: Vec<Level>,
    #[serde(default)]
    pub metric: String,
    /// Levels of the other factors.
    #[serde(default)]
    pub at: Selector,
}

/// Ways to compute a derived quantity. Variants without parameters have braces: serde
/// accepts any key for a unit variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DerivedKind {
    /// Smallest level whose metric is within `tolerance` of the best.
    Knee {
        /// Relative tolerance.
        #[serde(default = "knee_tolerance", deserialize_with = "one_share")]
        tolerance: f64,
    },
    /// `1 - of/to`, the acceleration ratio, at one level: the share of the time
    /// that the faster side saves.
    Acceleration {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        level: Level,
    },
    /// Level at which `1 - of/to` (the acceleration ratio) falls to `value`.
    Crossing {
        /// The faster side.
        of: Selector,
        /// The slower side.
        to: Selector,
        /// The acceleration ratio to find; at 0 the gain ends.
        #[serde(default)]
        value: f64,
    },
    /// Cost of one call in t = calls·a + bytes·b.
    CostPerCall {},
    /// Cost of one byte in t = calls·a + bytes·b.
    CostPerByte {},
    /// Share of the time that the calls cost, at one level.
    CallShare { level: Level },
    /// Largest ratio between two of the factor's levels.
    Spread {},
    /// One metric over another of the same trials, at one level.
    Quotient {
        /// The metric to divide by.
        per: String,
        level: Level,
    },
    /// The level at which the metric rises for the `number`th time.
    Step {
        /// Number of the step, from 1.
        #[serde(rename = "step")]
        number: usize,
        /// Smallest relative rise of a step.
        #[serde(default = "step_rise", deserialize_with = "one_share")]
        rise: f64,
    },
}

impl DerivedKind {
    /// Returns the two sides of a quantity that compares treatments; nothing for other quantities.
    pub fn sides(&self) -> impl Iterator<Item = &Selector> {
        let sides = match self {
            Self::Acceleration { of, to, .. } | Self::Crossing { of, to, .. } => {
                [Some(of), Some(to)]
            }
            Self::Knee { .. }
            | Self::CostPerCall {}
            | Self::CostPerByte {}
            | Self::CallShare { .. }
            | Self::Spread {}
            | Self::Quotient { .. }
            | Self::Step { .. } => [None, None],
        };
        sides.into_iter().flatten()
    }

    /// Returns the level of the factor at which the quantity is, if it is at one.
    pub fn level(&self) -> Option<&Level> {
        match self {
            Self::Acceleration { level, .. }
            | Self::CallShare { level }
            | Self::Quotient { level, .. } => Some(level),
            Self::Knee { .. }
            | Self::Crossing { .. }
            | Self::CostPerCall {}
            | Self::CostPerByte {}
            | Self::Spread {}
            | Self::Step { .. } => None,
        }
    }

    /// Whether the quantity needs trials only at its level. A cost model needs other levels too.
    pub fn needs_only_its_level(&self) -> bool {
        match self {
            Self::CallShare { .. } => false,
            Self::Knee { .. }
            | Self::Acceleration { .. }
            | Self::Crossing { .. }
            | Self::CostPerCall {}
            | Self::CostPerByte {}
            | Self::Spread {}
            | Self::Quotient { .. }
            | Self::Step { .. } => true,
        }
    }

    /// Whether levels of the factor must be numbers.
    pub fn needs_numeric_factor(&self) -> bool {
        match self {
            Self::Spread {} | Self::Quotient { .. } => false,
            Self::Knee { .. }
            | Self::Acceleration { .. }
            | Self::Crossing { .. }
            | Self::CostPerCall {}
            | Self::CostPerByte {}
            | Self::CallShare { .. }
            | Self::Step { .. } => true,
        }
    }

    /// Returns the metrics that the quantity needs besides the one that it is about. Of each
    /// group it needs one.
    pub fn further_metrics(&self) -> Vec<Vec<&str>> {
        match self {
            Self::CostPerCall {} | Self::CostPerByte {} | Self::CallShare { .. } => {
                vec![vec![CALLS], BYTES_MOVED.to_vec()]
            }
            Self::Quotient { per, .. } => vec![vec![per]],
            Self::Knee { .. }
            | Self::Acceleration { .. }
            | Self::Crossing { .. }
            | Self::Spread {}
            | Self::Step { .. } => Vec::new(),
        }
    }
}

fn knee_tolerance() -> f64 {
    0.10
}

/// Returns the default rise of a step. Cache levels differ about threefold; the rounded edge of a
/// step may look like a further step of half the height.
fn step_rise() -> f64 {
    1.0
}

impl Derived {
    /// Returns what selects the treatments that the quantity is computed from.
    pub fn selectors(&self) -> Vec<&Selector> {
        let sides: Vec<_> = self.kind.sides().collect();
        if sides.is_empty() {
            vec![&self.at]
        } else {
            sides
        }
    }

    /// Fills in the defaults of what an experiment file leaves out.
    pub(super) fn finished(mut self, metric: &str) -> Self {
        if self.metric.is_empty() {
            metric.clone_into(&mut self.metric);
        }
        if let DerivedKind::Acceleration { of, to, .. } | DerivedKind::Crossing { of, to, .. } =
            &mut self.kind
        {
            join(of, &self.at);
            join(to, &self.at);
        }
        self
    }
}
