//! Where a curve stops rising.

use crate::Interval;
use crate::null::Null;
use crate::signed_rank::{differences, hodges_lehmann, interval_rank};
use crate::walsh::WalshAverages;

/// The smallest level whose throughput is at least `1 - tolerance` of the highest one. From there
/// on, a larger level gains nothing of interest.
///
/// This level is of interest when a buffer size must be chosen. Kneedle (Satopää and others,
/// "Finding a 'kneedle' in a haystack", ICDCS workshops 2011) answers another question: where the
/// curve bends most. That place depends on the range of measured levels and on their scale.
///
/// The method compares every two levels by their ratio, estimated over the blocks. The interval
/// extends from the first level that is not shown to fall short of another one to the first that is
/// shown to fall short of none. The knee itself is skipped only if one of its ratios is outside of
/// that ratio's interval. An earlier level is taken only if its ratio to the level that it falls
/// short of is outside of that ratio's interval. So for each end only as many intervals as there
/// are other levels must hold jointly, not one for each pair (Hsu, "Simultaneous confidence
/// intervals for all distances from the 'best'", Annals of Statistics 9 (1981), makes the same
/// saving).
///
/// The ends of the interval are levels. If the last level is an end, the curve may still be rising
/// there: the knee is at that level or beyond.
#[derive(Debug, Clone)]
pub struct Knee {
    levels: Vec<f64>,
    blocks: usize,
    estimate: f64,
    /// For each level and each other level, the number of Walsh averages of their log-ratio that
    /// are below the tolerance. This number decides at which ranks an end is high enough, so the
    /// averages are computed once for all confidences.
    below: Vec<Vec<usize>>,
}

impl Knee {
    /// Compares all levels. `levels` ascend. `logs` holds natural logarithms of throughput, with
    /// one series per level and one value per block in it. `tolerance` is a share from 0 to 1.
    ///
    /// # Panics
    /// If there are fewer than two levels, they do not ascend, `logs` has a different length, its
    /// series differ in length, or `tolerance` is outside 0 to 1.
    pub fn new(levels: &[f64], logs: &[Vec<f64>], tolerance: f64) -> Self {
        assert_eq!(levels.len(), logs.len(), "each level needs a series");
        assert!(levels.is_sorted_by(|a, b| a < b), "levels must ascend");
        assert!(levels.len() > 1, "a knee needs at least two levels");
        assert!(
            (0.0..1.0).contains(&tolerance),
            "tolerance {tolerance} is outside 0 to 1"
        );
        let bound = (-tolerance).ln_1p();
        let ratio = |i: usize, j: usize| differences(&logs[i], &logs[j]);
        let below = |i: usize| -> Vec<usize> {
            let others = (0..levels.len()).filter(|j| *j != i);
            others
                .map(|j| WalshAverages::new(&ratio(i, j)).count_below(bound))
                .collect()
        };
        let is_enough = |i: &usize| {
            let mut others = (0..levels.len()).filter(|j| j != i);
            others.all(|j| hodges_lehmann(&ratio(*i, j), 0.5).estimate >= bound)
        };
        let last = levels.len() - 1;
        Self {
            levels: levels.to_vec(),
            blocks: logs[0].len(),
            estimate: levels[(0..last).find(is_enough).unwrap_or(last)],
            below: (0..levels.len()).map(below).collect(),
        }
    }

    /// Returns the knee with its interval, in the unit of the levels.
    pub fn interval(&self, confidence: f64) -> Interval {
        let others = (self.levels.len() - 1) as f64;
        let count = self.blocks * (self.blocks + 1) / 2;
        let null = Null::signed_rank(self.blocks);
        let rank = interval_rank(count, (1.0 - confidence) / others, |t| null.two_sided(t));
        let first = |is_enough: &dyn Fn(usize) -> bool| {
            let mut levels = self.below.iter().zip(&self.levels);
            let found = levels.find(|(below, _)| below.iter().all(|one| is_enough(*one)));
            found.map_or(self.levels[self.levels.len() - 1], |(_, level)| *level)
        };
        Interval {
            estimate: self.estimate,
            // An upper end is high enough if as many averages as its rank are high enough.
            low: first(&|below| count - below >= rank),
            high: first(&|below| below < rank),
            confidence: (1.0 - others * null.two_sided(rank - 1)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 5] = [1.0, 4.0, 16.0, 64.0, 256.0];

    /// Ten blocks, each with its own speed.
    fn logs(throughput: [f64; 5]) -> Vec<Vec<f64>> {
        let blocks = |value: f64| (1..=10).map(move |block| (value * f64::from(block)).ln());
        throughput.map(|value| blocks(value).collect()).into()
    }

    fn exact(throughput: [f64; 5], tolerance: f64) -> f64 {
        let knee = Knee::new(&SIZES, &logs(throughput), tolerance).interval(0.95);
        assert_eq!((knee.low, knee.high), (knee.estimate, knee.estimate));
        assert!(knee.reaches(0.95));
        knee.estimate
    }

    #[test]
    fn the_knee_is_the_first_level_within_tolerance_of_the_best() {
        let throughput = [10.0, 60.0, 96.0, 100.0, 98.0];
        assert_eq!(exact(throughput, 0.05), 16.0);
        assert_eq!(exact(throughput, 0.01), 64.0);
        assert_eq!(exact(throughput, 0.5), 4.0);
    }

    #[test]
    fn a_flat_curve_has_its_knee_at_the_first_level_and_a_rising_one_at_the_last() {
        assert_eq!(exact([7.0; 5], 0.05), 1.0);
        assert_eq!(exact([1.0, 2.0, 4.0, 8.0, 16.0], 0.05), 256.0);
    }

    #[test]
    fn a_level_that_may_be_enough_is_where_the_interval_begins() {
        let mut logs = logs([10.0, 95.0, 100.0, 100.0, 100.0]);
        for (block, log) in logs[1].iter_mut().enumerate() {
            *log += if block % 3 == 0 { 0.01 } else { -0.01 };
        }
        let knee = Knee::new(&SIZES, &logs, 0.05).interval(0.95);
        assert_eq!((knee.low, knee.estimate, knee.high), (4.0, 16.0, 16.0));
    }

    #[test]
    fn too_few_blocks_admit_it() {
        let few: Vec<Vec<f64>> = logs([1.0; 5]).iter().map(|all| all[..6].to_vec()).collect();
        let knee = Knee::new(&SIZES, &few, 0.05).interval(0.95);
        assert!((knee.confidence - (1.0 - 4.0 * 2.0 / 64.0)).abs() < 1e-14);
        assert!(!knee.reaches(0.95));
    }

    #[test]
    #[should_panic(expected = "ascend")]
    fn levels_out_of_order_are_a_mistake() {
        let _ = Knee::new(&[2.0, 1.0], &[vec![0.0], vec![0.0]], 0.05);
    }
}
