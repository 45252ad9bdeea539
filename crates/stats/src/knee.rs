//! Where a curve stops rising.

/// The smallest level whose throughput is at least `1 - tolerance` of the
/// highest one: from there on, a larger level gains nothing worth having.
///
/// That is the question of whoever picks a buffer size. Kneedle (Satopää and
/// others, "Finding a 'kneedle' in a haystack", ICDCS workshops 2011) answers
/// another one, where the curve bends most, which moves with the range of
/// levels that happened to be measured and with how they are scaled.
///
/// The answer is one of the levels. If it is the last one, the curve may still
/// be rising there: the knee is at that level or beyond. `None` if there are
/// no levels, a throughput is NaN or infinite, or none is above 0.
pub fn knee(levels: &[f64], throughput: &[f64], tolerance: f64) -> Option<f64> {
    assert_eq!(
        levels.len(),
        throughput.len(),
        "a throughput for each level"
    );
    assert!(levels.is_sorted_by(|a, b| a < b), "levels must ascend");
    assert!(
        (0.0..1.0).contains(&tolerance),
        "tolerance {tolerance} is outside 0 to 1"
    );
    if throughput.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let highest = throughput.iter().copied().reduce(f64::max)?;
    if highest <= 0.0 {
        return None;
    }
    let enough = (1.0 - tolerance) * highest;
    let first = throughput.iter().position(|x| *x >= enough)?;
    Some(levels[first])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 5] = [1.0, 4.0, 16.0, 64.0, 256.0];

    #[test]
    fn the_knee_is_the_first_level_within_tolerance_of_the_best() {
        let throughput = [10.0, 60.0, 96.0, 100.0, 98.0];
        assert_eq!(knee(&SIZES, &throughput, 0.05), Some(16.0));
        assert_eq!(knee(&SIZES, &throughput, 0.0), Some(64.0));
        assert_eq!(knee(&SIZES, &throughput, 0.5), Some(4.0));
    }

    #[test]
    fn a_flat_curve_has_its_knee_at_the_first_level_and_a_rising_one_at_the_last() {
        assert_eq!(knee(&SIZES, &[7.0; 5], 0.05), Some(1.0));
        assert_eq!(knee(&SIZES, &[1.0, 2.0, 4.0, 8.0, 16.0], 0.05), Some(256.0));
    }

    #[test]
    fn nothing_measured_has_no_knee() {
        assert_eq!(knee(&[], &[], 0.05), None);
        assert_eq!(knee(&SIZES, &[0.0; 5], 0.05), None);
        assert_eq!(knee(&[1.0, 2.0], &[1.0, f64::NAN], 0.05), None);
    }

    #[test]
    #[should_panic(expected = "ascend")]
    fn levels_out_of_order_are_a_mistake() {
        let _ = knee(&[2.0, 1.0], &[1.0, 2.0], 0.05);
    }
}
