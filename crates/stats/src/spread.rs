//! How far apart several levels are.

use crate::Interval;
use crate::null::Null;
use crate::quantile::quantile_sorted;
use crate::signed_rank::{differences, interval_rank};
use crate::walsh::WalshAverages;

/// The largest ratio between two levels, with each ratio estimated over the blocks.
///
/// The lower end is the largest ratio that any pair is shown to have, and 1 if no pair is shown to
/// differ. Any pair, in either direction, may err, so the intervals of all pairs must hold jointly.
/// The upper end errs only if the interval of the pair that is farthest apart errs. So for the
/// upper end, each interval only has to hold by itself.
///
/// The estimate is the largest of several, so it is too high if the noise is larger than the
/// differences between the levels.
#[derive(Debug, Clone)]
pub struct Spread {
    blocks: usize,
    /// Walsh averages of each pair, ascending, so that one sort serves intervals of all
    /// confidences.
    pairs: Vec<Vec<f64>>,
}

impl Spread {
    /// Compares all levels. `logs` holds natural logarithms, with one series per level and one
    /// value per block in it.
    ///
    /// # Panics
    /// If there are fewer than two levels, or series differ in length.
    pub fn new(logs: &[Vec<f64>]) -> Self {
        assert!(logs.len() > 1, "a spread needs at least two levels");
        let averages = |a: &[f64], b: &[f64]| {
            let mut averages = WalshAverages::new(&differences(a, b)).into_averages();
            averages.sort_unstable_by(f64::total_cmp);
            averages
        };
        let levels = logs.iter().enumerate();
        let pairs = levels.flat_map(|(i, a)| logs[..i].iter().map(move |b| averages(a, b)));
        Self {
            blocks: logs[0].len(),
            pairs: pairs.collect(),
        }
    }

    /// Returns the spread, a ratio of at least 1, with its interval.
    pub fn interval(&self, confidence: f64) -> Interval {
        let count = self.blocks * (self.blocks + 1) / 2;
        let null = Null::signed_rank(self.blocks);
        let rank = |alpha: f64| interval_rank(count, alpha, |t| null.two_sided(t));
        let ways = 2.0 * self.pairs.len() as f64;
        let (joint, own) = (rank((1.0 - confidence) / ways), rank(1.0 - confidence));
        // In the other direction a pair has the same ends with the opposite sign.
        let largest = |end: &dyn Fn(&[f64]) -> [f64; 2]| {
            let ends = self.pairs.iter().flat_map(|pair| end(pair));
            ends.fold(0.0, f64::max).exp()
        };
        let middle = |pair: &[f64]| quantile_sorted(pair, 0.5);
        Interval {
            estimate: largest(&|pair| [middle(pair), -middle(pair)]),
            low: largest(&|pair| [pair[joint - 1], -pair[count - joint]]),
            high: largest(&|pair| [pair[count - own], -pair[own - 1]]),
            confidence: (1.0 - ways * null.two_sided(joint - 1)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve blocks that differ widely; within a block, equal levels differ by at most a
    /// twentieth.
    fn logs(levels: &[f64]) -> Vec<Vec<f64>> {
        let own = |level: usize, block: usize| ((level * 5 + block * 7) % 12) as f64 / 240.0;
        let block = |level: usize, at: f64| {
            let all = 0..12;
            all.map(move |block| at.ln() + block as f64 + own(level, block))
        };
        let levels = levels.iter().enumerate();
        levels
            .map(|(level, at)| block(level, *at).collect())
            .collect()
    }

    #[test]
    fn equal_levels_may_have_no_spread() {
        let spread = Spread::new(&logs(&[3.0; 3])).interval(0.95);
        assert_eq!(spread.low, 1.0);
        assert!(spread.high < 1.06, "{spread:?}");
    }

    #[test]
    fn a_clear_spread_excludes_none_whatever_the_blocks_do() {
        let spread = Spread::new(&logs(&[2.0, 3.0, 2.5])).interval(0.95);
        assert!(spread.reaches(0.95));
        assert!((spread.estimate / 1.5 - 1.0).abs() < 0.03, "{spread:?}");
        assert!(spread.low > 1.4 && spread.high < 1.6, "{spread:?}");
    }

    #[test]
    fn the_lower_end_takes_the_intervals_of_all_pairs_together() {
        let few: Vec<Vec<f64>> = logs(&[2.0, 3.0, 2.5])
            .iter()
            .map(|all| all[..6].to_vec())
            .collect();
        let spread = Spread::new(&few).interval(0.95);
        assert!((spread.confidence - (1.0 - 6.0 * 2.0 / 64.0)).abs() < 1e-14);
        assert!(!spread.reaches(0.95));
    }
}
