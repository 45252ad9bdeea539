//! An estimate with its interval.

/// A closed interval `[low, high]` around an estimate, on the estimate's scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The point estimate.
    pub estimate: f64,
    /// Lower end of the interval; negative infinity if beyond the measured range.
    pub low: f64,
    /// Upper end of the interval; infinity if beyond the measured range.
    pub high: f64,
    /// Coverage that the null distribution achieves, as a share of 1. An interval of too few
    /// values has less than requested; see [`Interval::reaches`].
    pub confidence: f64,
}

impl Interval {
    /// Returns half the distance between the ends; 0 if both are the same infinity.
    pub fn half_width(&self) -> f64 {
        // inf - inf is NaN, which would never meet a target width.
        if self.low == self.high {
            0.0
        } else {
            (self.high - self.low) / 2.0
        }
    }

    /// Whether `x` is in the closed interval.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Whether the interval has at least the confidence `nominal`. An exact interval has less if
    /// there are too few values for any interval of that confidence. A conclusion from it would
    /// then have a higher error rate than requested.
    pub fn reaches(&self, nominal: f64) -> bool {
        self.confidence >= nominal - CONFIDENCE_SLACK
    }

    /// Returns the interval on another scale. `f` must be increasing, such as `exp` from
    /// log-ratios to ratios; coverage then stays the same.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Interval {
        Interval {
            estimate: f(self.estimate),
            low: f(self.low),
            high: f(self.high),
            confidence: self.confidence,
        }
    }
}

/// Rounding error of `1 - (1 - level)`. An interval requested at exactly the confidence that
/// another interval achieved must be the same interval.
pub(crate) const CONFIDENCE_SLACK: f64 = 4.0 * f64::EPSILON;

/// Checks a confidence.
pub(crate) fn assert_confidence(confidence: f64) {
    assert!(
        confidence > 0.0 && confidence < 1.0,
        "confidence must lie strictly between 0 and 1, not {confidence}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Interval = Interval {
        estimate: 0.5,
        low: -1.0,
        high: 2.0,
        confidence: 0.95,
    };

    #[test]
    fn half_width_is_half_the_distance_of_the_ends() {
        assert_eq!(INTERVAL.half_width(), 1.5);
    }

    #[test]
    fn half_width_of_a_censored_point_is_zero_and_of_a_half_line_infinite() {
        let censored = INTERVAL.map(|_| f64::INFINITY);
        assert_eq!(censored.half_width(), 0.0);
        let half_line = Interval {
            high: f64::INFINITY,
            ..INTERVAL
        };
        assert_eq!(half_line.half_width(), f64::INFINITY);
    }

    #[test]
    fn both_ends_belong_to_the_interval() {
        assert!(INTERVAL.contains(-1.0) && INTERVAL.contains(2.0) && INTERVAL.contains(0.0));
        assert!(!INTERVAL.contains(-1.1) && !INTERVAL.contains(2.1));
        assert!(!INTERVAL.contains(f64::NAN));
    }

    #[test]
    fn mapping_keeps_the_confidence_and_moves_the_rest() {
        let ratio = INTERVAL.map(f64::exp);
        assert_eq!(ratio.estimate, 0.5f64.exp());
        assert_eq!(ratio.low, (-1.0f64).exp());
        assert_eq!(ratio.high, 2.0f64.exp());
        assert_eq!(ratio.confidence, 0.95);
    }

    #[test]
    fn an_interval_reaches_its_own_confidence_but_no_higher_one() {
        assert!(INTERVAL.reaches(0.95) && INTERVAL.reaches(0.9));
        assert!(!INTERVAL.reaches(0.951));
        // What 1 - (1 - confidence) may round to.
        assert!(INTERVAL.reaches(0.95f64.next_up()));
    }
}
