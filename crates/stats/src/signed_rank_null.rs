//! The null distribution of the signed-rank statistic.

use std::cell::RefCell;
use std::rc::Rc;

use crate::normal::normal_cdf;

/// Values up to which the distribution is exact. The table costs n³/6
/// additions; at 300 that is a few milliseconds, and the normal approximation
/// is right to 3e-4 there.
pub(crate) const EXACT_VALUES_MAX: usize = 300;

/// P(T ≤ t) of the sum T of the ranks 1 to n that a fair coin each picks
/// (Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin
/// 1 (1945); recursion as in Hollander, Wolfe and Chicken (2014), section 3.1).
pub(crate) struct SignedRankNull {
    rank_sum: usize,
    tail: Tail,
}

enum Tail {
    /// P(T ≤ t) for t up to half the rank sum; the rest follows by symmetry.
    Exact(Rc<[f64]>),
    Normal {
        mean: f64,
        standard_deviation: f64,
    },
}

impl SignedRankNull {
    pub(crate) fn new(values: usize) -> SignedRankNull {
        let tail = if values <= EXACT_VALUES_MAX {
            Tail::Exact(exact_tail(values))
        } else {
            normal_tail(values)
        };
        SignedRankNull {
            rank_sum: values * (values + 1) / 2,
            tail,
        }
    }

    /// P(T ≤ `t`).
    pub(crate) fn at_most(&self, t: usize) -> f64 {
        if t >= self.rank_sum {
            return 1.0;
        }
        match &self.tail {
            Tail::Exact(lower) if t < lower.len() => lower[t],
            // P(T ≤ t) = 1 - P(T ≥ t + 1) = 1 - P(T ≤ rank_sum - t - 1).
            Tail::Exact(lower) => 1.0 - lower[self.rank_sum - t - 1],
            Tail::Normal {
                mean,
                standard_deviation,
            } => normal_cdf((t as f64 + 0.5 - mean) / standard_deviation),
        }
    }

    /// The two-sided p-value of a tail count, at most 1.
    pub(crate) fn two_sided(&self, t: usize) -> f64 {
        (2.0 * self.at_most(t)).min(1.0)
    }
}

fn normal_tail(values: usize) -> Tail {
    let n = values as f64;
    Tail::Normal {
        mean: n * (n + 1.0) / 4.0,
        standard_deviation: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
    }
}

thread_local! {
    /// The table that was made last, and for how many values: all series of a
    /// run have as many, so that it need be made once.
    static LAST: RefCell<Option<(usize, Rc<[f64]>)>> = const { RefCell::new(None) };
}

fn exact_tail(values: usize) -> Rc<[f64]> {
    LAST.with_borrow_mut(|last| match last {
        Some((of, table)) if *of == values => Rc::clone(table),
        _ => {
            let table: Rc<[f64]> = exact_lower_half(values).into();
            *last = Some((values, Rc::clone(&table)));
            table
        }
    })
}

fn exact_lower_half(values: usize) -> Vec<f64> {
    let half = values * (values + 1) / 4;
    let mut probability = vec![0.0; half + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for rank in 1..=values {
        reached = (reached + rank).min(half);
        for t in (rank..=reached).rev() {
            probability[t] = 0.5 * (probability[t] + probability[t - rank]);
        }
        for low in &mut probability[..rank.min(reached + 1)] {
            *low *= 0.5;
        }
    }
    let mut sum = 0.0;
    for entry in &mut probability {
        sum += *entry;
        *entry = sum;
    }
    probability
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(actual: f64, expected: f64, tolerance: f64) {
        assert!(
            (actual - expected).abs() <= tolerance,
            "{actual} is not within {tolerance} of {expected}"
        );
    }

    #[test]
    fn three_ranks_have_the_distribution_counted_by_hand() {
        // Sums of the 8 subsets of {1, 2, 3}: 0 1 2 3 3 4 5 6.
        let null = SignedRankNull::new(3);
        let expected = [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0].map(|count| count / 8.0);
        let actual: Vec<f64> = (0..=6).map(|t| null.at_most(t)).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn tails_agree_with_wilcoxons_published_table() {
        // Table A.4 of Hollander, Wolfe and Chicken: n, t, P(T ≤ t).
        for (n, t, p) in [(10, 8, 0.024), (12, 13, 0.021), (15, 25, 0.024)] {
            assert_near(SignedRankNull::new(n).at_most(t), p, 0.0005);
        }
    }

    #[test]
    fn two_hundred_ranks_are_exact_and_symmetric() {
        let null = SignedRankNull::new(200);
        assert_eq!(null.at_most(0), 0.5f64.powi(200));
        assert_eq!(null.at_most(20_100), 1.0);
        for t in [7000, 9000, 10_049] {
            assert_near(null.at_most(t) + null.at_most(20_100 - t - 1), 1.0, 1e-12);
        }
        let median_mass = null.at_most(10_050) - null.at_most(10_049);
        assert_near(null.at_most(10_049) + median_mass / 2.0, 0.5, 1e-12);
    }

    #[test]
    fn the_normal_approximation_is_close_where_it_takes_over() {
        let exact = SignedRankNull::new(EXACT_VALUES_MAX);
        let normal = SignedRankNull {
            tail: normal_tail(EXACT_VALUES_MAX),
            ..SignedRankNull::new(EXACT_VALUES_MAX)
        };
        for t in (15_000..30_000).step_by(500) {
            assert_near(normal.at_most(t), exact.at_most(t), 3e-4);
        }
        let past = SignedRankNull::new(EXACT_VALUES_MAX + 1);
        assert!(matches!(past.tail, Tail::Normal { .. }));
    }
}
