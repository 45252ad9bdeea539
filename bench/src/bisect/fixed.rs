//! A bisection with fixed numbers of blocks, to compare with the search of `toll bisect`.

use toll_stats::{Interval, hodges_lehmann};

use super::laboratory::{Answer, History, Laboratory, Searched};

/// Numbers of blocks of the comparisons in a bisection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Blocks to compare the ends of the history, and the found version with the previous one.
    pub verdict: usize,
    /// Blocks to compare the version in the middle with both ends.
    pub step: usize,
}

/// Bisects a history. The version in the middle joins the nearer side, by an estimate from a fixed
/// number of blocks. The ends and the result are judged as `toll` does, but with one look.
pub fn fixed(history: History, blocks: Fixed, seed: u64) -> Searched {
    let mut laboratory = Laboratory::new(history, seed);
    let last = history.versions;
    if !differs(&compare(&mut laboratory, 0, last, blocks.verdict)) {
        return laboratory.searched(Answer::NoDifference);
    }
    let (mut before, mut at) = (0, last);
    while at - before > 1 {
        let middle = before.midpoint(at);
        let nearer = (0..blocks.step).map(|_| {
            let block = laboratory.block(&[0, middle, last]);
            let value = |place| block.iter().find(|one| one.0 == place).expect("measured").1;
            value(middle) - f64::midpoint(value(0), value(last))
        });
        let nearer: Vec<f64> = nearer.collect();
        if hodges_lehmann(&nearer, 0.95).estimate > 0.0 {
            at = middle
        } else {
            before = middle
        }
    }
    let answer = if differs(&compare(&mut laboratory, before, at, blocks.verdict)) {
        Answer::Version(at)
    } else {
        Answer::NotConfirmed
    };
    laboratory.searched(answer)
}

fn compare(laboratory: &mut Laboratory, before: usize, at: usize, blocks: usize) -> Interval {
    let logs = (0..blocks).map(|_| {
        let block = laboratory.block(&[before, at]);
        let value = |place| block.iter().find(|one| one.0 == place).expect("measured").1;
        value(at) - value(before)
    });
    hodges_lehmann(&Vec::from_iter(logs), 0.95)
}

/// Returns whether the difference exceeds 1 %, the margin of every comparison.
fn differs(interval: &Interval) -> bool {
    interval.low > 0.01_f64.ln_1p() || interval.high < -0.01_f64.ln_1p()
}
