//! The share of trials in which something happens.

use crate::Interval;
use crate::interval::assert_confidence;

/// Number of bisections of the range 0 to 1. After these, a double does not change any more.
const HALVINGS: u32 = 60;

/// Returns the share of `count` in `trials`, 0 to 1, with its exact interval (Clopper and Pearson,
/// "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
/// 26 (1934)). The interval covers the true share at least as often as `confidence`, and markedly
/// more often for few trials.
///
/// # Panics
/// If there are no trials, `count` exceeds `trials`, or `confidence` is not strictly between 0
/// and 1.
pub fn clopper_pearson(count: usize, trials: usize, confidence: f64) -> Interval {
    assert_confidence(confidence);
    assert!(
        trials > 0 && count <= trials,
        "{count} of {trials} is not a share"
    );
    let error = (1.0 - confidence) / 2.0;
    let low = match count {
        0 => 0.0,
        // The share at which `count` or more would have probability `error`.
        _ => solve(|share| at_most(trials - count, trials, 1.0 - share) < error),
    };
    let high = match trials - count {
        0 => 1.0,
        _ => solve(|share| at_most(count, trials, share) > error),
    };
    Interval {
        estimate: count as f64 / trials as f64,
        low,
        high,
        confidence,
    }
}

/// Returns the share up to which `holds` is true.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0);
    for _ in 0..HALVINGS {
        let middle = low.midpoint(high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// Returns P(X ≤ `count`) of the binomial distribution.
fn at_most(count: usize, trials: usize, share: f64) -> f64 {
    let (of, against) = (share.ln(), (-share).ln_1p());
    let mut choose = 0.0_f64;
    let mut sum = 0.0;
    for k in 0..=count {
        sum += (choose + k as f64 * of + (trials - k) as f64 * against).exp();
        choose += ((trials - k) as f64 / (k + 1) as f64).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(count: usize, trials: usize, low: f64, high: f64) {
        let interval = clopper_pearson(count, trials, 0.95);
        assert_eq!(interval.estimate, count as f64 / trials as f64);
        assert!((interval.low - low).abs() < 5e-7, "{interval:?}");
        assert!((interval.high - high).abs() < 5e-7, "{interval:?}");
    }

    #[test]
    fn intervals_are_those_of_binom_test_in_r() {
        check(4, 20, 0.057_334_00, 0.436_614_00);
        check(5, 10, 0.187_086_03, 0.812_913_97);
        check(1, 200, 0.000_126_58, 0.027_541_90);
    }

    #[test]
    fn none_and_all_have_closed_forms() {
        // (1 - p)^n is the error on one side.
        let edge = 0.025_f64.powf(1.0 / 20.0);
        check(0, 20, 0.0, 1.0 - edge);
        check(20, 20, edge, 1.0);
        check(1, 1, 0.025, 1.0);
    }

    #[test]
    fn it_covers_at_least_as_often_as_it_says_whatever_the_share() {
        for share in [0.01, 0.05, 0.3, 0.5] {
            let covered: f64 = (0..=40)
                .filter(|count| clopper_pearson(*count, 40, 0.95).contains(share))
                .map(|count| {
                    let below = if count == 0 {
                        0.0
                    } else {
                        at_most(count - 1, 40, share)
                    };
                    at_most(count, 40, share) - below
                })
                .sum();
            assert!(covered >= 0.95, "{share}: {covered}");
        }
    }

    #[test]
    fn thousands_of_trials_neither_overflow_nor_vanish() {
        let interval = clopper_pearson(2500, 5000, 0.95);
        assert!((interval.low - 0.486).abs() < 1e-3 && (interval.high - 0.514).abs() < 1e-3);
    }
}
