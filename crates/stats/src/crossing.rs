//! Where one treatment overtakes another.

/// The level at which `values`, such as a log-ratio of two treatments, first
/// come down to zero, interpolated linearly in the logarithm of the level
/// because sizes are chosen in powers.
///
/// The first level if the first value is already at or below zero; infinity if
/// none is: the crossing lies beyond the levels measured. `None` if there are
/// no levels or a value is NaN or infinite.
pub fn zero_crossing(levels: &[f64], values: &[f64]) -> Option<f64> {
    assert_eq!(levels.len(), values.len(), "a value for each level");
    assert!(
        levels.iter().all(|x| *x > 0.0) && levels.is_sorted_by(|a, b| a < b),
        "levels must be positive and ascend"
    );
    if levels.is_empty() || values.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let Some(after) = values.iter().position(|x| *x <= 0.0) else {
        return Some(f64::INFINITY);
    };
    // A value of exactly zero is a crossing at its level, without rounding.
    if after == 0 || values[after] == 0.0 {
        return Some(levels[after]);
    }
    let (above, below) = (values[after - 1], values[after]);
    let share = above / (above - below);
    let (from, to) = (levels[after - 1].ln(), levels[after].ln());
    Some((from + share * (to - from)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

    #[test]
    fn the_crossing_is_interpolated_in_the_logarithm_of_the_level() {
        let halfway = zero_crossing(&SIZES, &[2.0, 1.0, -1.0, -3.0]).unwrap();
        assert!((halfway - 8.0).abs() < 1e-12);
        let quarter = zero_crossing(&SIZES, &[2.0, 1.0, -3.0, 3.0]).unwrap();
        assert!((quarter - 4.0 * 4f64.powf(0.25)).abs() < 1e-12);
    }

    #[test]
    fn only_the_first_crossing_counts() {
        let level = zero_crossing(&SIZES, &[1.0, -1.0, 1.0, -1.0]).unwrap();
        assert!((level - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_zero_is_a_crossing_at_its_level() {
        assert_eq!(zero_crossing(&SIZES, &[1.0, 0.5, 0.0, -1.0]), Some(16.0));
    }

    #[test]
    fn a_crossing_outside_the_levels_is_censored() {
        assert_eq!(zero_crossing(&SIZES, &[-1.0; 4]), Some(1.0));
        assert_eq!(zero_crossing(&SIZES, &[1.0; 4]), Some(f64::INFINITY));
    }

    #[test]
    fn nothing_measured_has_no_crossing() {
        assert_eq!(zero_crossing(&[], &[]), None);
        assert_eq!(zero_crossing(&[1.0, 2.0], &[1.0, f64::NAN]), None);
    }

    #[test]
    #[should_panic(expected = "positive")]
    fn a_level_of_zero_has_no_logarithm() {
        let _ = zero_crossing(&[0.0, 1.0], &[1.0, -1.0]);
    }
}
