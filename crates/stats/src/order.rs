//! An interval for the median from order statistics.

use crate::Interval;
use crate::interval::assert_confidence;
use crate::quantile::{quantile_sorted, sorted};
use crate::signed_rank::interval_rank;

/// Returns the median, in the unit of the values, with the exact interval between two order
/// statistics (Thompson, "On confidence ranges for the median", Annals of Mathematical Statistics
/// 7 (1936); David and Nagaraja, "Order statistics" (2003), section 7.1).
///
/// The interval is valid for every continuous distribution, symmetric or not, and covers at least
/// as often with ties. The result has the achieved confidence. Too few values for the requested
/// confidence give the interval from minimum to maximum, with the lower confidence 1 - 2¹⁻ⁿ.
///
/// # Panics
/// If there are no values, one is NaN, or `confidence` is not strictly between 0 and 1.
pub fn median_interval(values: &[f64], confidence: f64) -> Interval {
    assert_confidence(confidence);
    let sorted = sorted(values);
    let below = fair_coin_cdf(sorted.len());
    let two_sided = |t: usize| (2.0 * below[t]).min(1.0);
    let rank = interval_rank(sorted.len(), 1.0 - confidence, two_sided);
    Interval {
        estimate: quantile_sorted(&sorted, 0.5),
        low: sorted[rank - 1],
        high: sorted[sorted.len() - rank],
        confidence: 1.0 - two_sided(rank - 1),
    }
}

/// Returns P(B ≤ t) for t from 0 to `tosses`, where B is the number of heads of a fair coin.
fn fair_coin_cdf(tosses: usize) -> Vec<f64> {
    // Weights relative to the middle one: 2⁻ⁿ would underflow past 1074 tosses.
    let middle = tosses / 2;
    let mut cumulative = vec![1.0; tosses + 1];
    for heads in middle + 1..=tosses {
        cumulative[heads] = cumulative[heads - 1] * (tosses - heads + 1) as f64 / heads as f64;
    }
    for heads in (0..middle).rev() {
        cumulative[heads] = cumulative[heads + 1] * (heads + 1) as f64 / (tosses - heads) as f64;
    }
    let total: f64 = cumulative.iter().sum();
    let mut sum = 0.0;
    for entry in &mut cumulative {
        sum += *entry / total;
        *entry = sum;
    }
    cumulative
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depression_scores_give_the_published_interval() {
        // Example 3.6 of Hollander, Wolfe and Chicken: 96.1 %, second smallest
        // to second largest of nine changes.
        let changes = [
            -0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010,
        ];
        let interval = median_interval(&changes, 0.95);
        assert_eq!((interval.low, interval.high), (-0.952, 0.080));
        assert_eq!(interval.estimate, -0.490);
        assert!((interval.confidence - (1.0 - 20.0 / 512.0)).abs() < 1e-15);
    }

    #[test]
    fn too_few_values_give_their_range_and_admit_it() {
        let interval = median_interval(&[3.0, 1.0, 2.0], 0.95);
        assert_eq!((interval.low, interval.high), (1.0, 3.0));
        assert!((interval.confidence - 0.75).abs() < 1e-15);
        assert!(!interval.reaches(0.95));
        assert_eq!(median_interval(&[5.0], 0.95).confidence, 0.0);
    }

    #[test]
    fn little_confidence_is_an_interval_of_the_middle_values() {
        let interval = median_interval(&[1.0, 2.0, 3.0, 4.0], 0.3);
        assert_eq!((interval.low, interval.high), (2.0, 3.0));
        assert!((interval.confidence - 0.375).abs() < 1e-15);
        let odd = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.001);
        assert_eq!((odd.low, odd.high), (2.0, 4.0));
    }

    #[test]
    fn the_coin_is_fair_and_its_tail_survives_many_tosses() {
        let small = fair_coin_cdf(4);
        for (actual, expected) in small.iter().zip([1.0, 5.0, 11.0, 15.0, 16.0]) {
            assert!((actual - expected / 16.0).abs() < 1e-15);
        }
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let interval = median_interval(&values, 0.95);
        assert!(interval.reaches(0.95) && interval.confidence < 0.9525);
        // The normal approximation puts the ranks at 5000 -+ 1.96 * 50.
        assert_eq!(interval.low, 4901.0);
        assert_eq!(interval.high, 5098.0);
    }
}
