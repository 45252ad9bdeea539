//! Intervals of a run that ended when they were narrow enough.
//!
//! A run stops by the widths of its intervals ([`StoppingRule`]), and what is
//! narrow by chance stops it early. The loss of coverage vanishes as the blocks
//! grow (Chow and Robbins, "On the asymptotic theory of fixed-width sequential
//! confidence intervals for the mean", Annals of Mathematical Statistics 36
//! (1965)), but with 10 to 40 blocks it does not: in simulated runs the exact
//! 95 % interval missed up to 1.27 times as often as in a run of fixed length,
//! in 6.4 % of them, and those of 98.3 % and 99.5 % lost as large a share. So
//! intervals are taken at [`ERROR_SHARE`] of the error that they are told to
//! have. `tests/worlds.rs` holds what comes of it.
//!
//! [`StoppingRule`]: crate::StoppingRule

use crate::interval::CONFIDENCE_SLACK;
use crate::{Direction, Interval, Margins, decision_p, hodges_lehmann};

/// Share of the nominal error that is left for an interval of a run that
/// stopped by widths; the rest is what stopping adds.
const ERROR_SHARE: f64 = 0.8;

/// As [`hodges_lehmann`], for values whose number was chosen by a
/// [`StoppingRule`]: wider, so that `confidence` is what it has all the same.
/// The confidence in the result allows for stopping, too.
///
/// It takes 6 values for 95 %, 8 for 99 %. For a number that was fixed
/// beforehand it covers somewhat more than it says.
///
/// [`StoppingRule`]: crate::StoppingRule
pub fn stopped_interval(values: &[f64], confidence: f64) -> Interval {
    crate::interval::assert_confidence(confidence);
    let exact = hodges_lehmann(values, 1.0 - ERROR_SHARE * (1.0 - confidence));
    Interval {
        confidence: 1.0 - with_stopping(1.0 - exact.confidence),
        ..exact
    }
}

/// Fewest values from which a [`stopped_interval`] of a confidence can be had.
pub fn values_needed(confidence: f64) -> usize {
    crate::interval::assert_confidence(confidence);
    // The widest interval misses if all values lie on one side.
    let error = |count: i32| with_stopping(2.0 * 0.5_f64.powi(count));
    let reaches = |count: &i32| error(*count) <= 1.0 - confidence + CONFIDENCE_SLACK;
    let needed = (1..).find(reaches);
    let needed = needed.and_then(|count| usize::try_from(count).ok());
    needed.expect("an error halves with each value")
}

/// As [`decision_p`], but the smallest level at which [`decide`] on the
/// [`stopped_interval`] reaches a verdict; at most 1.
///
/// [`decide`]: crate::decide
pub fn stopped_decision_p(
    values: &[f64],
    direction: Direction,
    threshold: f64,
    margins: impl Into<Margins>,
) -> f64 {
    with_stopping(decision_p(values, direction, threshold, margins))
}

/// The error of a run that stopped by widths, from that of as many blocks fixed
/// beforehand.
fn with_stopping(error: f64) -> f64 {
    (error / ERROR_SHARE).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decision, Rng, decide};

    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| rng.normal()).collect()
    }

    #[test]
    fn it_holds_the_exact_interval_and_tells_no_more_than_its_own_confidence() {
        for count in 6..40 {
            let values = normal(count as u64, count);
            let exact = hodges_lehmann(&values, 0.95);
            let stopped = stopped_interval(&values, 0.95);
            assert!(stopped.low <= exact.low && exact.high <= stopped.high);
            assert!(stopped.reaches(0.95), "{count}: {stopped:?}");
            let same = hodges_lehmann(&values, stopped.confidence);
            assert!(stopped.low <= same.low && same.high <= stopped.high);
        }
    }

    #[test]
    fn as_many_values_as_are_needed_reach_the_confidence_and_one_fewer_does_not() {
        for confidence in [0.5, 0.9, 0.95, 0.975, 0.99, 0.999, 0.99995] {
            let needed = values_needed(confidence);
            let reaches =
                |count| stopped_interval(&normal(1, count), confidence).reaches(confidence);
            assert!(
                reaches(needed) && !reaches(needed - 1),
                "{confidence}: {needed}"
            );
        }
    }

    #[test]
    fn it_takes_six_values_for_95_percent_and_eight_for_99() {
        for (least, confidence) in [(6, 0.95), (8, 0.99)] {
            assert!(!stopped_interval(&normal(1, least - 1), confidence).reaches(confidence));
            assert!(stopped_interval(&normal(1, least), confidence).reaches(confidence));
        }
        assert_eq!(stopped_interval(&[1.0], 0.95).confidence, 0.0);
    }

    #[test]
    fn a_decision_is_made_exactly_from_its_p_on() {
        for seed in 0..300 {
            let values: Vec<f64> = normal(seed, 12).iter().map(|x| x + 1.0).collect();
            for direction in [Direction::Less, Direction::Equal, Direction::Greater] {
                let p = stopped_decision_p(&values, direction, 0.0, 0.3);
                let decided = |level: f64| {
                    let interval = stopped_interval(&values, 1.0 - level);
                    decide(&interval, direction, 0.0, 0.3) != Decision::Inconclusive
                };
                for level in [0.003, 0.01, 0.05, 0.2] {
                    assert_eq!(p <= level, decided(level), "{seed} {direction:?} {level}");
                }
            }
        }
    }
}
