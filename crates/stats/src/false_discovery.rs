//! Tests several claims so that only a small share of the verdicts is wrong.

use crate::test_step::{TestStep, UNTESTED, ascending, check};

/// Applies the step-up procedure of Benjamini and Hochberg ("Controlling the false discovery
/// rate", JRSS B 57 (1995)). Returns one step per p-value, in the order of the input. The
/// procedure rejects the R smallest of m p-values, where R is the largest number for which the
/// R-th smallest is at most R/m of `alpha`. On average at most a share `alpha` of the rejections
/// is wrong, if the tests are independent or depend positively (Benjamini and Yekutieli, Annals of
/// Statistics 29 (2001)).
///
/// Intervals at the level of the rejected hypotheses are, on average, wrong equally rarely
/// (Benjamini and Yekutieli, "False discovery rate-adjusted multiple confidence intervals for
/// selected parameters", JASA 100 (2005)).
///
/// # Panics
/// If a p-value is outside 0 to 1, or `alpha` is not strictly between 0 and 1.
pub fn benjamini_hochberg(p_values: &[f64], alpha: f64) -> Vec<TestStep> {
    check(p_values, alpha);
    let order = ascending(p_values);
    let count = p_values.len() as f64;
    let level = |rank: usize| (alpha * rank as f64 / count).min(alpha);
    let passes = |rank: &usize| p_values[order[rank - 1]] <= level(*rank);
    let rejections = (1..=order.len()).rev().find(passes).unwrap_or_default();
    let mut steps = vec![UNTESTED; p_values.len()];
    let mut adjusted_p = 1.0_f64;
    for (place, &index) in order.iter().enumerate().rev() {
        let rank = place + 1;
        adjusted_p = adjusted_p.min(p_values[index] * count / rank as f64);
        let rejected = rank <= rejections;
        steps[index] = TestStep {
            adjusted_p,
            rejected,
            level: level(if rejected { rejections } else { rejections + 1 }),
        };
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fifteen p-values of section 3 of Benjamini and Hochberg (1995). At 5 % four are
    /// rejected, and three by Bonferroni's procedure.
    #[test]
    fn thrombolysis_gives_the_published_rejections() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let steps = benjamini_hochberg(&p, 0.05);
        assert_eq!(steps.iter().filter(|step| step.rejected).count(), 4);
        assert_eq!(steps[3].level, 0.05 * 4.0 / 15.0);
        assert_eq!(steps[4].level, 0.05 * 5.0 / 15.0);
        assert!((steps[3].adjusted_p - 0.035_625).abs() < 1e-12);
        for step in &steps {
            assert_eq!(step.rejected, step.adjusted_p <= 0.05);
        }
    }

    #[test]
    fn a_later_small_p_value_carries_earlier_ones() {
        let steps = benjamini_hochberg(&[0.04, 0.049, 0.03], 0.05);
        assert!(
            steps
                .iter()
                .all(|step| step.rejected && step.adjusted_p <= 0.05)
        );
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
    }
}
