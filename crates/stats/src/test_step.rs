//! What procedures for several hypotheses share.

/// The result of a multiple-testing procedure for one hypothesis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestStep {
    /// The smallest error rate of the family at which the hypothesis would be rejected.
    pub adjusted_p: f64,
    /// Whether the hypothesis is rejected at the family's error rate.
    pub rejected: bool,
    /// The level at which the hypothesis was tested: an interval of confidence 1 - `level` agrees
    /// with `rejected`. Hypotheses after the first kept hypothesis are not tested, and have
    /// its level.
    pub level: f64,
}

/// A hypothesis that has not been tested yet.
pub(crate) const UNTESTED: TestStep = TestStep {
    adjusted_p: 1.0,
    rejected: false,
    level: 0.0,
};

/// Checks the arguments of a multiple-testing procedure.
pub(crate) fn check(p_values: &[f64], alpha: f64) {
    assert!(
        p_values.iter().all(|p| (0.0..=1.0).contains(p)),
        "a p-value is outside 0 to 1"
    );
    assert!(
        alpha > 0.0 && alpha < 1.0,
        "alpha must lie strictly between 0 and 1, not {alpha}"
    );
}

/// Returns the indices of the p-values, the smallest first.
pub(crate) fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    order
}
