//! Conclusions of the claim stage: plain data, ready to be shown.
//!
//! All values are on natural scales (ratios, bytes, nanoseconds), never logarithms. A ratio always
//! divides a treatment by its reference, so a duration ratio under 1 means that the treatment is
//! faster.

mod analysis;
mod comparison;
mod derived;
mod e_values;
mod estimate;
mod functions;
mod metric;
mod outcome;
mod over_runs;
mod overall;
mod runs;
mod selftest;
mod shown;
mod treatment;
mod verdict;

pub use crate::explain::model::{
    ExplainedCount, ExplainedRow, Explanation, ProfilingOverhead, RowKind,
};
pub use crate::spec::{Better, ClaimDirection};
pub use analysis::{Advice, Analysis, DisturbanceSummary, FactorSummary, GuestSummary};
pub use comparison::{Comparison, Relation};
pub use derived::{DerivedEstimate, DerivedValue, Price};
pub use e_values::EValues;
pub use estimate::Estimate;
pub use functions::{FunctionDifference, FunctionDifferences};
pub use metric::{ExplanatoryMetrics, Metric, SideBySide};
pub use outcome::{ErrorRate, NoVerdict, Outcome};
pub use over_runs::{ClaimOverRuns, ExcludedRuns, OverRuns};
pub use overall::Overall;
pub use runs::{Replicates, RunComparison, RunRatio, Sessions};
pub use selftest::{Rate, SelftestArm, SelftestReport};
pub use shown::{
    Bar, BarChart, BoxGroup, BoxPlot, Curve, CurveMark, CurvePoint, CurveSeries, Distribution,
    DistributionGroup, Figure, FiveNumbers, MeasuredBox, MeasuredMean, NearestCache, Plateau,
    PublishedGroup, PublishedRow, PublishedTable, Staircase, Step,
};
pub use treatment::{TreatmentEstimate, TreatmentSummary, TwinSummary};
pub use verdict::Verdict;
