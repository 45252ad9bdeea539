//! Intervals of a run that may have ended at any of its [`Looks`].

use crate::interval::CONFIDENCE_SLACK;
use crate::{Interval, Look, Looks, Region, decision_p, hodges_lehmann};

/// Like [`hodges_lehmann`], for the values of a run that may have ended because of what it saw.
/// The interval is wider, so that the intervals of all looks jointly have the `confidence`. The
/// confidence in the result is also the joint confidence.
///
/// # Panics
/// If there are no values, one is not finite, or `confidence` is not strictly between 0 and 1.
pub fn stopped_interval(values: &[f64], confidence: f64, look: Look) -> Interval {
    crate::interval::assert_confidence(confidence);
    let tail = look.tail((1.0 - confidence) / 2.0);
    let exact = hodges_lehmann(values, 1.0 - 2.0 * tail);
    Interval {
        confidence: 1.0 - over_looks(1.0 - exact.confidence, look),
        ..exact
    }
}

/// Returns the fewest values with which a [`stopped_interval`] reaches `confidence`, if each block
/// gives one value.
///
/// # Panics
/// If `confidence` is not strictly between 0 and 1.
pub fn values_needed(confidence: f64, looks: Looks) -> usize {
    crate::interval::assert_confidence(confidence);
    // The widest interval misses the centre if all values are on one side of it.
    let error = |count: i32| {
        over_looks(
            2.0 * 0.5_f64.powi(count),
            looks.at(count.unsigned_abs() as usize),
        )
    };
    let reaches = |count: &i32| error(*count) <= 1.0 - confidence + CONFIDENCE_SLACK;
    let needed = (1..).find(reaches);
    let needed = needed.and_then(|count| usize::try_from(count).ok());
    needed.expect("an error halves with each value")
}

/// Like [`decision_p`], but returns the smallest level at which [`decide`] on the
/// [`stopped_interval`] reaches a verdict; at most 1.
///
/// [`decide`]: crate::decide
pub fn stopped_decision_p(values: &[f64], region: Region, look: Look) -> f64 {
    over_looks(decision_p(values, region), look)
}

/// Returns the joint two-sided error of all looks, from the two-sided error of one look.
fn over_looks(error: f64, look: Look) -> f64 {
    (2.0 * look.error(error / 2.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Rng, decide};

    const LOOKS: Looks = Looks {
        first: 10,
        last: 40,
    };

    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| rng.normal()).collect()
    }

    #[test]
    fn it_holds_the_exact_interval_and_tells_no_more_than_its_own_confidence() {
        for count in 10..40 {
            let values = normal(count as u64, count);
            let exact = hodges_lehmann(&values, 0.95);
            let stopped = stopped_interval(&values, 0.95, LOOKS.at(count));
            assert!(stopped.low <= exact.low && exact.high <= stopped.high);
            assert!(stopped.reaches(0.95), "{count}: {stopped:?}");
            let same = hodges_lehmann(&values, stopped.confidence);
            assert!(stopped.low <= same.low && same.high <= stopped.high);
        }
    }

    #[test]
    fn a_fixed_number_of_blocks_has_the_exact_interval() {
        let values = normal(3, 12);
        let once = stopped_interval(&values, 0.95, Looks::once(12).at(12));
        assert_eq!(once, hodges_lehmann(&values, 0.95));
    }

    #[test]
    fn as_many_values_as_are_needed_reach_the_confidence_and_one_fewer_does_not() {
        for confidence in [0.5, 0.9, 0.95, 0.975, 0.99, 0.999, 0.99995] {
            let needed = values_needed(confidence, LOOKS);
            let reaches = |count| {
                stopped_interval(&normal(1, count), confidence, LOOKS.at(count)).reaches(confidence)
            };
            assert!(
                reaches(needed) && !reaches(needed - 1),
                "{confidence}: {needed}"
            );
        }
        assert_eq!(values_needed(0.95, Looks::once(6)), 6);
        assert_eq!(stopped_interval(&[1.0], 0.95, LOOKS.at(1)).confidence, 0.0);
    }

    #[test]
    fn a_decision_is_made_exactly_from_its_p_on() {
        let regions = [
            Region::Below(0.7),
            Region::Within(-0.3, 0.3),
            Region::Above(0.7),
        ];
        for seed in 0..300 {
            let values: Vec<f64> = normal(seed, 12).iter().map(|x| x + 1.0).collect();
            for region in regions {
                let p = stopped_decision_p(&values, region, LOOKS.at(12));
                let decided = |level: f64| {
                    let interval = stopped_interval(&values, 1.0 - level, LOOKS.at(12));
                    interval.reaches(1.0 - level)
                        && decide(&interval, region) != Decision::Inconclusive
                };
                for level in [0.003, 0.01, 0.05, 0.2] {
                    assert_eq!(p <= level, decided(level), "{seed} {region:?} {level}");
                }
            }
        }
    }
}
