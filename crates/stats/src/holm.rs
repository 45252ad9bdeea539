//! Guards a family of claims against verdicts by chance.

use crate::tarone::tarone_holm;
use crate::test_step::TestStep;

/// Applies Holm's step-down procedure (Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6 (1979)). Returns one step per p-value, in the
/// order of the input. The probability of rejecting any true hypothesis is at most `alpha`,
/// however the tests depend on each other.
///
/// For p-values that can be arbitrarily small, Tarone's procedure is the same.
///
/// # Panics
/// If a p-value is outside 0 to 1, or `alpha` is not strictly between 0 and 1.
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<TestStep> {
    tarone_holm(p_values, &vec![0.0; p_values.len()], alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_hypotheses_step_down_until_one_is_kept() {
        let steps = holm(&[0.01, 0.04, 0.03, 0.005], 0.05);
        let rejected: Vec<bool> = steps.iter().map(|s| s.rejected).collect();
        assert_eq!(rejected, [true, false, false, true]);
        let adjusted: Vec<f64> = steps.iter().map(|s| s.adjusted_p).collect();
        for (actual, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((actual - expected).abs() < 1e-15);
        }
        let levels: Vec<f64> = steps.iter().map(|s| s.level).collect();
        assert_eq!(levels, [0.05 / 3.0, 0.05 / 2.0, 0.05 / 2.0, 0.05 / 4.0]);
    }

    #[test]
    fn a_hypothesis_after_the_first_kept_one_is_kept_however_it_would_fare_alone() {
        let steps = holm(&[0.02, 0.04, 0.03], 0.05);
        assert!(steps.iter().all(|s| !s.rejected));
        assert!(steps.iter().all(|s| s.level == 0.05 / 3.0));
    }

    #[test]
    fn one_hypothesis_is_tested_at_the_whole_level() {
        let steps = holm(&[0.05], 0.05);
        let expected = TestStep {
            adjusted_p: 0.05,
            rejected: true,
            level: 0.05,
        };
        assert_eq!(steps, [expected]);
    }

    #[test]
    fn no_hypotheses_need_no_steps() {
        assert!(holm(&[], 0.05).is_empty());
    }
}
