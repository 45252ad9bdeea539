//! The null distributions of the rank statistics.

use std::cell::RefCell;
use std::rc::Rc;

use crate::normal::normal_cdf;

/// Number of values up to which the distribution of a signed-rank sum is exact. The table costs
/// n³/6 additions. At 300 values that takes a few milliseconds, and the normal approximation is
/// accurate to 3e-4.
const EXACT_VALUES_MAX: usize = 300;
/// Number of pairs of values up to which the distribution of a rank-sum statistic is exact. The
/// additions for the table grow with the square of the pairs. At 40 values per sample they take a
/// few milliseconds, for each of a run's treatments.
const EXACT_PAIRS_MAX: usize = 1600;

/// The distribution of a whole number between 0 and `largest`, symmetric about half of `largest`.
/// Where a table would be too expensive, the distribution is normal, with a continuity correction.
pub(crate) struct Null {
    largest: usize,
    tail: Tail,
}

enum Tail {
    /// P(T ≤ t) for t up to at least half of `largest`; the rest follows by symmetry.
    Exact(Rc<[f64]>),
    Normal {
        standard_deviation: f64,
    },
}

impl Null {
    /// Returns the distribution of the sum of ranks 1 to n, where a fair coin decides whether each
    /// rank is included (Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin
    /// 1 (1945); recursion as in Hollander, Wolfe and Chicken (2014), section 3.1).
    pub(crate) fn signed_rank(values: usize) -> Self {
        Self {
            largest: values * (values + 1) / 2,
            tail: if values <= EXACT_VALUES_MAX {
                Tail::Exact(exact_signed_rank(values))
            } else {
                normal_signed_rank(values)
            },
        }
    }

    /// Returns the distribution of the number of pairs in which the value of one sample is the
    /// larger (Mann and Whitney, "On a test of whether one of two random variables is
    /// stochastically larger than the other", Annals of Mathematical Statistics 18 (1947), with
    /// their recursion). The normal approximation has heavier tails and so errs on the safe side.
    pub(crate) fn rank_sum(m: usize, n: usize) -> Self {
        Self {
            largest: m * n,
            tail: if m * n <= EXACT_PAIRS_MAX {
                Tail::Exact(exact_rank_sum(m, n).into())
            } else {
                normal_rank_sum(m, n)
            },
        }
    }

    /// Returns P(T ≤ `t`).
    pub(crate) fn at_most(&self, t: usize) -> f64 {
        if t >= self.largest {
            return 1.0;
        }
        match &self.tail {
            Tail::Exact(lower) if t < lower.len() => lower[t],
            // P(T ≤ t) = 1 - P(T ≥ t + 1) = 1 - P(T ≤ largest - t - 1).
            Tail::Exact(lower) => 1.0 - lower[self.largest - t - 1],
            Tail::Normal { standard_deviation } => {
                let mean = self.largest as f64 / 2.0;
                normal_cdf((t as f64 + 0.5 - mean) / standard_deviation)
            }
        }
    }

    /// Returns the two-sided p-value of a tail count, at most 1.
    pub(crate) fn two_sided(&self, t: usize) -> f64 {
        (2.0 * self.at_most(t)).min(1.0)
    }
}

fn normal_signed_rank(values: usize) -> Tail {
    let n = values as f64;
    Tail::Normal {
        standard_deviation: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
    }
}

fn normal_rank_sum(m: usize, n: usize) -> Tail {
    let (m, n) = (m as f64, n as f64);
    Tail::Normal {
        standard_deviation: (m * n * (m + n + 1.0) / 12.0).sqrt(),
    }
}

thread_local! {
    /// The last table, and its number of values. All series of a run have the same number of
    /// values, so the table is computed once.
    static LAST: RefCell<Option<(usize, Rc<[f64]>)>> = const { RefCell::new(None) };
}

fn exact_signed_rank(values: usize) -> Rc<[f64]> {
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
    cumulated(probability)
}

/// The largest of all m + n values belongs to the first sample with probability m / (m + n). It is
/// then the larger one in n pairs. So the recursion is P(m, n, u) = (m P(m - 1, n, u - n) + n P(m,
/// n - 1, u)) / (m + n).
fn exact_rank_sum(m: usize, n: usize) -> Vec<f64> {
    let pairs = m * n;
    let certain = || {
        let mut probability = vec![0.0; pairs + 1];
        probability[0] = 1.0;
        probability
    };
    // Indexed by the number of values of the second sample, for the current number of the first.
    let mut by_n: Vec<Vec<f64>> = (0..=n).map(|_| certain()).collect();
    for i in 1..=m {
        by_n[0] = certain();
        for j in 1..=n {
            let (done, open) = by_n.split_at_mut(j);
            let (with_fewer, own) = (&done[j - 1], &mut open[0]);
            let (share, rest) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
            for u in (0..=i * j).rev() {
                let larger = if u >= j { own[u - j] } else { 0.0 };
                own[u] = share * larger + rest * with_fewer[u];
            }
        }
    }
    cumulated(by_n.swap_remove(n))
}

fn cumulated(mut probability: Vec<f64>) -> Vec<f64> {
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
        let null = Null::signed_rank(3);
        let expected = [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0].map(|count| count / 8.0);
        let actual: Vec<f64> = (0..=6).map(|t| null.at_most(t)).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn tails_agree_with_wilcoxons_published_table() {
        // Table A.4 of Hollander, Wolfe and Chicken: n, t, P(T ≤ t).
        for (n, t, p) in [(10, 8, 0.024), (12, 13, 0.021), (15, 25, 0.024)] {
            assert_near(Null::signed_rank(n).at_most(t), p, 0.0005);
        }
    }

    #[test]
    fn two_hundred_ranks_are_exact_and_symmetric() {
        let null = Null::signed_rank(200);
        assert_eq!(null.at_most(0), 0.5f64.powi(200));
        assert_eq!(null.at_most(20_100), 1.0);
        for t in [7000, 9000, 10_049] {
            assert_near(null.at_most(t) + null.at_most(20_100 - t - 1), 1.0, 1e-12);
        }
        let median_mass = null.at_most(10_050) - null.at_most(10_049);
        assert_near(null.at_most(10_049) + median_mass / 2.0, 0.5, 1e-12);
    }

    #[test]
    fn the_normal_signed_rank_is_close_where_it_takes_over() {
        let exact = Null::signed_rank(EXACT_VALUES_MAX);
        let normal = Null {
            tail: normal_signed_rank(EXACT_VALUES_MAX),
            ..Null::signed_rank(EXACT_VALUES_MAX)
        };
        for t in (15_000..30_000).step_by(500) {
            assert_near(normal.at_most(t), exact.at_most(t), 3e-4);
        }
        let past = Null::signed_rank(EXACT_VALUES_MAX + 1);
        assert!(matches!(past.tail, Tail::Normal { .. }));
    }

    #[test]
    fn two_and_three_values_have_the_distribution_counted_by_hand() {
        // U for the 10 arrangements: 0 1 2 2 3 3 4 4 5 6.
        let null = Null::rank_sum(2, 3);
        let expected = [1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0];
        for (u, count) in expected.into_iter().enumerate() {
            assert_near(null.at_most(u), count / 10.0, 1e-15);
            assert_near(Null::rank_sum(3, 2).at_most(u), count / 10.0, 1e-15);
        }
    }

    #[test]
    fn the_published_p_of_the_permeability_example_comes_out() {
        // R's wilcox.test prints W = 35, p = 0.1272 for "greater".
        let null = Null::rank_sum(10, 5);
        assert_near(1.0 - null.at_most(34), 0.1272, 5e-5);
    }

    #[test]
    fn the_normal_rank_sum_is_close_where_it_takes_over_and_safe_in_its_tails() {
        let exact = Null::rank_sum(40, 40);
        let normal = Null {
            largest: 1600,
            tail: normal_rank_sum(40, 40),
        };
        for u in (400..1200).step_by(20) {
            assert_near(normal.at_most(u), exact.at_most(u), 2e-3);
        }
        for u in [300, 350, 400] {
            assert!(normal.at_most(u) > exact.at_most(u), "{u}");
        }
        assert!(matches!(Null::rank_sum(41, 40).tail, Tail::Normal { .. }));
    }
}
