//! Which version of a history introduced a step.

use crate::quantile::mean;

/// Degrees of freedom of the noise. Its tails are so heavy that no block decides through a single
/// outlier (Lange, Little and Taylor, "Robust statistical modeling using the t distribution", JASA
/// 84 (1989), use 4).
const FREEDOM: f64 = 4.0;

/// A history in which one version, and all later ones, are higher by a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepModel {
    /// Height of the step, on the scale of the values: a log-ratio if these are logarithms.
    pub height: f64,
    /// Scale of the noise of one value, on the scale of the values; above 0.
    pub noise: f64,
}

impl StepModel {
    /// Returns the natural logarithm of the likelihood of one block, up to a constant, if `first`
    /// is the first version with the step.
    ///
    /// A block holds pairs of a version's place in the history and its value. The common level of
    /// a block is unknown and estimated, so only differences within the block count. Their noise
    /// has a multivariate t distribution.
    ///
    /// # Panics
    /// If the block is empty, or the noise is not above 0.
    pub fn log_likelihood(&self, block: &[(usize, f64)], first: usize) -> f64 {
        assert!(self.noise > 0.0, "noise of {} is not above 0", self.noise);
        let lowered = |(place, value): &(usize, f64)| {
            if *place >= first {
                value - self.height
            } else {
                *value
            }
        };
        let values: Vec<f64> = block.iter().map(lowered).collect();
        let centre = mean(&values);
        let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
        let differences = values.len() as f64 - 1.0;
        -(FREEDOM + differences) / 2.0 * (squares / (FREEDOM * self.noise.powi(2))).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: StepModel = StepModel {
        height: 0.03,
        noise: 0.02,
    };

    /// How much more likely a step at the middle version is than one after it, as a log-ratio.
    fn evidence(block: &[(usize, f64)]) -> f64 {
        MODEL.log_likelihood(block, 5) - MODEL.log_likelihood(block, 6)
    }

    #[test]
    fn a_version_is_on_the_side_of_the_end_that_it_is_nearer_to() {
        let block = |middle| [(0, 7.0), (5, 7.0 + middle), (9, 7.03)];
        assert!(evidence(&block(0.016)) > 0.0);
        assert!(evidence(&block(0.015)).abs() < 1e-12);
        assert!(evidence(&block(0.014)) < 0.0);
    }

    #[test]
    fn what_a_block_has_in_common_says_nothing() {
        let block = |common| [(0, common), (5, common + 0.02), (9, common + 0.04)];
        assert!((evidence(&block(0.0)) - evidence(&block(5.0))).abs() < 1e-9);
        assert_eq!(evidence(&[(5, 3.0)]), 0.0);
        // A block of versions that are all before the step, or all after it, cannot show where it
        // is.
        assert_eq!(evidence(&[(0, 1.0), (4, 1.5)]), 0.0);
        assert!(evidence(&[(6, 1.0), (9, 1.5)]).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_says_little() {
        let outlier = evidence(&[(0, 0.0), (5, 2.0), (9, 0.03)]);
        let plain = evidence(&[(0, 0.0), (5, 0.03), (9, 0.03)]);
        assert!(0.0 < outlier && outlier < plain, "{outlier} {plain}");
    }
}
