//! Where one treatment overtakes another.

use crate::Interval;
use crate::signed_rank::joint_interval;

/// Returns the level at which `values`, such as log-ratios of two treatments, first fall to zero.
/// `values` has one series per level with one value per block in it. The curve consists of the
/// estimates over the blocks ([`hodges_lehmann`]). It is interpolated linearly in the logarithm of
/// the level, because sizes are chosen in powers.
///
/// The result is the first level if the first value is already at or below zero. The result is
/// infinity if no value is at or below zero: the crossing is beyond the measured levels.
///
/// The intervals of all levels hold jointly. The interval of the crossing begins where their lower
/// ends first fall to zero, and ends where their upper ends do. Every curve between the ends
/// crosses there.
///
/// [`hodges_lehmann`]: crate::hodges_lehmann
///
/// # Panics
/// If there are no levels, they are not positive and ascending, `values` has a different length,
/// or `confidence` is not strictly between 0 and 1.
pub fn zero_crossing(levels: &[f64], values: &[Vec<f64>], confidence: f64) -> Interval {
    assert_eq!(levels.len(), values.len(), "each level needs a series");
    assert!(
        levels.iter().all(|x| *x > 0.0) && levels.is_sorted_by(|a, b| a < b),
        "levels must be positive and ascend"
    );
    let band: Vec<Interval> = values
        .iter()
        .map(|values| joint_interval(values, levels.len(), confidence))
        .collect();
    let first_zero = |end: fn(&Interval) -> f64| {
        let curve: Vec<f64> = band.iter().map(end).collect();
        first_zero(levels, &curve)
    };
    Interval {
        estimate: first_zero(|at| at.estimate),
        low: first_zero(|at| at.low),
        high: first_zero(|at| at.high),
        confidence: band.first().expect("a crossing needs a level").confidence,
    }
}

fn first_zero(levels: &[f64], curve: &[f64]) -> f64 {
    let Some(after) = curve.iter().position(|x| *x <= 0.0) else {
        return f64::INFINITY;
    };
    // A value of exactly zero is a crossing at its level, without rounding.
    if after == 0 || curve[after] == 0.0 {
        return levels[after];
    }
    let (above, below) = (curve[after - 1], curve[after]);
    let share = above / (above - below);
    let (from, to) = (levels[after - 1].ln(), levels[after].ln());
    (from + share * (to - from)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

    #[test]
    fn the_crossing_is_interpolated_in_the_logarithm_of_the_level() {
        let halfway = first_zero(&SIZES, &[2.0, 1.0, -1.0, -3.0]);
        assert!((halfway - 8.0).abs() < 1e-12);
        let quarter = first_zero(&SIZES, &[2.0, 1.0, -3.0, 3.0]);
        assert!((quarter - 4.0 * 4f64.powf(0.25)).abs() < 1e-12);
    }

    #[test]
    fn only_the_first_crossing_counts() {
        let level = first_zero(&SIZES, &[1.0, -1.0, 1.0, -1.0]);
        assert!((level - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_zero_is_a_crossing_at_its_level() {
        assert_eq!(first_zero(&SIZES, &[1.0, 0.5, 0.0, -1.0]), 16.0);
    }

    #[test]
    fn a_crossing_outside_the_levels_is_censored() {
        assert_eq!(first_zero(&SIZES, &[-1.0; 4]), 1.0);
        assert_eq!(first_zero(&SIZES, &[1.0; 4]), f64::INFINITY);
    }

    #[test]
    fn the_interval_reaches_from_the_first_to_the_last_place_that_the_band_allows() {
        let around = |centre: f64| (-6..=6).map(move |i| centre + f64::from(i));
        let centres = [20.0, 0.5, -0.5, -20.0];
        let values = centres.map(|centre| around(centre).collect());
        let crossing = zero_crossing(&SIZES, &values, 0.95);
        let band = joint_interval(&values[0], 4, 0.95);
        let all_at = |offset: f64| first_zero(&SIZES, &centres.map(|x| x + offset));
        assert!((crossing.low - all_at(band.low - 20.0)).abs() < 1e-12);
        assert!((crossing.high - all_at(band.high - 20.0)).abs() < 1e-12);
        assert!((crossing.estimate - 8.0).abs() < 1e-12);
        assert!(crossing.low < 4.0 && crossing.high > 16.0 && crossing.high < 64.0);
        assert_eq!(crossing.confidence, band.confidence);
        let beyond = zero_crossing(&SIZES[..3], &values[..3], 0.95);
        assert_eq!(beyond.high, f64::INFINITY);
    }

    #[test]
    #[should_panic(expected = "positive")]
    fn a_level_of_zero_has_no_logarithm() {
        let _ = zero_crossing(&[0.0, 1.0], &[vec![1.0], vec![-1.0]], 0.95);
    }
}
