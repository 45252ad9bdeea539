//! From an interval to a verdict on a claim.
//!
//! The margin cuts the scale in three: below `threshold - margin`, the closed
//! margin itself, above `threshold + margin`. A claim names one of the parts.
//! It is supported if the interval lies wholly in that part, refuted if it
//! lies wholly outside, and no verdict is given on an interval across a
//! border. There are two margins: to be called different, values must lie past
//! the wider one, which includes what the machine's noise alone can do; to be
//! called the same, within the narrower one, which does not. So noise makes
//! either harder to show, and neither easier.
//!
//! "No difference" is thus shown only by an interval inside the margin
//! (Schuirmann, "A comparison of the two one-sided tests procedure and the
//! power approach", Journal of Pharmacokinetics and Biopharmaceutics 15
//! (1987)), never by a failure to find one.

use crate::Interval;
use crate::null::Null;
use crate::walsh::WalshAverages;

/// The part of the scale that a claim names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Below the threshold by more than the margin.
    Less,
    /// Above the threshold by more than the margin.
    Greater,
    /// Within the margin of the threshold, its ends included.
    Equal,
}

/// What the interval says on the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The interval lies wholly where the claim says.
    Supported,
    /// The interval lies wholly elsewhere.
    Refuted,
    /// The interval crosses the border.
    Inconclusive,
}

/// How far from the threshold values are the same, and from where on they are
/// different. In between they are neither.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margins {
    /// Up to here values are called the same.
    pub same: f64,
    /// Past here they are called different; at least `same`.
    pub different: f64,
}

impl From<f64> for Margins {
    /// One margin for both.
    fn from(margin: f64) -> Self {
        Self {
            same: margin,
            different: margin,
        }
    }
}

impl Margins {
    fn check(self, threshold: f64) -> Self {
        assert!(!threshold.is_nan(), "the threshold is NaN");
        assert!(
            0.0 <= self.same && self.same <= self.different,
            "margin must not be negative, nor the wider below the narrower: {self:?}"
        );
        self
    }
}

/// Decides a claim from its interval, on a scale where differences matter,
/// such as log-ratios. Pass an interval that reaches the confidence asked for
/// ([`Interval::reaches`]); one of fewer values would decide too lightly.
///
/// An interval wholly outside the margin refutes [`Direction::Equal`] only if
/// it lies wholly on one side.
pub fn decide(
    interval: &Interval,
    direction: Direction,
    threshold: f64,
    margins: impl Into<Margins>,
) -> Decision {
    let Interval { low, high, .. } = *interval;
    assert!(low <= high, "interval from {low} to {high}");
    let Margins { same, different } = margins.into().check(threshold);
    let (supported, refuted) = match direction {
        Direction::Less => (high < threshold - different, low >= threshold - same),
        Direction::Greater => (low > threshold + different, high <= threshold + same),
        Direction::Equal => (
            low >= threshold - same && high <= threshold + same,
            high < threshold - different || low > threshold + different,
        ),
    };
    if supported {
        Decision::Supported
    } else if refuted {
        Decision::Refuted
    } else {
        Decision::Inconclusive
    }
}

/// The smallest level at which [`decide`] on the [`hodges_lehmann`] interval of
/// confidence 1 - level still reaches a verdict, either way; at most 1.
///
/// It is the smaller of the two-sided p for support and for refutation. Each
/// of these is twice the signed-rank p for a border of the margin, and twice
/// the larger one where two borders must be held. The counts of Walsh averages
/// are strict or not exactly as the comparisons in [`decide`] are, so the two
/// agree on ties and borders too.
///
/// [`hodges_lehmann`]: crate::hodges_lehmann
pub fn decision_p(
    values: &[f64],
    direction: Direction,
    threshold: f64,
    margins: impl Into<Margins>,
) -> f64 {
    let Margins { same, different } = margins.into().check(threshold);
    let walsh = WalshAverages::new(values);
    let (below, above) = (threshold - different, threshold + different);
    let (from, to) = (threshold - same, threshold + same);
    // The interval's end is beyond a border when few enough averages are not.
    let count = match direction {
        Direction::Less => walsh.count_at_least(below).min(walsh.count_below(from)),
        Direction::Greater => walsh.count_at_most(above).min(walsh.count_above(to)),
        Direction::Equal => {
            let inside = walsh.count_below(from).max(walsh.count_above(to));
            let outside = walsh.count_at_least(below).min(walsh.count_at_most(above));
            inside.min(outside)
        }
    };
    Null::signed_rank(values.len()).two_sided(count)
}

#[cfg(test)]
mod tests {
    use super::Decision::{Inconclusive, Refuted, Supported};
    use super::Direction::{Equal, Greater, Less};
    use super::*;

    fn check(low: f64, high: f64, expected: [Decision; 3]) {
        let interval = Interval {
            estimate: low.midpoint(high),
            low,
            high,
            confidence: 0.95,
        };
        let actual = [Less, Equal, Greater].map(|d| decide(&interval, d, 0.0, 1.0));
        assert_eq!(actual, expected, "interval from {low} to {high}");
    }

    #[test]
    fn an_interval_within_one_part_supports_its_claim_and_refutes_the_others() {
        check(-3.0, -2.0, [Supported, Refuted, Refuted]);
        check(-0.5, 0.5, [Refuted, Supported, Refuted]);
        check(2.0, 3.0, [Refuted, Refuted, Supported]);
    }

    #[test]
    fn an_interval_across_a_border_leaves_both_sides_of_it_open() {
        check(-2.0, 0.5, [Inconclusive, Inconclusive, Refuted]);
        check(-0.5, 2.0, [Refuted, Inconclusive, Inconclusive]);
        check(-2.0, 2.0, [Inconclusive, Inconclusive, Inconclusive]);
    }

    #[test]
    fn the_ends_of_the_margin_belong_to_it() {
        check(-1.0, 1.0, [Refuted, Supported, Refuted]);
        check(-2.0, -1.0, [Inconclusive, Inconclusive, Refuted]);
        check(1.0, 2.0, [Refuted, Inconclusive, Inconclusive]);
        check(-1.0, -1.0, [Refuted, Supported, Refuted]);
    }

    #[test]
    fn noise_makes_sameness_and_difference_harder_and_neither_easier() {
        let quiet = Margins {
            same: 1.0,
            different: 1.0,
        };
        let noisy = Margins {
            same: 1.0,
            different: 3.0,
        };
        let decisions = |low: f64, high: f64, margins: Margins| {
            let interval = Interval {
                estimate: low.midpoint(high),
                low,
                high,
                confidence: 0.95,
            };
            [Less, Equal, Greater].map(|d| decide(&interval, d, 0.0, margins))
        };
        assert_eq!(decisions(1.5, 2.5, quiet), [Refuted, Refuted, Supported]);
        assert_eq!(
            decisions(1.5, 2.5, noisy),
            [Refuted, Inconclusive, Inconclusive]
        );
        assert_eq!(decisions(-2.5, 2.5, noisy), [Inconclusive; 3]);
        assert_eq!(decisions(-0.5, 0.5, noisy), [Refuted, Supported, Refuted]);
        assert_eq!(decisions(4.0, 5.0, noisy), [Refuted, Refuted, Supported]);
    }

    #[test]
    fn an_end_beyond_the_range_decides_like_any_other() {
        check(2.0, f64::INFINITY, [Refuted, Refuted, Supported]);
        check(f64::INFINITY, f64::INFINITY, [Refuted, Refuted, Supported]);
        check(
            f64::NEG_INFINITY,
            0.0,
            [Inconclusive, Inconclusive, Refuted],
        );
    }

    #[test]
    fn equal_counts_support_equality_without_any_margin() {
        let point = crate::hodges_lehmann(&[0.0; 10], 0.95);
        assert_eq!(decide(&point, Equal, 0.0, 0.0), Supported);
        assert_eq!(decide(&point, Less, 0.0, 0.0), Refuted);
        assert_eq!(decide(&point, Greater, 0.0, 0.0), Refuted);
        for direction in [Less, Equal, Greater] {
            assert_eq!(decision_p(&[0.0; 10], direction, 0.0, 0.0), 2.0 / 1024.0);
        }
    }

    #[test]
    fn values_on_both_sides_of_a_border_decide_nothing_at_any_level() {
        let values = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0];
        assert!(decision_p(&values, Less, 0.0, 0.0) > 0.8);
        assert!(decision_p(&values, Equal, 0.0, 0.5) > 0.4);
        assert_eq!(decision_p(&values, Equal, 0.0, 4.0), 2.0 / 64.0);
    }

    #[test]
    #[should_panic(expected = "margin")]
    fn a_negative_margin_is_a_mistake() {
        let _ = decision_p(&[1.0], Less, 0.0, -0.1);
    }
}
