//! How far a sample is from another one that was drawn at another time.

use crate::Interval;
use crate::interval::assert_confidence;
use crate::null::Null;
use crate::quantile::sorted;
use crate::signed_rank::interval_rank;

/// Returns the Hodges–Lehmann estimate of the shift from `old` to `new` (the median of all
/// differences between a new and an old value) with the interval that the rank-sum test does not
/// reject. The result has the unit of the values.
///
/// Estimate: Hodges and Lehmann, "Estimates of location based on rank tests", Annals of
/// Mathematical Statistics 34 (1963). Interval: Moses, in Hollander, Wolfe and Chicken,
/// "Nonparametric statistical methods" (2014), section 4.3. Its coverage is exact for two
/// continuous distributions of the same shape, and at least as large with ties; the result has the
/// achieved confidence. Samples too small for the confidence give the range of the differences
/// ([`Interval::reaches`] detects this).
///
/// Both samples are series in the order in which they were drawn. Autocorrelated values carry less
/// information than as many independent ones. So the interval is widened about its estimate by
/// √((1 + ρ) / (1 − ρ)), where ρ is the larger of the two series' lag-one autocorrelations of ranks. The
/// interval is never narrowed (the effective sample size of a first-order autoregression: Bayley
/// and Hammersley, "The effective number of independent observations in an autocorrelated time
/// series", Supplement to the Journal of the Royal Statistical Society 8 (1946)).
///
/// Takes O((m + n) log(m + n)) time.
///
/// # Panics
/// If a sample is empty, a value is not finite, or `confidence` is not strictly between 0 and 1.
pub fn shift(old: &[f64], new: &[f64], confidence: f64) -> Interval {
    assert_confidence(confidence);
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    assert!(finite(old) && finite(new), "a value is not finite");
    let differences = Differences::new(old, new);
    let null = Null::rank_sum(old.len(), new.len());
    let count = differences.count();
    let two_sided = |t: usize| (2.0 * null.at_most(t)).min(1.0);
    let rank = interval_rank(count, 1.0 - confidence, two_sided);
    let middle = [count.div_ceil(2), count / 2 + 1].map(|rank| differences.smallest(rank));
    let estimate = middle[0].midpoint(middle[1]);
    let widening = widening(old).max(widening(new));
    Interval {
        estimate,
        low: estimate - (estimate - differences.smallest(rank)) * widening,
        high: estimate + (differences.smallest(count + 1 - rank) - estimate) * widening,
        confidence: 1.0 - two_sided(rank - 1),
    }
}

/// All differences between a new and an old value. They are never stored: two samples of 5000
/// values each have 25 million.
struct Differences {
    old: Vec<f64>,
    new: Vec<f64>,
}

impl Differences {
    fn new(old: &[f64], new: &[f64]) -> Self {
        Self {
            old: sorted(old),
            new: sorted(new),
        }
    }

    fn count(&self) -> usize {
        self.old.len() * self.new.len()
    }

    fn count_at_most(&self, x: f64) -> usize {
        // As the new value grows, more old values are too small for it.
        let mut first = 0;
        let mut count = 0;
        for new in &self.new {
            while first < self.old.len() && new - self.old[first] > x {
                first += 1;
            }
            count += self.old.len() - first;
        }
        count
    }

    /// Returns the difference with a rank, from 1: the least number that at least `rank`
    /// differences do not exceed, found by bisection over all floats.
    fn smallest(&self, rank: usize) -> f64 {
        let (mut low, mut high) = (ordinal(f64::MIN), ordinal(f64::MAX));
        while low < high {
            let middle = low.midpoint(high);
            if self.count_at_most(from_ordinal(middle)) >= rank {
                high = middle
            } else {
                low = middle + 1
            }
        }
        from_ordinal(low)
    }
}

const SIGN: u64 = 1 << 63;

/// Maps floats to integers in the same order (the total order of IEEE 754).
fn ordinal(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn from_ordinal(ordinal: u64) -> f64 {
    f64::from_bits(if ordinal & SIGN == 0 {
        !ordinal
    } else {
        ordinal & !SIGN
    })
}

/// Above this autocorrelation, the series hardly moves, and no factor would be large enough.
const AUTOCORRELATION_MAX: f64 = 0.95;

fn widening(series: &[f64]) -> f64 {
    let rho = rank_autocorrelation(series).clamp(0.0, AUTOCORRELATION_MAX);
    ((1.0 + rho) / (1.0 - rho)).sqrt()
}

/// Returns the correlation of the rank of each value with that of the next; 0 if all values are
/// the same or there are too few.
fn rank_autocorrelation(series: &[f64]) -> f64 {
    let order = sorted(series);
    let centre = (series.len() as f64) / 2.0;
    // The middle of the ranks of equal values; for a single rank k, it is k + 1/2.
    let rank = |value: &f64| {
        let below = order.partition_point(|other| other < value);
        let at_most = order.partition_point(|other| other <= value);
        below.midpoint(at_most) as f64 + 0.5 * ((at_most - below) % 2) as f64 - centre
    };
    let ranks: Vec<f64> = series.iter().map(rank).collect();
    let square: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if square == 0.0 || series.len() < 3 {
        return 0.0;
    }
    let products: f64 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
    products / square
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Permeability of the human chorioamnion at term and at 12 to 26 weeks:
    /// example 4.1 of Hollander, Wolfe and Chicken. In an order without
    /// autocorrelation.
    const TERM: [f64; 10] = [0.80, 1.91, 0.83, 1.64, 0.73, 1.89, 1.04, 1.45, 1.38, 1.46];
    const EARLY: [f64; 5] = [1.15, 0.74, 1.21, 0.88, 0.90];

    fn assert_near(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() < 1e-9,
            "{actual} is not {expected}"
        );
    }

    #[test]
    fn permeability_gives_the_published_estimate_and_interval() {
        let interval = shift(&EARLY, &TERM, 0.96);
        assert_near(interval.estimate, 0.305);
        assert_near(interval.low, -0.15);
        assert_near(interval.high, 0.76);
        assert_near(interval.confidence, 1.0 - 2.0 * 60.0 / 3003.0);
    }

    #[test]
    fn differences_are_found_by_rank_without_being_written_down() {
        let (old, new) = ([3.0, -1.0, 0.5, 3.0], [2.0, 2.5, -4.0]);
        let mut all: Vec<f64> = new
            .iter()
            .flat_map(|new| old.iter().map(move |old| new - old))
            .collect();
        all.sort_by(f64::total_cmp);
        let differences = Differences::new(&old, &new);
        for (index, expected) in all.iter().enumerate() {
            assert_eq!(differences.smallest(index + 1), *expected);
        }
    }

    #[test]
    fn swapping_the_samples_turns_the_interval_around() {
        let there = shift(&EARLY, &TERM, 0.9);
        let back = shift(&TERM, &EARLY, 0.9);
        assert_near(there.low, -back.high);
        assert_near(there.high, -back.low);
    }

    #[test]
    fn too_few_values_give_the_range_and_admit_it() {
        let interval = shift(&[1.0, 2.0], &[4.0, 3.0], 0.95);
        assert_eq!((interval.low, interval.high), (1.0, 3.0));
        // Of the six orders of two and two values, two have all new ones on one side.
        assert_near(interval.confidence, 2.0 / 3.0);
        assert!(!interval.reaches(0.95));
        let one = shift(&[1.0], &[3.0], 0.95);
        assert_eq!((one.low, one.high, one.confidence), (2.0, 2.0, 0.0));
    }

    #[test]
    fn four_values_each_suffice_for_95_percent() {
        let values = [1.0, 4.0, 2.0, 3.0];
        assert!(shift(&values, &values, 0.95).reaches(0.95));
        assert!(!shift(&values[..3], &values[..3], 0.95).reaches(0.95));
    }

    #[test]
    fn equal_values_give_a_point() {
        let interval = shift(&[2.0; 8], &[5.0; 8], 0.95);
        assert_eq!(
            (interval.low, interval.estimate, interval.high),
            (3.0, 3.0, 3.0)
        );
    }

    #[test]
    fn ranks_that_rise_are_correlated_and_ranks_that_alternate_widen_nothing() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(rank_autocorrelation(&rising) > 0.8);
        assert!(widening(&rising) > 3.0);
        let alternating: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
        assert!(rank_autocorrelation(&alternating) < -0.8);
        assert_eq!(widening(&alternating), 1.0);
        assert_eq!(widening(&[1.0; 9]), 1.0);
    }
}
