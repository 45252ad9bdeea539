//! Derives a verdict on a claim from an interval.
//!
//! A claim names a region of the scale. The claim is supported if the interval is entirely inside
//! the region, and refuted if it is entirely outside. An interval across a border gives no
//! verdict. The author of the claim fixes the region beforehand, such as "less by more than 1 %".
//!
//! "No difference" is thus shown only by an interval inside a margin
//! (Schuirmann, "A comparison of the two one-sided tests procedure and the
//! power approach", Journal of Pharmacokinetics and Biopharmaceutics 15
//! (1987)), never by a failure to find one.

use crate::Interval;
use crate::null::Null;
use crate::walsh::WalshAverages;

/// The part of the scale that a claim names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Region {
    /// All values less than this.
    Below(f64),
    /// All values greater than this.
    Above(f64),
    /// From one value to another, both included.
    Within(f64, f64),
}

/// What the interval says about the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The interval is entirely inside the region.
    Supported,
    /// The interval is entirely outside the region.
    Refuted,
    /// The interval crosses a border.
    Inconclusive,
}

impl Region {
    /// Returns the number of sides on which a verdict can be wrong. A region with one border has
    /// one: if the truth is inside, only support is right, otherwise only refutation.
    pub fn sides(&self) -> usize {
        match self {
            Region::Below(_) | Region::Above(_) => 1,
            Region::Within(..) => 2,
        }
    }

    fn check(self) -> Self {
        let is_sound = match self {
            Region::Below(border) | Region::Above(border) => !border.is_nan(),
            Region::Within(low, high) => low <= high,
        };
        assert!(is_sound, "{self:?} is not part of the scale");
        self
    }
}

/// Decides a claim from its interval. Both are on a scale where differences matter, such as
/// log-ratios. Pass an interval that reaches the requested confidence ([`Interval::reaches`]); an
/// interval of too few values would decide too easily.
///
/// An interval refutes [`Region::Within`] only if it is entirely on one side of the region.
///
/// # Panics
/// If the ends of the interval, or the borders of the region, are NaN or in the wrong order.
pub fn decide(interval: &Interval, region: Region) -> Decision {
    let Interval { low, high, .. } = *interval;
    assert!(low <= high, "interval from {low} to {high}");
    let (supported, refuted) = match region.check() {
        Region::Below(border) => (high < border, low >= border),
        Region::Above(border) => (low > border, high <= border),
        Region::Within(from, to) => (low >= from && high <= to, high < from || low > to),
    };
    if supported {
        Decision::Supported
    } else if refuted {
        Decision::Refuted
    } else {
        Decision::Inconclusive
    }
}

/// Returns the smallest level at which [`decide`] on the [`hodges_lehmann`] interval of confidence
/// 1 - level still reaches a verdict of either kind; at most 1. `values` has one value per block.
///
/// It is the smaller of the two-sided p-values for support and for refutation. Each of these is
/// twice the one-sided signed-rank p-value for a border of the region, and twice the larger one if
/// two borders must hold. Walsh averages are counted with the same strict and non-strict
/// comparisons as in [`decide`], so both functions also agree on ties and borders.
///
/// # Panics
/// If there are no values, one is not finite, or a border of the region is NaN or in the wrong
/// order.
///
/// [`hodges_lehmann`]: crate::hodges_lehmann
pub fn decision_p(values: &[f64], region: Region) -> f64 {
    let walsh = WalshAverages::new(values);
    // An end of the interval is beyond a border if few enough Walsh averages are not.
    let count = match region.check() {
        Region::Below(border) => walsh.count_at_least(border).min(walsh.count_below(border)),
        Region::Above(border) => walsh.count_at_most(border).min(walsh.count_above(border)),
        Region::Within(from, to) => {
            let inside = walsh.count_below(from).max(walsh.count_above(to));
            let outside = walsh.count_at_least(from).min(walsh.count_at_most(to));
            inside.min(outside)
        }
    };
    Null::signed_rank(values.len()).two_sided(count)
}

#[cfg(test)]
mod tests {
    use super::Decision::{Inconclusive, Refuted, Supported};
    use super::Region::{Above, Below, Within};
    use super::*;

    /// Three regions that together cover the scale.
    const PARTS: [Region; 3] = [Below(-1.0), Within(-1.0, 1.0), Above(1.0)];

    fn check(low: f64, high: f64, expected: [Decision; 3]) {
        let interval = Interval {
            estimate: low.midpoint(high),
            low,
            high,
            confidence: 0.95,
        };
        let actual = PARTS.map(|region| decide(&interval, region));
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
        check(-3.0, 0.5, [Inconclusive, Inconclusive, Refuted]);
        check(-0.5, 2.0, [Refuted, Inconclusive, Inconclusive]);
        check(-2.0, 2.0, [Inconclusive, Inconclusive, Inconclusive]);
    }

    #[test]
    fn the_ends_of_a_margin_belong_to_it() {
        check(-1.0, 1.0, [Refuted, Supported, Refuted]);
        check(-2.0, -1.0, [Inconclusive, Inconclusive, Refuted]);
        check(1.0, 2.0, [Refuted, Inconclusive, Inconclusive]);
        check(-1.0, -1.0, [Refuted, Supported, Refuted]);
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
        let regions = [Within(0.0, 0.0), Below(0.0), Above(0.0)];
        let decisions = regions.map(|region| decide(&point, region));
        assert_eq!(decisions, [Supported, Refuted, Refuted]);
        for region in regions {
            assert_eq!(decision_p(&[0.0; 10], region), 2.0 / 1024.0);
        }
    }

    #[test]
    fn values_on_both_sides_of_a_border_decide_nothing_at_any_level() {
        let values = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0];
        assert!(decision_p(&values, Below(0.0)) > 0.8);
        assert!(decision_p(&values, Within(-0.5, 0.5)) > 0.4);
        assert_eq!(decision_p(&values, Within(-4.0, 4.0)), 2.0 / 64.0);
    }

    #[test]
    #[should_panic(expected = "not part of the scale")]
    fn a_negative_margin_is_a_mistake() {
        let _ = decision_p(&[1.0], Within(0.1, -0.1));
    }
}
