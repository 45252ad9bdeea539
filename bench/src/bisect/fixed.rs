//! A bisection of a fixed number of blocks, for comparison.

use toll_stats::{Interval, hodges_lehmann};

use super::{Answer, History, Laboratory, Searched};

/// Blocks of its comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Of the ends, and of the version found and the one before it.
    pub verdict: usize,
    /// Of the version in the middle and both ends.
    pub step: usize,
}

/// Searches a history by halves. Each middle goes to the side that it is nearer to, by
/// the estimate of a fixed number of blocks; ends and result are judged as `toll` does,
/// with one look.
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
        match hodges_lehmann(&nearer, 0.95).estimate > 0.0 {
            true => at = middle,
            false => before = middle,
        }
    }
    let answer = match differs(&compare(&mut laboratory, before, at, blocks.verdict)) {
        true => Answer::Version(at),
        false => Answer::NotConfirmed,
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

/// By more than the margin of 1 % of every comparison.
fn differs(interval: &Interval) -> bool {
    interval.low > 0.01_f64.ln_1p() || interval.high < -0.01_f64.ln_1p()
}
