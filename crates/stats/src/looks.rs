//! When a run looks at its intervals, and the error that repeated looks cost.

use crate::normal::normal_quantile;

/// The looks of a run. At each look, the run may end, depending on its results so far.
///
/// A run that stops at the first look that decides may err at each of them (Armitage, McPherson
/// and Rowe, "Repeated significance tests on accumulating data", JRSS A 132 (1969)). So the looks
/// share the error. The first look has half of it, since most claims that are decided at all are
/// decided there. The later looks have the other half (Lan and DeMets, "Discrete sequential
/// boundaries for clinical trials", Biometrika 70 (1983)), in equal parts (Pocock, "Group
/// sequential methods in the design and analysis of clinical trials", Biometrika 64 (1977)). The
/// intervals of all looks hold jointly (Jennison and Turnbull, "Interim analyses: the repeated
/// confidence interval approach", JRSS B 51 (1989)).
///
/// Each look comes after a quarter more blocks. In such a geometric sequence neighbouring looks
/// are equally correlated, however long the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// Blocks before the first look.
    pub first: usize,
    /// Maximum number of blocks. The last look comes after this many.
    pub last: usize,
}

/// One of the looks of a run, reduced to the facts on which the look's error depends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Number of looks that share an error in equal parts, including this one.
    sharing: usize,
    /// Share of the whole error that the looks counted in `sharing` have together.
    share: f64,
}

/// Correlation of the statistics of neighbouring looks: √(4/5), since the correlation of sums over
/// m and n blocks is √(m/n).
const CORRELATION: f64 = 0.894_427_190_999_915_9;

impl Looks {
    /// Returns the single look of a run whose number of blocks was fixed beforehand.
    pub fn once(blocks: usize) -> Self {
        Self {
            first: blocks,
            last: blocks,
        }
    }

    /// Whether there is a look after this many blocks; always true from the last look on.
    pub fn is_look(&self, blocks: usize) -> bool {
        blocks >= self.last || self.before_last().any(|look| look == blocks)
    }

    /// Whether there is a single look, so that the number of blocks does not depend on the data.
    pub fn is_one(&self) -> bool {
        self.first >= self.last
    }

    fn before_last(&self) -> impl Iterator<Item = usize> {
        let following = |look: &usize| Some(look + (look / 4).max(1));
        let last = self.last;
        std::iter::successors(Some(self.first), following).take_while(move |look| *look < last)
    }

    /// Returns the look after this many blocks, or the next one.
    pub fn at(&self, blocks: usize) -> Look {
        const FIRST: f64 = 0.5;
        match self.before_last().count() {
            0 => Look::ONLY,
            _ if blocks <= self.first => Look {
                sharing: 1,
                share: FIRST,
            },
            later => Look {
                sharing: later,
                share: 1.0 - FIRST,
            },
        }
    }
}

impl Look {
    /// The look of a run whose number of blocks does not depend on the data.
    pub const ONLY: Self = Self {
        sharing: 1,
        share: 1.0,
    };

    /// Returns the one-sided error of all looks together for a statistic that passes this look
    /// with probability `tail` if there is no effect; at most 1.
    ///
    /// For looks A₁ to Aₖ that share an error, the probability of passing any of them is at most
    /// the sum of P(Aᵢ) minus the sum of P(Aᵢ₋₁ and Aᵢ) (Hunter, "An upper bound for the
    /// probability of a union", Journal of Applied Probability 13 (1976); Worsley, Biometrika 69
    /// (1982)).
    pub fn error(&self, tail: f64) -> f64 {
        let further = (self.sharing - 1) as f64;
        let any = if further == 0.0 || tail <= 0.0 || tail >= 0.5 {
            tail
        } else {
            tail + further * (tail - both_above(-normal_quantile(tail), tail))
        };
        (any / self.share).clamp(0.0, 1.0)
    }

    /// Returns the one-sided tail probability at this look for which [`Look::error`] is `error`.
    pub fn tail(&self, error: f64) -> f64 {
        let (mut low, mut high) = (0.0, error);
        if self.error(high) <= error {
            return high;
        }
        // The last of these bisections are below the precision of a double.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.error(middle) <= error {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }
}

/// Returns the probability that two standard normal values with this [`CORRELATION`] are both above
/// `z`, by Simpson's rule (Drezner and Wesolowsky, "On the computation of the bivariate normal
/// integral", Journal of Statistical Computation and Simulation 35 (1990)). A single value is above
/// `z` with probability `tail`.
fn both_above(z: f64, tail: f64) -> f64 {
    const STEPS: usize = 16;
    let step = CORRELATION.asin() / STEPS as f64;
    let value = |place: usize| {
        let weight = match place {
            0 | STEPS => 1.0,
            _ if place % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * (-z * z / (1.0 + (place as f64 * step).sin())).exp()
    };
    let sum: f64 = (0..=STEPS).map(value).sum();
    tail * tail + sum * step / 3.0 / (2.0 * std::f64::consts::PI)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const LOOKS: Looks = Looks {
        first: 10,
        last: 40,
    };

    #[test]
    fn looks_are_a_quarter_of_the_blocks_apart_and_one_is_at_the_last() {
        let looks: Vec<usize> = (0..43).filter(|&blocks| LOOKS.is_look(blocks)).collect();
        assert_eq!(looks, [10, 12, 15, 18, 22, 27, 33, 40, 41, 42]);
        let few: Vec<usize> = (0..6)
            .filter(|&blocks| Looks { first: 1, last: 4 }.is_look(blocks))
            .collect();
        assert_eq!(few, [1, 2, 3, 4, 5]);
        assert!(Looks { first: 9, last: 5 }.is_look(5));
    }

    #[test]
    fn one_look_costs_nothing_and_more_cost_more() {
        assert_eq!(Looks::once(10).at(10), Look::ONLY);
        assert_eq!(Look::ONLY.error(0.025), 0.025);
        assert_eq!(Look::ONLY.tail(0.025), 0.025);
        assert_eq!(LOOKS.at(10).error(0.01), 0.02);
        let errors: Vec<f64> = [10, 12, 20, 40, 100]
            .map(|last| Looks { first: 10, last }.at(last).error(0.01))
            .into();
        assert!(errors.is_sorted_by(|a, b| a < b), "{errors:?}");
    }

    #[test]
    fn tail_undoes_error() {
        for (error, blocks) in [0.5, 0.05, 0.01, 1e-4, 1e-9]
            .iter()
            .zip([10, 12, 40, 9, 33])
        {
            let look = LOOKS.at(blocks);
            let again = look.error(look.tail(*error));
            assert!((again / error - 1.0).abs() < 1e-9, "{error}: {again}");
        }
    }

    #[test]
    fn both_of_two_correlated_values_are_above_as_often_as_drawn() {
        let mut rng = Rng::new(5);
        let (z, draws) = (1.5, 400_000);
        let both = (0..draws).filter(|_| {
            let first = rng.normal();
            let other = (1.0 - CORRELATION * CORRELATION).sqrt() * rng.normal();
            first > z && CORRELATION * first + other > z
        });
        let drawn = both.count() as f64 / f64::from(draws);
        let computed = both_above(z, crate::normal_cdf(-z));
        assert!((drawn / computed - 1.0).abs() < 0.02, "{drawn} {computed}");
    }

    /// Looks at sums of normal values err as often as stated, or slightly less often.
    #[test]
    fn no_more_runs_pass_than_the_error_says() {
        for (looks, error) in [(LOOKS, 0.05), (Looks { first: 6, last: 90 }, 0.025)] {
            let z = |blocks: usize| -normal_quantile(looks.at(blocks).tail(error));
            let z: Vec<f64> = (0..=looks.last).map(z).collect();
            let mut rng = Rng::new(77);
            let runs = 20_000;
            let passed = (0..runs).filter(|_| {
                let mut sum = 0.0;
                let mut is_passed = false;
                for (blocks, z) in z.iter().enumerate().skip(1) {
                    sum += rng.normal();
                    is_passed |= looks.is_look(blocks) && sum > z * (blocks as f64).sqrt();
                }
                is_passed
            });
            let share = passed.count() as f64 / f64::from(runs);
            assert!((0.6 * error..1.03 * error).contains(&share), "{share}");
        }
    }
}
