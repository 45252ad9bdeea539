//! Published tables and figures, which are shown beside the verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DerivedValue;
use super::estimate::Estimate;
use crate::spec::TableRow;

/// A published table beside the measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedTable {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Label of the row in each group to which ratios refer; absent without ratios.
    pub relative_to: Option<String>,
    /// One group per quantity, in published order.
    pub groups: Vec<PublishedGroup>,
    /// What a reader must know to compare the columns.
    pub note: Option<String>,
}

/// The rows of a published table for one quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedGroup {
    /// Name of the quantity; absent if the table has only one.
    pub label: Option<String>,
    /// Metric of the measured column; `metric / metric` for a quotient.
    pub metric: String,
    /// Unit of the measured column.
    pub unit: String,
    /// Unit of the published column.
    pub published_unit: String,
    /// Rows in published order.
    pub rows: Vec<PublishedRow>,
}

/// One row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRow {
    /// The row as published.
    #[serde(flatten)]
    pub printed: TableRow,
    /// Published value in the measured unit, if the two can be converted.
    pub published_converted: Option<f64>,
    /// Published ratio to the reference row.
    pub published_ratio: Option<f64>,
    /// Measured median in the group's unit.
    pub measured: Option<Estimate>,
    /// Mean computed as in the publication, if the table asks for it.
    pub measured_mean: Option<MeasuredMean>,
    /// Measured ratio to the reference row.
    pub measured_ratio: Option<Estimate>,
    /// Why nothing was measured.
    pub missing: Option<String>,
}

/// Mean, standard deviation and range of the trials, as publications give them. For
/// comparison only; verdicts do not use it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredMean {
    /// Mean in the group's unit.
    pub mean: f64,
    /// Sample standard deviation; absent for a single trial.
    pub standard_deviation: Option<f64>,
    /// Smallest of the trials used.
    pub low: f64,
    /// Largest of the trials used.
    pub high: f64,
    /// Number of trials used.
    pub kept: usize,
    /// Number of trials dropped as extremes: farther than 1.5 interquartile ranges outside
    /// the quartiles. Absent if the table keeps all trials.
    pub dropped: Option<usize>,
}

/// Something to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Figure {
    /// A metric against a numeric factor.
    Curve(Curve),
    /// The distribution of a metric over trials, one group per level.
    Distribution(Distribution),
    /// Quartiles and whiskers of trials, beside published quartiles and whiskers.
    Box(BoxPlot),
    /// Medians of treatments, beside published values.
    Bar(BarChart),
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
    /// Plateaus between the steps that are marked on the line.
    #[serde(default)]
    pub plateaus: Vec<Plateau>,
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
    /// What the mark shows.
    pub label: String,
    /// Position of the line that the mark belongs to, if any.
    #[serde(default)]
    pub series: Option<usize>,
    /// Position of the mark, with its interval.
    pub at: DerivedValue,
}

/// Values of trials by group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Heading.
    pub title: String,
    /// Metric whose values are drawn.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Groups in factor order; each has at least one value.
    pub groups: Vec<DistributionGroup>,
}

/// One group of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionGroup {
    /// Label of the group.
    pub label: String,
    /// One value per trial.
    pub values: Vec<f64>,
}

/// Tukey's box plot of several treatments, with published boxes beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxPlot {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Metric whose values are drawn.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Groups in order; at least one was measured.
    pub groups: Vec<BoxGroup>,
}

/// One treatment of a box plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxGroup {
    /// Label of the group.
    pub label: String,
    /// Measured box, if there is one.
    pub measured: Option<MeasuredBox>,
    /// Published box, if there is one.
    pub published: Option<FiveNumbers>,
}

/// The box over the trials of a treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredBox {
    /// The numbers of the box. Whiskers end at the last values within 1.5 interquartile
    /// ranges of the quartiles.
    pub numbers: FiveNumbers,
    /// Values beyond the whiskers.
    pub outliers: Vec<f64>,
    /// Number of trials.
    pub trials: usize,
}

/// The five numbers of a box, in the metric's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FiveNumbers {
    /// Lower whisker.
    pub low: f64,
    /// Lower quartile.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub upper: f64,
    /// Upper whisker.
    pub high: f64,
}

impl From<[f64; 5]> for FiveNumbers {
    fn from([low, lower, median, upper, high]: [f64; 5]) -> Self {
        Self {
            low,
            lower,
            median,
            upper,
            high,
        }
    }
}

impl From<FiveNumbers> for [f64; 5] {
    fn from(numbers: FiveNumbers) -> Self {
        let FiveNumbers {
            low,
            lower,
            median,
            upper,
            high,
        } = numbers;
        [low, lower, median, upper, high]
    }
}

/// Medians of treatments, with published values beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BarChart {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Metric whose medians are drawn.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Label of the bar that all others are drawn relative to, if any.
    pub relative_to: Option<String>,
    /// Bars in order; at least one was measured.
    pub bars: Vec<Bar>,
}

/// One treatment of a bar chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bar {
    /// Label of the bar.
    pub label: String,
    /// Measured median in the metric's unit, if anything was measured.
    pub median: Option<Estimate>,
    /// Length of the bar: the median, or its ratio to the reference bar.
    pub length: Option<Estimate>,
    /// Published length of the bar, in the metric's unit or as a ratio to the reference bar.
    pub published: Option<f64>,
}

/// A metric that rises in steps along a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staircase {
    /// Levels of the other factors in words: `huge_pages=none`. Empty if no
    /// other factor varies.
    pub at: String,
    /// Factor along which the metric rises.
    pub factor: String,
    /// Unit of the factor: `bytes` or empty.
    pub factor_unit: String,
    /// Metric that rises.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// Plateaus between the steps, in ascending order of the factor.
    pub plateaus: Vec<Plateau>,
    /// Steps that the experiment asks for and that the curve has.
    pub steps: Vec<Step>,
}

/// A range of levels over which a metric stays about the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plateau {
    /// First level of the plateau.
    pub from: f64,
    /// Last level of the plateau.
    pub to: f64,
    /// Geometric mean over the plateau's levels of the metric's medians over blocks.
    pub value: Estimate,
}

/// A place where a metric rises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Id of the derived quantity, such as `step1.none`.
    pub id: String,
    /// Description of the step in words.
    pub text: String,
    /// Position of the step; the interval reaches to the levels on both sides.
    pub at: DerivedValue,
    /// The metric on the plateau before the step.
    pub before: Estimate,
    /// The metric on the plateau after the step.
    pub after: Estimate,
    /// Ratio of the metric after the step to that before it.
    pub rise: f64,
    /// The cache of this machine with the nearest size, if the factor is a size, the machine
    /// reports its caches, and one is within a factor of two.
    pub nearest_cache: Option<NearestCache>,
}

/// The cache whose size is nearest to a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearestCache {
    /// Name of the cache, such as `L2`.
    pub name: String,
    /// Size of the cache in bytes.
    pub bytes: u64,
    /// Position of the step as a share of the cache's size.
    pub share: f64,
}
