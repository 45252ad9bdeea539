//! Tests several claims whose p-values cannot be arbitrarily small.

use crate::test_step::{TestStep, UNTESTED, ascending, check};

/// Applies the step-down procedure of Tarone and Holm, and returns one step per p-value, in the
/// order of the input (Tarone, "A modified Bonferroni method for discrete data", Biometrics 46
/// (1990); Hommel and Krummenauer, "Improvements and modifications of Tarone's multiple test
/// procedure for discrete data", Biometrics 54 (1998)).
///
/// `least` has the least possible p-value of each hypothesis. Below that value a hypothesis cannot
/// be rejected wrongly, so it does not count there. Let M(p) be the number of hypotheses that can
/// have a p-value of at most p. The smallest p-value is rejected if p·M(p) is at most `alpha`. The
/// next one is then tested among the remaining hypotheses. If all least p-values are 0, this is
/// Holm's procedure.
///
/// `least` must not depend on the values that the p-values come from. It may depend on their
/// number, if that does not depend on the values.
///
/// # Panics
/// If the slices differ in length, a p-value or least value is outside 0 to 1, or `alpha` is not
/// strictly between 0 and 1.
pub fn tarone_holm(p_values: &[f64], least: &[f64], alpha: f64) -> Vec<TestStep> {
    check(p_values, alpha);
    check(least, alpha);
    assert_eq!(p_values.len(), least.len(), "a p-value has no least value");
    let order = ascending(p_values);
    let mut steps = vec![UNTESTED; p_values.len()];
    let mut adjusted_p = 0.0_f64;
    let mut failed_level = None;
    for (rank, &index) in order.iter().enumerate() {
        let mut open: Vec<f64> = order[rank..].iter().map(|&one| least[one]).collect();
        open.sort_by(f64::total_cmp);
        let counted = open.partition_point(|one| *one <= p_values[index]);
        adjusted_p = adjusted_p.max((counted as f64 * p_values[index]).min(1.0));
        let level = failed_level.unwrap_or_else(|| largest_level(&open, alpha));
        let rejected = p_values[index] <= level;
        if !rejected {
            failed_level = Some(level);
        }
        steps[index] = TestStep {
            adjusted_p,
            rejected,
            level,
        };
    }
    steps
}

/// Whether [`tarone_holm`] can reject any hypothesis at all.
pub fn can_reject(least: &[f64], alpha: f64) -> bool {
    let mut sorted = least.to_vec();
    sorted.sort_by(f64::total_cmp);
    let first = sorted.first();
    first.is_some_and(|first| *first <= largest_level(&sorted, alpha))
}

/// Returns the largest p for which p·M(p) is at most `alpha`, where M(p) is the number of entries
/// in the ascending `least` that are at most p.
fn largest_level(least: &[f64], alpha: f64) -> f64 {
    let level = |count: usize| {
        let next = least.get(count).map_or(1.0, |next| next.next_down());
        (alpha / count as f64).min(next)
    };
    let reaches = |count: &usize| {
        let is_new = least.get(*count) != least.get(count - 1);
        is_new && least[count - 1] <= level(*count)
    };
    let counts = (1..=least.len()).rev();
    counts
        .map(|count| (count, reaches(&count)))
        .find(|(_, reaches)| *reaches)
        .map_or_else(
            || {
                least
                    .first()
                    .map_or(alpha, |first| first.next_down().min(alpha))
            },
            |(count, _)| level(count),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, holm};

    fn adjusted(p_values: &[f64], least: &[f64]) -> Vec<f64> {
        let steps = tarone_holm(p_values, least, 0.05);
        steps.iter().map(|step| step.adjusted_p).collect()
    }

    fn assert_near(actual: &[f64], expected: &[f64]) {
        for (a, b) in actual.iter().zip(expected) {
            assert!((a - b).abs() < 1e-7, "{actual:?}, not {expected:?}");
        }
    }

    /// The documented example of `Tarone.p.adjust` and `TH.p.adjust` of the R package
    /// MHTdiscrete: one success or none among 8, 5 and 6 trials of chance 0.5, 0.75 and 0.6.
    /// It prints 0.1054688, 0.0468750 and 0.1228800 for Tarone's single step; each step after
    /// the first has one hypothesis fewer.
    #[test]
    fn binomial_counts_have_the_published_adjusted_p_values() {
        let p = [9.0 / 256.0, 16.0 / 1024.0, 0.040_96];
        let least = [1.0 / 256.0, 1.0 / 1024.0, 0.004_096];
        assert_near(
            &[3.0 * p[0], 3.0 * p[1], 3.0 * p[2]],
            &[0.105_468_8, 0.046_875, 0.122_88],
        );
        assert_near(
            &adjusted(&p, &least),
            &[0.070_312_5, 0.046_875, 0.070_312_5],
        );
    }

    #[test]
    fn hypotheses_that_cannot_be_rejected_take_nothing_from_the_others() {
        // 13 claims with one border after 9 blocks, and 20 that no such run can decide.
        let mut p = vec![1.0 / 512.0; 13];
        p.extend([0.25; 20]);
        let least = p.clone();
        let steps = tarone_holm(&p, &least, 0.05);
        assert!(steps[..13].iter().all(|step| step.rejected));
        assert!(!steps[13..].iter().any(|step| step.rejected));
        assert!(!holm(&p, 0.05)[0].rejected);
        assert!(!can_reject(&[1.0 / 256.0; 13], 0.05));
        assert!(can_reject(&[1.0 / 256.0; 12], 0.05));
        assert!(!can_reject(&[], 0.05));
    }

    #[test]
    fn without_least_p_values_it_is_holms_procedure() {
        let mut rng = Rng::new(4);
        for _ in 0..300 {
            let p: Vec<f64> = (0..6).map(|_| rng.uniform().powi(4)).collect();
            assert_eq!(tarone_holm(&p, &[0.0; 6], 0.05), holm(&p, 0.05));
        }
    }

    /// The procedure as published: each step finds the least K with at most K open hypotheses that
    /// can reach alpha/K, and rejects all p-values up to alpha/K. Everything that it rejects is
    /// rejected here, too, and rejections here agree with the adjusted p-value.
    #[test]
    fn it_rejects_what_the_published_steps_reject() {
        let mut rng = Rng::new(8);
        let mut rejections = 0;
        for _ in 0..2000 {
            let least: Vec<f64> = (0..7)
                .map(|_| 0.5_f64.powi(3 + rng.below(8) as i32))
                .collect();
            let p: Vec<f64> = least
                .iter()
                .map(|one| (one * (1 + rng.below(4) * rng.below(8)) as f64).min(1.0))
                .collect();
            let mut open: Vec<usize> = (0..7).collect();
            loop {
                let reach = |k: usize| {
                    let able = open.iter().filter(|one| least[**one] <= 0.05 / k as f64);
                    able.count()
                };
                let k = (1..).find(|k| reach(*k) <= *k).unwrap();
                let before = open.len();
                open.retain(|one| p[*one] > 0.05 / k as f64);
                if open.len() == before || open.is_empty() {
                    break;
                }
            }
            let steps = tarone_holm(&p, &least, 0.05);
            for (place, step) in steps.iter().enumerate() {
                assert!(step.rejected || open.contains(&place), "{p:?} {least:?}");
                assert_eq!(step.rejected, step.adjusted_p <= 0.05, "{p:?} {least:?}");
            }
            rejections += 7 - open.len();
        }
        assert!(rejections > 1000, "{rejections}");
    }

    /// All outcomes of four independent signed-rank tests with few blocks, where every
    /// hypothesis is true.
    #[test]
    fn no_family_of_true_hypotheses_errs_more_often_than_it_may() {
        for blocks in [[4, 5, 6, 7], [5, 5, 5, 5], [6, 6, 7, 8], [8, 8, 8, 8]] {
            let tails = blocks.map(|n: i32| 0.5_f64.powi(n));
            // A p-value of 1, 2, 3, 5 or more ways out of 2ⁿ.
            let ways = [1.0, 2.0, 3.0, 5.0, f64::INFINITY];
            let mut error = 0.0;
            for code in 0..5_usize.pow(4) {
                let place = |test: usize| code / 5_usize.pow(test as u32) % 5;
                let mut chance = 1.0;
                let p: Vec<f64> = (0..4)
                    .map(|test| {
                        let below = match place(test) {
                            0 => 0.0,
                            more => ways[more - 1] * tails[test],
                        };
                        let p = (ways[place(test)] * tails[test]).min(1.0);
                        chance *= p - below;
                        p
                    })
                    .collect();
                if tarone_holm(&p, &tails, 0.05)
                    .iter()
                    .any(|step| step.rejected)
                {
                    error += chance;
                }
            }
            assert!(error <= 0.05, "{blocks:?}: {error}");
            let can_err = can_reject(&tails, 0.05);
            assert_eq!(error > 0.0, can_err, "{blocks:?}: {error}");
        }
    }
}
