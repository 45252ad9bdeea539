//! Quantities computed from several treatments, and prices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity computed from several treatments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedEstimate {
    /// Identifier such as `knee.zero`.
    pub id: String,
    /// Description of the quantity in words.
    pub text: String,
    /// Unit: `bytes`, `ns`, `ns/byte`, or empty for a share or ratio.
    pub unit: String,
    /// The estimate; absent if it could not be computed.
    pub estimate: Option<DerivedValue>,
    /// Further values, such as a model's residual, by name.
    pub details: BTreeMap<String, f64>,
    /// Why there is no estimate, or what a reader must know about the estimate.
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
    /// Why there is no price, or what a reader must know about the price.
    pub note: Option<String>,
}

/// A derived value whose interval may reach beyond the levels tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedValue {
    /// The point estimate; absent if beyond the largest level.
    pub value: Option<f64>,
    /// Lower end of the interval; absent if beyond the largest level.
    pub low: Option<f64>,
    /// Upper end of the interval; absent if beyond the largest level.
    pub high: Option<f64>,
    /// Minimum coverage of the interval.
    pub confidence: f64,
}
