//! Where a curve stops rising.

use crate::Interval;
use crate::signed_rank::{differences, joint_interval};

/// The smallest level whose throughput is at least `1 - tolerance` of the
/// highest one: from there on, a larger level gains nothing worth having.
/// `logs` are logarithms of throughput, by level and then block.
///
/// That is the question of whoever picks a buffer size. Kneedle (Satopää and
/// others, "Finding a 'kneedle' in a haystack", ICDCS workshops 2011) answers
/// another one, where the curve bends most, which moves with the range of
/// levels that happened to be measured and with how they are scaled.
///
/// What counts is the ratio of each two levels, estimated over the blocks.
/// The interval reaches from the first level that is not shown to fall short
/// of another one to the first that is shown to fall short of none. The knee
/// itself is passed over only if one of its ratios lies beyond its interval,
/// and a level before it is taken only if its ratio to the one that it falls
/// short of does. So each end needs as many intervals as there are other levels
/// to hold together, not one for each pair (Hsu, "Simultaneous confidence
/// intervals for all distances from the 'best'", Annals of Statistics 9 (1981),
/// has the same economy).
///
/// The ends are levels. If the last one is among them, the curve may still be
/// rising there: the knee is at that level or beyond.
pub fn knee(levels: &[f64], logs: &[Vec<f64>], tolerance: f64, confidence: f64) -> Interval {
    assert_eq!(levels.len(), logs.len(), "a series for each level");
    assert!(levels.is_sorted_by(|a, b| a < b), "levels must ascend");
    assert!(levels.len() > 1, "a knee needs two levels");
    assert!(
        (0.0..1.0).contains(&tolerance),
        "tolerance {tolerance} is outside 0 to 1"
    );
    let others = levels.len() - 1;
    let bound = (-tolerance).ln_1p();
    let ratio =
        |i: usize, j: usize| joint_interval(&differences(&logs[i], &logs[j]), others, confidence);
    let first_enough = |end: fn(Interval) -> f64| {
        let is_enough = |i: &usize| {
            let mut rest = (0..levels.len()).filter(|j| j != i);
            rest.all(|j| end(ratio(*i, j)) >= bound)
        };
        levels[(0..others).find(is_enough).unwrap_or(others)]
    };
    Interval {
        estimate: first_enough(|ratio| ratio.estimate),
        low: first_enough(|ratio| ratio.high),
        high: first_enough(|ratio| ratio.low),
        confidence: ratio(0, 1).confidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 5] = [1.0, 4.0, 16.0, 64.0, 256.0];

    /// Ten blocks, each of its own speed.
    fn logs(throughput: [f64; 5]) -> Vec<Vec<f64>> {
        let blocks = |value: f64| (1..=10).map(move |block| (value * f64::from(block)).ln());
        throughput.map(|value| blocks(value).collect()).into()
    }

    fn exact(throughput: [f64; 5], tolerance: f64) -> f64 {
        let knee = knee(&SIZES, &logs(throughput), tolerance, 0.95);
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
        let knee = knee(&SIZES, &logs, 0.05, 0.95);
        assert_eq!((knee.low, knee.estimate, knee.high), (4.0, 16.0, 16.0));
    }

    #[test]
    fn too_few_blocks_admit_it() {
        let few: Vec<Vec<f64>> = logs([1.0; 5]).iter().map(|all| all[..6].to_vec()).collect();
        let knee = knee(&SIZES, &few, 0.05, 0.95);
        assert!((knee.confidence - (1.0 - 4.0 * 2.0 / 64.0)).abs() < 1e-14);
        assert!(!knee.reaches(0.95));
    }

    #[test]
    #[should_panic(expected = "ascend")]
    fn levels_out_of_order_are_a_mistake() {
        let _ = knee(&[2.0, 1.0], &[vec![0.0], vec![0.0]], 0.05, 0.95);
    }
}
