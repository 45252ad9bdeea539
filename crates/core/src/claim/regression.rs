//! Whether a ratio is a regression by more than a limit.

use super::model::{Analysis, Better, Comparison, Estimate};

/// Whether a ratio is a regression past a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regression {
    /// No regression: the interval lies wholly below the limit.
    No,
    /// A regression: the interval lies wholly past the limit, and past the noise.
    Yes,
    /// Neither is shown, or the interval may not decide.
    Undecided,
}

/// Judges an interval that may decide. `limit` and `noise` are shares; `noise` is how far apart
/// twins may be. At 0.05, a duration must be more than 1.05 times as long as the earlier one, and a
/// throughput less than 1/1.05 of it.
pub fn judge(ratio: &Estimate, better: Better, limit: f64, noise: f64) -> Regression {
    let (least, most) = match better {
        Better::Lower => (ratio.low, ratio.high),
        Better::Higher => (1.0 / ratio.high, 1.0 / ratio.low),
        Better::Neither => return Regression::No,
    };
    match () {
        () if most < 1.0 + limit => Regression::No,
        () if least > 1.0 + limit.max(noise) => Regression::Yes,
        () => Regression::Undecided,
    }
}

impl Comparison {
    /// Judges whether the treatment is worse by more than `limit` (a share) and by more than twins
    /// differ.
    pub fn regression(&self, analysis: &Analysis, limit: f64) -> Regression {
        let better = analysis.metrics[&self.metric].better;
        let noise = self.noise(analysis).unwrap_or_default();
        if self.may_decide {
            judge(&self.ratio, better, limit, noise)
        } else {
            Regression::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(low: f64, high: f64, better: Better, expected: Regression) {
        let ratio = Estimate {
            value: low.midpoint(high),
            low,
            high,
            confidence: 0.95,
        };
        let found = judge(&ratio, better, 0.05, 0.03);
        assert_eq!(found, expected, "[{low}, {high}], {better:?} is better");
        let noisy = judge(&ratio, better, 0.05, 0.3);
        let expected_noisy = match expected {
            Regression::Yes => Regression::Undecided,
            other => other,
        };
        assert_eq!(noisy, expected_noisy, "[{low}, {high}] with noise");
    }

    #[test]
    fn an_interval_decides_if_it_lies_on_one_side_of_the_limit() {
        use Regression::{No, Undecided, Yes};
        check(1.051, 1.2, Better::Lower, Yes);
        check(1.05, 1.2, Better::Lower, Undecided);
        check(1.01, 1.2, Better::Lower, Undecided);
        check(1.01, 1.049, Better::Lower, No);
        check(0.5, 0.6, Better::Lower, No);
        check(0.9, 0.952, Better::Higher, Yes);
        check(0.9, 0.953, Better::Higher, Undecided);
        check(0.953, 1.1, Better::Higher, No);
        check(1.2, 1.3, Better::Higher, No);
        check(1.2, 1.3, Better::Neither, No);
    }
}
