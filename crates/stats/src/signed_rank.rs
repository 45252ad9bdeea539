//! The centre of a symmetric distribution: estimate, interval and test.

use crate::Interval;
use crate::interval::{CONFIDENCE_SLACK, assert_confidence};
use crate::null::Null;
use crate::quantile::quantile_sorted;
use crate::walsh::WalshAverages;

/// Returns the Hodges–Lehmann estimate (the pseudo-median: the median of the Walsh averages) with
/// the interval that the signed-rank test does not reject. `values` has one value per block; the
/// result has their unit.
///
/// Estimate: Hodges and Lehmann, "Estimates of location based on rank tests", Annals of
/// Mathematical Statistics 34 (1963). Interval: Tukey (1949), in Hollander, Wolfe and Chicken,
/// "Nonparametric statistical methods" (2014), section 3.3. Its coverage is exact for any
/// continuous symmetric distribution, and at least as large with ties. It is the shortest
/// symmetric pair of Walsh averages with the requested confidence; the result has the achieved
/// confidence. The null distribution is exact up to 300 values, and above that normal with a
/// continuity correction.
///
/// Too few values for the confidence give the range of the Walsh averages, with the lower
/// confidence 1 - 2¹⁻ⁿ ([`Interval::reaches`] detects this). 95 % needs 6 values, 99 % needs 8.
///
/// Takes O(n²) time, up to 300 values also O(n³) once for the null distribution, and memory for
/// n(n+1)/2 doubles.
///
/// # Panics
/// If there are no values, one is not finite, or `confidence` is not strictly between 0 and 1.
pub fn hodges_lehmann(values: &[f64], confidence: f64) -> Interval {
    assert_confidence(confidence);
    let mut averages = WalshAverages::new(values).into_averages();
    let null = Null::signed_rank(values.len());
    let count = averages.len();
    let rank = interval_rank(count, 1.0 - confidence, |t| null.two_sided(t));
    // Only three averages are needed, and selection finds these in linear time without a full sort.
    let (below, upper, above) = averages.select_nth_unstable_by(count / 2, f64::total_cmp);
    let upper = *upper;
    let lower = match count % 2 {
        0 => below
            .iter()
            .copied()
            .max_by(f64::total_cmp)
            .unwrap_or(upper),
        _ => upper,
    };
    let end =
        |part: &mut [f64], index: usize| *part.select_nth_unstable_by(index, f64::total_cmp).1;
    Interval {
        estimate: quantile_sorted(&[lower, upper], 0.5),
        low: if rank - 1 < count / 2 {
            end(below, rank - 1)
        } else {
            upper
        },
        high: if count - rank > count / 2 {
            end(above, count - rank - count / 2 - 1)
        } else {
            upper
        },
        confidence: 1.0 - null.two_sided(rank - 1),
    }
}

/// Returns the two-sided p-value of the signed-rank test for a centre of 0: the smallest level at
/// which the [`hodges_lehmann`] interval of confidence 1 - level is entirely on one side of 0.
/// Values of 0 count in favour of a centre of 0.
///
/// # Panics
/// If there are no values, or one is not finite.
pub fn signed_rank_p(values: &[f64]) -> f64 {
    let walsh = WalshAverages::new(values);
    let count = walsh.count_at_most(0.0).min(walsh.count_at_least(0.0));
    Null::signed_rank(values.len()).two_sided(count)
}

/// Like [`hodges_lehmann`], for one of `count` intervals of equally many values that hold jointly
/// with `confidence`, however they depend on each other (Bonferroni; Dunn, "Multiple comparisons
/// among means", JASA 56 (1961)). The confidence in the result is the joint confidence.
pub(crate) fn joint_interval(values: &[f64], count: usize, confidence: f64) -> Interval {
    assert_confidence(confidence);
    let count = count as f64;
    let each = hodges_lehmann(values, 1.0 - (1.0 - confidence) / count);
    Interval {
        confidence: (1.0 - count * (1.0 - each.confidence)).max(0.0),
        ..each
    }
}

/// Returns the differences of two series, block by block.
pub(crate) fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len(), "each block needs a value of each series");
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Returns the largest rank k, at least 1, for which the interval from the k-th smallest to the
/// k-th largest of `count` ordered values misses the centre with probability at most `alpha`.
/// `two_sided(k - 1)` is that probability and grows with k.
pub(crate) fn interval_rank(count: usize, alpha: f64, two_sided: impl Fn(usize) -> f64) -> usize {
    // Past the middle the ends would change places.
    let (mut rank, mut beyond) = (1, count / 2 + 1);
    while beyond - rank > 1 {
        let middle = rank.midpoint(beyond);
        if two_sided(middle - 1) <= alpha + CONFIDENCE_SLACK {
            rank = middle;
        } else {
            beyond = middle;
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Region, decision_p};

    /// Hamilton depression scores before and after tranquillisers: example 3.1
    /// of Hollander, Wolfe and Chicken, from Salsburg (1970).
    const BEFORE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "3.14 is a score, not π")]
    const AFTER: [f64; 9] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];

    /// After minus before.
    fn changes() -> Vec<f64> {
        AFTER.iter().zip(BEFORE).map(|(y, x)| y - x).collect()
    }

    fn assert_near(actual: f64, expected: f64, tolerance: f64) {
        assert!(
            (actual - expected).abs() <= tolerance,
            "{actual} is not within {tolerance} of {expected}"
        );
    }

    #[test]
    fn depression_scores_give_the_published_estimate_and_interval() {
        let interval = hodges_lehmann(&changes(), 0.96);
        assert_near(interval.estimate, -0.46, 1e-12);
        assert_near(interval.low, -0.786, 1e-12);
        assert_near(interval.high, -0.010, 1e-12);
        assert_near(interval.confidence, 0.961, 5e-4);
    }

    #[test]
    fn depression_scores_give_the_published_p() {
        // T+ = 5 of 9 changes, P(T+ ≤ 5) = 10/512 (R prints V = 40 for the
        // opposite sign and p = 0.01953).
        let p = decision_p(&changes(), Region::Below(0.0));
        assert_eq!(p, 20.0 / 512.0);
    }

    #[test]
    fn too_few_values_give_their_range_and_admit_it() {
        let interval = hodges_lehmann(&[1.0, 2.0, 4.0, 8.0, 16.0], 0.95);
        assert_eq!((interval.low, interval.high), (1.0, 16.0));
        assert_eq!(interval.confidence, 1.0 - 2.0 / 32.0);
        assert!(!interval.reaches(0.95));
        let one = hodges_lehmann(&[3.0], 0.95);
        assert_eq!((one.low, one.high, one.confidence), (3.0, 3.0, 0.0));
    }

    #[test]
    fn six_values_suffice_for_95_percent_and_eight_for_99() {
        let values: Vec<f64> = (0..8).map(|i| f64::from(i * i)).collect();
        assert!(!hodges_lehmann(&values[..5], 0.95).reaches(0.95));
        assert!(hodges_lehmann(&values[..6], 0.95).reaches(0.95));
        assert!(!hodges_lehmann(&values[..7], 0.99).reaches(0.99));
        assert!(hodges_lehmann(&values, 0.99).reaches(0.99));
    }

    #[test]
    fn estimate_and_ends_are_those_of_the_averages_in_order() {
        for n in 1..40_usize {
            let values: Vec<f64> = (0..n).map(|i| ((i * 37 % 17) as f64).sqrt()).collect();
            let mut averages = WalshAverages::new(&values).into_averages();
            averages.sort_by(f64::total_cmp);
            for confidence in [0.1, 0.5, 0.95, 0.999] {
                let null = Null::signed_rank(n);
                let rank = interval_rank(averages.len(), 1.0 - confidence, |t| null.two_sided(t));
                let interval = hodges_lehmann(&values, confidence);
                let expected = (averages[rank - 1], averages[averages.len() - rank]);
                assert_eq!((interval.low, interval.high), expected, "{n}, {confidence}");
                assert_eq!(interval.estimate, quantile_sorted(&averages, 0.5), "{n}");
            }
        }
    }

    #[test]
    fn joint_intervals_are_wider_and_tell_the_confidence_of_all_together() {
        let values: Vec<f64> = (1..=12).map(f64::from).collect();
        let alone = joint_interval(&values, 1, 0.95);
        assert_eq!(alone, hodges_lehmann(&values, 0.95));
        let joint = joint_interval(&values, 3, 0.95);
        let each = hodges_lehmann(&values, 1.0 - 0.05 / 3.0);
        assert!(joint.low < alone.low && joint.high > alone.high);
        assert_eq!((joint.low, joint.high), (each.low, each.high));
        assert_near(1.0 - joint.confidence, 3.0 * (1.0 - each.confidence), 1e-14);
        assert_eq!(joint_interval(&values[..2], 3, 0.95).confidence, 0.0);
    }

    #[test]
    fn equal_values_give_a_point() {
        let interval = hodges_lehmann(&[0.25; 10], 0.95);
        assert_eq!((interval.low, interval.high), (0.25, 0.25));
    }

    #[test]
    fn an_interval_at_the_achieved_confidence_is_the_same_interval() {
        for n in 2..60 {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i * 37 % 101)).collect();
            for confidence in [0.5, 0.8, 0.9, 0.95, 0.99, 0.999] {
                let first = hodges_lehmann(&values, confidence);
                let again = hodges_lehmann(&values, first.confidence);
                assert_eq!(first, again, "{n} values at {confidence}");
            }
        }
    }

    #[test]
    fn a_p_is_the_level_from_which_the_interval_leaves_out_0() {
        for seed in 0..50 {
            let mut rng = crate::Rng::new(seed);
            let values: Vec<f64> = (0..12).map(|_| (rng.normal() + 0.7).max(0.0)).collect();
            let p = signed_rank_p(&values);
            for level in [0.001, 0.01, 0.05, 0.3] {
                let interval = hodges_lehmann(&values, 1.0 - level);
                let leaves_out = interval.reaches(1.0 - level) && !interval.contains(0.0);
                assert_eq!(p <= level, leaves_out, "{seed} {level} {p} {interval:?}");
            }
        }
        assert_eq!(signed_rank_p(&[0.0; 12]), 1.0);
    }
}
