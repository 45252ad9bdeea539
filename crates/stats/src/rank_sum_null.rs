//! The null distribution of the rank-sum statistic.

use crate::normal::normal_cdf;

/// Pairs of values up to which the distribution is exact. The table costs as
/// many additions as the square of the pairs; at 40 values each that is a few
/// milliseconds, for each of a run's treatments.
const EXACT_PAIRS_MAX: usize = 1600;

/// P(U ≤ u) of the number of pairs in which the value of one sample is the
/// larger (Mann and Whitney, "On a test of whether one of two random variables
/// is stochastically larger than the other", Annals of Mathematical Statistics
/// 18 (1947), with their recursion). Above [`EXACT_PAIRS_MAX`] it is normal,
/// corrected for continuity, which has the heavier tails and so errs on the
/// safe side.
pub(crate) struct RankSumNull {
    pairs: usize,
    tail: Tail,
}

enum Tail {
    /// P(U ≤ u) for all u.
    Exact(Vec<f64>),
    Normal {
        mean: f64,
        standard_deviation: f64,
    },
}

impl RankSumNull {
    pub(crate) fn new(m: usize, n: usize) -> Self {
        let pairs = m * n;
        let tail = if pairs <= EXACT_PAIRS_MAX {
            Tail::Exact(exact(m, n))
        } else {
            normal(m, n)
        };
        Self { pairs, tail }
    }

    /// P(U ≤ `u`).
    pub(crate) fn at_most(&self, u: usize) -> f64 {
        if u >= self.pairs {
            return 1.0;
        }
        match &self.tail {
            Tail::Exact(cumulated) => cumulated[u],
            Tail::Normal {
                mean,
                standard_deviation,
            } => normal_cdf((u as f64 + 0.5 - mean) / standard_deviation),
        }
    }
}

fn normal(m: usize, n: usize) -> Tail {
    let (m, n) = (m as f64, n as f64);
    Tail::Normal {
        mean: m * n / 2.0,
        standard_deviation: (m * n * (m + n + 1.0) / 12.0).sqrt(),
    }
}

/// The largest of all m + n values is of the one sample with probability
/// m / (m + n), and then it is in n pairs the larger one; so
/// P(m, n, u) = (m P(m - 1, n, u - n) + n P(m, n - 1, u)) / (m + n).
fn exact(m: usize, n: usize) -> Vec<f64> {
    let pairs = m * n;
    let certain = || {
        let mut probability = vec![0.0; pairs + 1];
        probability[0] = 1.0;
        probability
    };
    // By the values of the other sample, for as many of the one as are in.
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
    let mut cumulated = by_n.swap_remove(n);
    let mut sum = 0.0;
    for entry in &mut cumulated {
        sum += *entry;
        *entry = sum;
    }
    cumulated
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
    fn two_and_three_values_have_the_distribution_counted_by_hand() {
        // Of the 10 arrangements U is 0 1 2 2 3 3 4 4 5 6.
        let null = RankSumNull::new(2, 3);
        let expected = [1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0];
        for (u, count) in expected.into_iter().enumerate() {
            assert_near(null.at_most(u), count / 10.0, 1e-15);
            assert_near(RankSumNull::new(3, 2).at_most(u), count / 10.0, 1e-15);
        }
    }

    #[test]
    fn the_published_p_of_the_permeability_example_comes_out() {
        // R's wilcox.test prints W = 35, p = 0.1272 for "greater".
        let null = RankSumNull::new(10, 5);
        assert_near(1.0 - null.at_most(34), 0.1272, 5e-5);
    }

    #[test]
    fn the_normal_approximation_is_close_where_it_takes_over_and_safe_in_its_tails() {
        let exact = RankSumNull::new(40, 40);
        let normal = RankSumNull {
            pairs: 1600,
            tail: normal(40, 40),
        };
        for u in (400..1200).step_by(20) {
            assert_near(normal.at_most(u), exact.at_most(u), 2e-3);
        }
        for u in [300, 350, 400] {
            assert!(normal.at_most(u) > exact.at_most(u), "{u}");
        }
        assert!(matches!(RankSumNull::new(41, 40).tail, Tail::Normal { .. }));
    }
}
