//! How far apart several things lie.

use crate::Interval;
use crate::signed_rank::{differences, joint_interval};

/// The largest ratio between two levels, each estimated over the blocks. `logs` are
/// logarithms by level and then block.
///
/// The lower end is the largest that any pair is shown to have, and 1 if none is
/// shown to differ; each of the pairs, either way round, might be the one that
/// errs, so their intervals hold together. The upper end errs only if the
/// pair that lies farthest apart does, so there each interval is its own.
///
/// The estimate, the largest of several, lies too high where noise is larger
/// than what the levels differ by.
pub fn spread(logs: &[Vec<f64>], confidence: f64) -> Interval {
    assert!(logs.len() > 1, "a spread needs two levels");
    let pairs = logs.len() * (logs.len() - 1);
    let largest = |count: usize, end: fn(Interval) -> f64| {
        let others = logs.iter().enumerate().flat_map(|(i, a)| {
            let others = logs.iter().enumerate().filter(move |(j, _)| i != *j);
            others.map(move |(_, b)| differences(a, b))
        });
        others
            .map(|logs| end(joint_interval(&logs, count, confidence)))
            .fold(0.0, f64::max)
            .exp()
    };
    Interval {
        estimate: largest(1, |ratio| ratio.estimate),
        low: largest(pairs, |ratio| ratio.low),
        high: largest(1, |ratio| ratio.high),
        confidence: joint_interval(&logs[0], pairs, confidence).confidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve blocks that differ widely, and levels by a twentieth at most within one.
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
        let spread = spread(&logs(&[3.0; 3]), 0.95);
        assert_eq!(spread.low, 1.0);
        assert!(spread.high < 1.06, "{spread:?}");
    }

    #[test]
    fn a_clear_spread_excludes_none_whatever_the_blocks_do() {
        let spread = spread(&logs(&[2.0, 3.0, 2.5]), 0.95);
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
        let spread = spread(&few, 0.95);
        assert!((spread.confidence - (1.0 - 6.0 * 2.0 / 64.0)).abs() < 1e-14);
        assert!(!spread.reaches(0.95));
    }
}
