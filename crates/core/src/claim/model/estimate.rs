//! A point estimate with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_stats::Interval;

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

impl Estimate {
    /// Returns the largest difference between the sides of a ratio that its interval contains, as a
    /// share.
    pub fn reach(&self) -> f64 {
        self.high.max(1.0 / self.low) - 1.0
    }
}

impl From<&Interval> for Estimate {
    fn from(interval: &Interval) -> Self {
        Self {
            value: interval.estimate,
            low: interval.low,
            high: interval.high,
            confidence: interval.confidence,
        }
    }
}

impl From<Estimate> for Interval {
    fn from(estimate: Estimate) -> Self {
        Self {
            estimate: estimate.value,
            low: estimate.low,
            high: estimate.high,
            confidence: estimate.confidence,
        }
    }
}
