//! Tests whether a fact about machines explains how their values differ.

use crate::Rng;
use crate::quantile::median;

/// Number of random assignments of values to levels that are tried.
const PERMUTATIONS: usize = 1999;
/// Degrees of freedom with which the pooled variance counts beside each level's own variance, so
/// that the variance of two values is not near 0 by chance.
const POOLED: f64 = 1.0;
/// Lower limit of a variance of ranks, since equal ranks have none.
const VARIANCE_MIN: f64 = 1e-9;
/// A statistic that is below another by less than this share counts as equal: the difference is
/// rounding.
const ROUNDING: f64 = 1e-9;

/// How well the levels of a fact, a moderator of the effect, separate values.
///
/// This is a permutation test of the ranks. The statistic is a distance between the levels' mean
/// ranks, in terms of each level's own variance (Brunner, Dette and Munk, "Box-type approximations
/// in nonparametric factorial designs", Journal of the American Statistical Association 92 (1997)).
/// The statistic is compared with its values for random assignments of values to levels. Because
/// the statistic is studentised, the test keeps its level even if one level's values vary more than
/// another's (Neubert and Brunner, "A studentized permutation test for the non-parametric
/// Behrens-Fisher problem", Computational Statistics and Data Analysis 51 (2007)). Because the test
/// uses ranks, it also keeps its level if some values are outlying. The test finds a difference if
/// one level's values tend to be larger than another's.
///
/// The standard errors of the values are not used. Weights by them would differ between levels if
/// one level is measured worse than another; then 10 % of tests at 5 % err.
///
/// The test is not exact if levels vary differently and a level has few values: if 3 of 20 values
/// vary 3 times as widely as the others, 12 % to 14 % of tests err.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moderator {
    /// Probability of a distance this large if the levels make no difference. At least 0.0005.
    pub p: f64,
    /// Share of the variance of the ranks that is between levels, less the share that levels
    /// explain by chance (epsilon squared: Kelley, "An unbiased correlation ratio measure",
    /// Proceedings of the National Academy of Sciences 21 (1935)).
    pub explained: f64,
}

impl Moderator {
    /// Tests whether the levels separate the values. `levels` and `strata` have one entry per
    /// value: the number of its level and of its stratum, from 0. Values are compared only within
    /// a stratum, such as a level of another fact. `seed` determines the random assignments.
    ///
    /// # Panics
    /// If lists differ in length, there are fewer than two levels, or a level has fewer
    /// than two values.
    pub fn test(values: &[f64], levels: &[usize], strata: &[usize], seed: u64) -> Self {
        assert_eq!(values.len(), levels.len(), "each value has a level");
        assert_eq!(values.len(), strata.len(), "each value has a stratum");
        let count = levels.iter().max().map_or(0, |last| last + 1);
        let sizes = sizes(levels, count);
        assert!(
            count > 1 && sizes.iter().all(|size| *size >= 2.0),
            "the test needs two levels of two values each"
        );
        let members = members(strata);
        let mut ranks = ranks(&within_strata(values, &members));
        let observed = distance(&ranks, levels, &sizes);
        let mut rng = Rng::new(seed);
        let mut as_large = 1;
        for _ in 0..PERMUTATIONS {
            for stratum in &members {
                shuffle(&mut ranks, stratum, &mut rng);
            }
            let permuted = distance(&ranks, levels, &sizes);
            as_large += usize::from(permuted.statistic >= observed.statistic * (1.0 - ROUNDING));
        }
        Self {
            p: as_large as f64 / (PERMUTATIONS + 1) as f64,
            explained: observed.explained,
        }
    }
}

fn sizes(levels: &[usize], count: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; count];
    for level in levels {
        sizes[*level] += 1.0;
    }
    sizes
}

/// Returns the indices of the values of each stratum.
fn members(strata: &[usize]) -> Vec<Vec<usize>> {
    let count = strata.iter().max().map_or(0, |last| last + 1);
    let mut members = vec![Vec::new(); count];
    for (index, stratum) in strata.iter().enumerate() {
        members[*stratum].push(index);
    }
    members.retain(|stratum| !stratum.is_empty());
    members
}

/// Returns the values minus the median of their stratum.
fn within_strata(values: &[f64], members: &[Vec<usize>]) -> Vec<f64> {
    let mut aligned = values.to_vec();
    for stratum in members {
        let own: Vec<f64> = stratum.iter().map(|index| values[*index]).collect();
        let middle = median(&own);
        for index in stratum {
            aligned[*index] -= middle;
        }
    }
    aligned
}

/// Returns the ranks from 1; equal values share their middle rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let middle = start as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for index in tied {
            ranks[*index] = middle;
        }
        start += tied.len();
    }
    ranks
}

/// Puts the ranks of one stratum into random order.
fn shuffle(ranks: &mut [f64], stratum: &[usize], rng: &mut Rng) {
    for last in (1..stratum.len()).rev() {
        ranks.swap(stratum[last], stratum[rng.below(last + 1)]);
    }
}

/// How far apart the mean ranks of levels are.
struct Distance {
    /// Sum of the squared distances of mean ranks from their mean, each divided by the level's own
    /// variance.
    statistic: f64,
    explained: f64,
}

fn distance(ranks: &[f64], levels: &[usize], sizes: &[f64]) -> Distance {
    let mut means = vec![0.0; sizes.len()];
    for (rank, level) in ranks.iter().zip(levels) {
        means[*level] += rank / sizes[*level];
    }
    let mut squares = vec![0.0; sizes.len()];
    for (rank, level) in ranks.iter().zip(levels) {
        squares[*level] += (rank - means[*level]).powi(2);
    }
    let within: f64 = squares.iter().sum();
    // Two levels of two values leave two degrees of freedom.
    let pooled = within / (ranks.len() - sizes.len()) as f64;
    let weight = |(square, size): (&f64, &f64)| {
        let variance = (square + POOLED * pooled) / (size - 1.0 + POOLED);
        size / variance.max(VARIANCE_MIN)
    };
    let weights: Vec<f64> = squares.iter().zip(sizes).map(weight).collect();
    let about = |weights: &[f64]| {
        let weighted = || weights.iter().zip(&means);
        let centre =
            weighted().map(|(w, mean)| w * mean).sum::<f64>() / weights.iter().sum::<f64>();
        weighted()
            .map(|(w, mean)| w * (mean - centre).powi(2))
            .sum::<f64>()
    };
    let all = about(sizes) + within;
    let variance = all / (ranks.len() as f64 - 1.0);
    Distance {
        statistic: about(&weights),
        explained: if all > 0.0 {
            (1.0 - pooled / variance).max(0.0)
        } else {
            0.0
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_OF_FOUR: [usize; 8] = [0, 0, 0, 0, 1, 1, 1, 1];

    #[test]
    fn levels_without_overlap_have_the_p_value_of_their_two_extreme_orders() {
        let values = [1.0, 2.0, 3.0, 4.0, 9.0, 8.0, 7.0, 6.0];
        let moderator = Moderator::test(&values, &TWO_OF_FOUR, &[0; 8], 1);
        // 2 of the 70 ways to choose 4 of 8, within three standard deviations of a binomial.
        let error = (2.0_f64 / 70.0 / 2000.0).sqrt();
        assert!(
            (moderator.p - 2.0 / 70.0).abs() < 3.0 * error,
            "{moderator:?}"
        );
        // Squares of ranks: 2 · 4 · 2² between levels, 2 · 5 within them.
        let expected = 1.0 - (10.0 / 6.0) / (42.0 / 7.0);
        assert!((moderator.explained - expected).abs() < 1e-12);
    }

    #[test]
    fn equal_values_are_told_apart_by_nothing() {
        let moderator = Moderator::test(&[3.0; 8], &TWO_OF_FOUR, &[0; 8], 1);
        assert_eq!((moderator.p, moderator.explained), (1.0, 0.0));
    }

    #[test]
    fn equal_values_share_their_middle_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn a_seed_gives_one_answer_and_the_order_of_levels_does_not_matter() {
        let values = [1.0, 5.0, 2.0, 4.5, 3.0, 8.0, 7.0, 6.0];
        let first = Moderator::test(&values, &TWO_OF_FOUR, &[0; 8], 4);
        assert_eq!(first, Moderator::test(&values, &TWO_OF_FOUR, &[0; 8], 4));
        let exchanged = TWO_OF_FOUR.map(|level| 1 - level);
        assert_eq!(first, Moderator::test(&values, &exchanged, &[0; 8], 4));
    }

    #[test]
    fn a_fact_that_only_goes_along_with_a_stratum_explains_nothing_within_it() {
        let mut rng = Rng::new(2);
        let strata: Vec<usize> = (0..40).map(|i| i / 20).collect();
        let values: Vec<f64> = strata
            .iter()
            .map(|stratum| 5.0 * *stratum as f64 + rng.normal())
            .collect();
        // Three of four machines of a stratum have the level of the stratum.
        let levels: Vec<usize> = (0..40)
            .map(|i| (i / 20 + usize::from(i % 4 == 0)) % 2)
            .collect();
        assert!(Moderator::test(&values, &levels, &[0; 40], 1).p < 0.02);
        assert!(Moderator::test(&values, &levels, &strata, 1).p > 0.1);
        assert_eq!(Moderator::test(&values, &strata, &strata, 1).p, 1.0);
    }

    /// Returns how often the test finds a difference at 5 %. `sizes` has the number of values of
    /// each level, `spreads` says how widely each level's values vary, and the last level is
    /// `shift` away from the others. One value in ten is outlying.
    fn found(runs: usize, sizes: &[usize], spreads: &[f64], shift: f64) -> usize {
        let mut rng = Rng::new(9);
        let levels: Vec<usize> = (0..sizes.len())
            .flat_map(|level| std::iter::repeat_n(level, sizes[level]))
            .collect();
        let strata = vec![0; levels.len()];
        let mut is_found = |seed: usize| {
            let value = |level: &usize| {
                let far = match rng.below(20) {
                    0 => 6.0,
                    1 => -6.0,
                    _ => 0.0,
                };
                let own = spreads[*level] * (rng.normal() + far);
                own + f64::from(u8::from(*level == sizes.len() - 1)) * shift
            };
            let values: Vec<f64> = levels.iter().map(value).collect();
            Moderator::test(&values, &levels, &strata, seed as u64).p <= 0.05
        };
        (0..runs).filter(|seed| is_found(*seed)).count()
    }

    #[test]
    fn it_errs_at_its_level_with_unequal_variances_and_outlying_values() {
        const RUNS: usize = 300;
        for (sizes, spreads) in [
            (vec![10, 10], vec![1.0, 1.0]),
            (vec![10, 10], vec![1.0, 3.0]),
            (vec![14, 6], vec![1.0, 1.0]),
            (vec![10, 6, 4], vec![1.0, 1.0, 1.0]),
            (vec![14, 14, 12], vec![1.0, 2.0, 3.0]),
        ] {
            let found = found(RUNS, &sizes, &spreads, 0.0) as f64;
            // At most 7 %, plus three standard deviations of a binomial.
            let most = 0.07 * RUNS as f64;
            assert!(
                found < most + 3.0 * most.sqrt(),
                "{sizes:?}, {spreads:?}: {found}"
            );
        }
    }

    #[test]
    fn it_finds_levels_that_lie_apart() {
        let found = found(100, &[14, 6], &[1.0, 1.0], 4.0);
        // At least 92 %, minus three standard deviations of a binomial.
        assert!(found >= 84, "{found}");
    }
}
