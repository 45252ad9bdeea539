//! Which version of a history brought a step.

use crate::quantile::mean;

/// Degrees of freedom of the noise: tails so heavy that no block decides by one
/// outlier alone (Lange, Little and Taylor, "Robust statistical modeling using the t
/// distribution", JASA 84 (1989), use 4).
const FREEDOM: f64 = 4.0;

/// A history of which all versions from one on are higher by a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepModel {
    /// Height of the step; logarithmic where values are.
    pub height: f64,
    /// Scale of the noise of one value, above 0.
    pub noise: f64,
}

impl StepModel {
    /// Logarithm of the likelihood of one block, up to a constant, if `first` is the
    /// first version with the step.
    ///
    /// A block holds versions, by their places in the history, with a value each. What
    /// it has in common is unknown and estimated, so only differences within it count.
    /// Their noise has a multivariate t distribution.
    pub fn log_likelihood(&self, block: &[(usize, f64)], first: usize) -> f64 {
        assert!(self.noise > 0.0, "noise of {}", self.noise);
        let lowered = |(place, value): &(usize, f64)| match *place >= first {
            true => value - self.height,
            false => *value,
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

    /// How much more likely a step up to the middle version is than one after it.
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
        // A block of versions before the step, or after it, cannot tell where it is.
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
