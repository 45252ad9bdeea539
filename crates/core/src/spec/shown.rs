//! What is shown beside the verdicts: published tables, figures, advice.

use serde::{Deserialize, Serialize};

use super::{Level, Selector};

/// A published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// Short name of the publication.
    pub report: String,
    /// Label of the row to which ratios are taken, in each group.
    pub relative_to: Option<String>,
    /// Which mean and standard deviation stand beside the median, if any.
    pub mean: Option<TableMean>,
    /// What a reader must know.
    pub note: Option<String>,
    /// Rows of one quantity each; a single group without a label is the whole
    /// table.
    pub groups: Vec<TableGroup>,
}

/// The trials that a table's mean is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableMean {
    /// All of them.
    All,
    /// Those within 1.5 interquartile ranges of the quartiles.
    WithoutExtremes,
}

/// One quantity of a published table, under several conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableGroup {
    /// What the quantity is called.
    pub label: Option<String>,
    /// Metric of the measured column.
    pub metric: String,
    /// Metric of the same trial that it is divided by.
    pub per: Option<String>,
    /// Unit of the published column.
    pub published_unit: String,
    /// Base units of the metric in one published unit, such as 512 bytes in a
    /// block; `None` where the two cannot be converted, or need not be.
    pub scale: Option<f64>,
    /// Rows.
    pub rows: Vec<TableRow>,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// Heading of the row.
    pub label: String,
    /// The treatment that stands for it here; empty if none does.
    pub at: Selector,
    /// Published value.
    pub published: Option<f64>,
    /// Its published standard deviation.
    pub published_deviation: Option<f64>,
    /// Words in place of a value, or beside it.
    pub published_text: Option<String>,
}

/// Something to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureSpec {
    /// Heading.
    pub title: String,
    /// What is drawn.
    pub kind: FigureKind,
    /// Horizontal axis, or what makes the groups; empty for boxes and bars.
    pub factor: String,
    /// Metric.
    pub metric: String,
    /// Factor whose levels make the lines of a curve.
    pub series: Option<String>,
    /// Levels of the other factors.
    pub at: Selector,
    /// Levels of a distribution's factor that are left out.
    pub except: Vec<Level>,
    /// Draw `1 - of/to` of the metric instead of the metric.
    pub acceleration: Option<(Selector, Selector)>,
    /// Logarithmic vertical axis.
    pub log_y: bool,
    /// Derived quantities to mark.
    pub marks: Vec<String>,
    /// Lines of a curve that are named one by one.
    pub lines: Vec<LineSpec>,
    /// Groups of a box plot, or bars.
    pub groups: Vec<GroupSpec>,
    /// Label of the bar to which all are drawn as ratios.
    pub relative_to: Option<String>,
}

/// A line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineSpec {
    /// Legend entry.
    pub label: String,
    /// The treatments that it shows, but for the factor.
    pub at: Selector,
    /// Published points in base units.
    pub published: Vec<(f64, f64)>,
}

/// One group of a box plot, or one bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSpec {
    /// Its label.
    pub label: String,
    /// The treatment that it shows.
    pub at: Selector,
    /// In the metric's base unit: of a box lower whisker, lower quartile,
    /// median, upper quartile and upper whisker; of a bar its length.
    pub published: Vec<f64>,
}

/// Kinds of figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A metric against a numeric factor.
    Curve,
    /// Trials by level.
    Distribution,
    /// Quartiles and whiskers of treatments beside published ones.
    Box,
    /// Medians of treatments beside published values.
    Bar,
}

/// Something to advise on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceSpec {
    /// What it is about.
    pub topic: String,
    /// What is looked for.
    pub kind: AdviceKind,
    /// Factor among whose levels to choose.
    pub factor: String,
    /// Metric.
    pub metric: String,
    /// Factors for each of whose combinations the advice is given anew.
    pub each: Vec<String>,
    /// Levels of the other factors.
    pub at: Selector,
    /// Levels that are measured but never advised.
    pub except: Vec<Level>,
}

/// Kinds of advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceKind {
    /// The best level, and those not distinguishable from it.
    Best,
    /// The smallest level from which more gains nothing.
    Saturation,
    /// Cost per call and per byte of each level, over another factor.
    Cost {
        /// The factor that varies the number of calls.
        over: String,
    },
}
