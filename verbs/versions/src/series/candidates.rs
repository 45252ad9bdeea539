//! Where a series may have changed.

use toll_core::claim::MARGIN_MIN;
use toll_stats::{change_points, median};

/// Minimum number of values of a series. Fewer values do not show how much they scatter.
pub const RECORDS_MIN: usize = 8;
/// Penalty of a further segment, divided by the logarithm of the number of values and by
/// the variance. In simulations, at most 10 % of flat series then have a candidate.
const PENALTY: f64 = 5.0;

/// Returns the places of the values at which a new level begins.
pub fn candidates(values: &[f64]) -> Vec<usize> {
    if values.len() < RECORDS_MIN || values.iter().any(|value| *value <= 0.0) {
        return Vec::new();
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let noise = noise(&logs);
    let scaled: Vec<f64> = logs.iter().map(|log| log / noise).collect();
    change_points(&scaled, PENALTY * (values.len() as f64).ln())
}

/// Estimates the deviation of a value from its level by differences between neighbours, most of
/// which a change of level does not affect. If values repeat, the estimate is a third of the
/// smallest change that any verdict calls a difference.
fn noise(logs: &[f64]) -> f64 {
    let differences = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let differences: Vec<f64> = differences.collect();
    // The median absolute deviation is scaled to the deviation of one normal value.
    let deviation = 1.4826 * median(&differences) / 2.0_f64.sqrt();
    deviation.max(MARGIN_MIN.ln_1p() / 3.0)
}
