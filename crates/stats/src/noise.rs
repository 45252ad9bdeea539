//! A measure of spread that a few disturbed trials do not move.

use crate::quantile::median;

/// 1 / Φ⁻¹(3/4): makes the deviation estimate σ for normal values.
const NORMAL_SCALE: f64 = 1.482_602_218_505_602;

/// The median absolute deviation from the median, times 1.4826, so that it
/// estimates the standard deviation of normal values (Hampel, "The influence
/// curve and its role in robust estimation", JASA 69 (1974)).
pub fn mad(values: &[f64]) -> f64 {
    assert!(
        values.iter().all(|x| x.is_finite()),
        "a value is not finite"
    );
    let centre = median(values);
    let deviations: Vec<f64> = values.iter().map(|x| (x - centre).abs()).collect();
    NORMAL_SCALE * median(&deviations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn one_wild_value_does_not_move_the_deviation() {
        let calm = mad(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(calm, NORMAL_SCALE);
        assert_eq!(mad(&[1.0, 2.0, 3.0, 4.0, 1e9]), calm);
    }

    #[test]
    fn equal_values_have_no_deviation() {
        assert_eq!(mad(&[2.0; 7]), 0.0);
    }

    #[test]
    fn it_estimates_the_standard_deviation_of_normal_values() {
        let mut rng = Rng::new(7);
        let values: Vec<f64> = (0..20_000).map(|_| 3.0 * rng.normal()).collect();
        assert!((mad(&values) - 3.0).abs() < 0.1, "{}", mad(&values));
    }
}
