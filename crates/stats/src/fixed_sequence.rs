//! Tests several claims in an order that is fixed beforehand.

use crate::test_step::{TestStep, UNTESTED, check};

/// Tests hypotheses in an order, each at the full `alpha`, up to the first one that is kept
/// (Maurer, Hothorn and Lehmacher, "Multiple comparisons in drug clinical trials and preclinical
/// assays: a-priori ordered hypotheses" (1995)). Returns one step per p-value, in the order of the
/// input. `order` lists indices of p-values; a hypothesis that it omits is not tested.
///
/// The order may come from the same values if the p-values are exact for every order. The p-values
/// of signed ranks are exact for every order, given the absolute values (Kropf, Läuter, Eszlinger,
/// Krohn and Paschke, "Nonparametric multiple test procedures with data-driven order of hypotheses
/// and with weighted hypotheses", Journal of Statistical Planning and Inference 125 (2004)).
///
/// # Panics
/// If a p-value is outside 0 to 1, `alpha` is not strictly between 0 and 1, or `order` has an
/// index without a p-value.
pub fn fixed_sequence(p_values: &[f64], order: &[usize], alpha: f64) -> Vec<TestStep> {
    check(p_values, alpha);
    let untested = TestStep {
        level: alpha,
        ..UNTESTED
    };
    let mut steps = vec![untested; p_values.len()];
    let mut adjusted_p = 0.0_f64;
    for &index in order {
        adjusted_p = adjusted_p.max(p_values[index]);
        steps[index] = TestStep {
            adjusted_p,
            rejected: adjusted_p <= alpha,
            level: alpha,
        };
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_first_kept_hypothesis_is_kept() {
        let steps = fixed_sequence(&[0.03, 0.01, 0.2, 0.04, 0.001], &[1, 3, 2, 0], 0.05);
        let rejected: Vec<bool> = steps.iter().map(|step| step.rejected).collect();
        assert_eq!(rejected, [false, true, false, true, false]);
        let adjusted: Vec<f64> = steps.iter().map(|step| step.adjusted_p).collect();
        assert_eq!(adjusted, [0.2, 0.01, 0.2, 0.04, 1.0]);
        assert!(steps.iter().all(|step| step.level == 0.05));
    }
}
