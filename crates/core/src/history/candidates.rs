//! Where a series may have changed.

use toll_stats::{change_points, median};

use crate::claim::MARGIN_MIN;

/// Fewer values do not show how they scatter.
pub const RECORDS_MIN: usize = 8;
/// What a further segment costs, over the logarithm of the number of values and the
/// variance. By simulation a flat series then has a candidate in at most 10 %.
const PENALTY: f64 = 5.0;

/// Places of the values with which a new level begins.
pub fn candidates(values: &[f64]) -> Vec<usize> {
    if values.len() < RECORDS_MIN || values.iter().any(|value| *value <= 0.0) {
        return Vec::new();
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let noise = noise(&logs);
    let scaled: Vec<f64> = logs.iter().map(|log| log / noise).collect();
    change_points(&scaled, PENALTY * (values.len() as f64).ln())
}

/// Deviation of a value from its level, by differences between neighbours: levels do not
/// matter to most of them. Where values repeat, a third of the least change that any
/// verdict calls a difference.
fn noise(logs: &[f64]) -> f64 {
    let differences = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let differences: Vec<f64> = differences.collect();
    // The median absolute deviation, scaled to that of one normal value.
    let deviation = 1.4826 * median(&differences) / 2.0_f64.sqrt();
    deviation.max(MARGIN_MIN.ln_1p() / 3.0)
}
