//! What is shown beside the verdicts: published tables and figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DerivedValue, Estimate, Tread};

/// A published table beside the measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedTable {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Metric of the measured column.
    pub metric: String,
    /// Unit as published, which may differ from the metric's.
    pub published_unit: String,
    /// Label of the row to which ratios are taken, if any.
    pub relative_to: Option<String>,
    /// Rows in published order.
    pub rows: Vec<PublishedRow>,
    /// What a reader must know to compare the columns.
    pub note: Option<String>,
}

/// One row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRow {
    /// Row heading.
    pub label: String,
    /// Published value in the table's unit, or the words printed instead.
    pub published: Option<f64>,
    /// Published value in the metric's unit, where the two can be converted.
    #[serde(default)]
    pub published_converted: Option<f64>,
    /// Words that stand in place of a published number, or qualify it.
    pub published_text: Option<String>,
    /// Published ratio to the reference row.
    pub published_ratio: Option<f64>,
    /// Published standard deviation of the value, in the table's unit.
    #[serde(default)]
    pub published_deviation: Option<f64>,
    /// Measured median in the metric's unit.
    pub measured: Option<Estimate>,
    /// Measured as the publication did, where it gives a standard deviation.
    #[serde(default)]
    pub measured_mean: Option<FencedMean>,
    /// Measured ratio to the reference row.
    pub measured_ratio: Option<Estimate>,
    /// Why nothing was measured.
    pub missing: Option<String>,
}

/// Mean and standard deviation of the trials after dropping extremes, as
/// publications give them: those farther than 1.5 interquartile ranges outside
/// the quartiles. For comparison only; no verdict rests on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FencedMean {
    /// Mean in the metric's unit.
    pub mean: f64,
    /// Sample standard deviation; absent for a single trial.
    pub standard_deviation: Option<f64>,
    /// Trials that it is of.
    pub kept: usize,
    /// Trials that were dropped.
    pub dropped: usize,
}

/// Something to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Figure {
    /// A metric against a numeric factor.
    Curve(Curve),
    /// The distribution of a metric over trials, a group a level.
    Distribution(Distribution),
    /// Quartiles of trials beside published ones.
    Box(BoxPlot),
}

/// A metric against a numeric factor, with bands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Heading.
    pub title: String,
    /// Factor on the horizontal axis; drawn on a logarithmic scale.
    pub factor: String,
    /// Unit of the horizontal axis: `bytes` or empty.
    pub factor_unit: String,
    /// Metric on the vertical axis.
    pub metric: String,
    /// Unit of the vertical axis.
    pub unit: String,
    /// Whether the vertical axis is logarithmic too.
    pub log_y: bool,
    /// The lines.
    pub series: Vec<CurveSeries>,
    /// Places to mark on the horizontal axis, such as the knee.
    pub marks: Vec<CurveMark>,
}

/// One line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveSeries {
    /// Legend entry.
    pub label: String,
    /// Whether the points were published rather than measured here.
    pub published: bool,
    /// Points in ascending order.
    pub points: Vec<CurvePoint>,
    /// The stretches between the steps that are marked on it.
    #[serde(default)]
    pub treads: Vec<Tread>,
}

/// One point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Value and band; for published points low, value and high are equal.
    pub y: Estimate,
}

/// An interval on the horizontal axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveMark {
    /// What it marks.
    pub label: String,
    /// Position of the line that it belongs to, if it belongs to one.
    #[serde(default)]
    pub series: Option<usize>,
    /// Where, with its interval.
    pub at: DerivedValue,
}

/// Values of trials by group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Heading.
    pub title: String,
    /// Metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Groups in factor order; each has at least one value.
    pub groups: Vec<DistributionGroup>,
}

/// One group of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionGroup {
    /// Label of the group.
    pub label: String,
    /// One value a trial.
    pub values: Vec<f64>,
}

/// Tukey's box plot of several treatments, published boxes beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxPlot {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Groups in their order; at least one was measured.
    pub groups: Vec<BoxGroup>,
}

/// One treatment of a box plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxGroup {
    /// Label of the group.
    pub label: String,
    /// What was measured, if anything was.
    pub measured: Option<MeasuredBox>,
    /// What was published, if anything was.
    pub published: Option<Quartiles>,
}

/// The box of the trials of a treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredBox {
    /// Its median and quartiles.
    pub quartiles: Quartiles,
    /// Smallest value within 1.5 interquartile ranges below the lower quartile.
    pub low: f64,
    /// Largest value within 1.5 interquartile ranges above the upper quartile.
    pub high: f64,
    /// Values beyond these.
    pub outliers: Vec<f64>,
    /// Trials.
    pub trials: usize,
}

/// Median and quartiles, in the metric's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quartiles {
    /// Median.
    pub median: f64,
    /// Lower quartile.
    pub lower: f64,
    /// Upper quartile.
    pub upper: f64,
}
