//! Compares commands or kernels, in total and by function.

use serde::Serialize;
use toll_stats::{Looks, hodges_lehmann, values_needed};

use super::CommandCount;
use crate::claim::ALPHA;
use crate::claim::functions::{Block, explain_blocks};
use crate::claim::model::{Better, Estimate, FunctionDifferences};
use crate::claim::ratio::JudgedRatio;

/// A count compared with its reference, run by run: the runs of both with the same seed are a
/// block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountComparison {
    /// Index of the count.
    pub count: usize,
    /// Index of the reference with which the count is compared.
    pub reference: usize,
    /// Instructions of the count over those of its reference.
    pub ratio: Estimate,
    /// Whether there are enough runs for the interval.
    pub may_decide: bool,
    /// Functions that account for the difference; `None` if there are too few runs, or if the
    /// difference may be 0.
    pub functions: Option<FunctionDifferences>,
}

impl CountComparison {
    /// Returns the ratio, to be held against a limit.
    pub fn judged(&self) -> JudgedRatio {
        JudgedRatio {
            ratio: self.ratio,
            better: Better::Lower,
            may_decide: self.may_decide,
            noise: 0.0,
        }
    }
}

/// Which counts are compared. All comparisons share one error rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs(Vec<[usize; 2]>);

impl Pairs {
    /// Pairs each count with its reference: with several kernels, the same command under the first
    /// kernel; with one kernel, the first command. Each command has its kernels next to each other.
    pub fn new(commands: usize, kernels: usize) -> Self {
        let reference = |count: usize| match kernels {
            1 => 0,
            _ => count - count % kernels,
        };
        let all = (0..commands * kernels).map(|count| [count, reference(count)]);
        Self(
            all.filter(|[count, reference]| count != reference)
                .collect(),
        )
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn confidence(&self) -> f64 {
        1.0 - ALPHA / self.0.len().max(1) as f64
    }

    /// Returns the minimum number of runs of each command with which comparisons can decide.
    pub fn runs_needed(&self) -> usize {
        values_needed(self.confidence(), Looks::once(1))
    }

    /// Compares the counts, which are in the order of [`Pairs::new`] and have equally many runs.
    pub fn compare(&self, counts: &[CommandCount]) -> Vec<CountComparison> {
        let pairs = self.0.iter();
        pairs
            .map(|pair| compare(counts, *pair, self.confidence()))
            .collect()
    }
}

fn compare(
    counts: &[CommandCount],
    [count, reference]: [usize; 2],
    confidence: f64,
) -> CountComparison {
    let [runs, others] = [count, reference].map(|side| counts[side].totals_and_functions());
    let runs = runs.zip(others);
    let (logs, blocks): (Vec<f64>, Vec<Block>) = runs
        .map(|(one, other)| ((one.0 / other.0).ln(), Block::new(one, other)))
        .unzip();
    let logs = hodges_lehmann(&logs, confidence);
    let judged = JudgedRatio::of_logs(&logs, confidence, Better::Lower);
    let interval = |values: &[f64]| hodges_lehmann(values, confidence);
    let may_be_equal = logs.contains(0.0);
    CountComparison {
        count,
        reference,
        ratio: judged.ratio,
        may_decide: judged.may_decide,
        functions: explain_blocks(&blocks, confidence, &interval).filter(|_| !may_be_equal),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use toll_stats::{Decision, Rng};

    use super::super::tests::{command, function};
    use super::super::{CountedRun, Executed, Instructions};
    use super::*;

    /// Counts of commands, given the counts of functions in each run.
    fn of_functions(runs: &[BTreeMap<&str, u64>]) -> CommandCount {
        let run = |functions: &BTreeMap<&str, u64>| {
            let total = functions.values().sum();
            let functions = functions
                .iter()
                .map(|(name, count)| function(name, *count, 1));
            CountedRun {
                executed: Executed {
                    instructions: Instructions {
                        total,
                        user: 0,
                        kernel: total,
                    },
                    functions: functions.collect(),
                },
                ..CountedRun::default()
            }
        };
        let runs: Vec<CountedRun> = runs.iter().map(run).collect();
        CommandCount::new("x".into(), "toll".into(), &runs)
    }

    fn compared(one: CommandCount, other: CommandCount) -> CountComparison {
        Pairs::new(2, 1).compare(&[one, other]).remove(0)
    }

    #[test]
    fn functions_are_listed_until_they_explain_the_difference() {
        let side = |read: u64, fget: u64| -> Vec<BTreeMap<&str, u64>> {
            let tick = [50, 90, 60, 80, 70, 55];
            let run = |(number, tick): (usize, &u64)| {
                let tick = if read > 1000 { 150 - tick } else { *tick };
                let fget = fget + number as u64;
                BTreeMap::from([("read", read), ("fget", fget), ("tick", tick)])
            };
            tick.iter().enumerate().map(run).collect()
        };
        let (old, new) = (of_functions(&side(1000, 0)), of_functions(&side(3000, 500)));
        let found = compared(old.clone(), new);
        let functions = found.functions.as_ref().unwrap();
        let listed: Vec<_> = functions
            .listed
            .iter()
            .map(|one| (one.name.as_str(), one.instructions.value))
            .collect();
        assert_eq!(listed, [("read", 2000.0), ("fget", 500.0)]);
        assert!(functions.explained > 0.98, "{functions:?}");
        assert!(found.ratio.low < found.ratio.high && found.ratio.low > 3.0);
        let same = compared(old.clone(), old);
        assert!(same.may_decide && same.functions.is_none());
        assert_eq!((same.ratio.low, same.ratio.high), (1.0, 1.0));
    }

    #[test]
    fn more_comparisons_need_more_runs_and_too_few_runs_decide_nothing() {
        let needed = |commands, kernels| Pairs::new(commands, kernels).runs_needed();
        assert_eq!([needed(2, 1), needed(3, 1), needed(1, 5)], [6, 7, 8]);
        for (runs, expected) in [(5, Decision::Inconclusive), (6, Decision::Supported)] {
            let side = |total| command("x", "toll", &vec![total; runs]);
            let found = compared(side(100_000), side(101_000));
            assert_eq!(found.judged().regression(0.001), expected);
            assert_eq!(found.functions.is_some(), found.may_decide);
            assert_ne!(found.judged().regression(0.01), Decision::Supported);
        }
    }

    #[test]
    fn commands_that_do_not_differ_are_called_different_at_the_stated_rate() {
        const PAIRS: usize = 4000;
        let mut rng = Rng::new(1);
        let mut normal = |_| (1e6 + 1e4 * rng.normal()) as u64;
        let mut side = || {
            let totals: Vec<u64> = (0..6).map(&mut normal).collect();
            command("x", "toll", &totals)
        };
        let different = (0..PAIRS).filter(|_| compared(side(), side()).functions.is_some());
        // 2⁻⁵ is the level of six pairs; 4 standard errors are 1.1 %.
        let rate = different.count() as f64 / PAIRS as f64;
        assert!((0.02..0.043).contains(&rate), "{rate}");
    }

    #[test]
    fn counts_are_compared_with_the_first_kernel_or_the_first_command() {
        let pairs = |commands, kernels| Pairs::new(commands, kernels).0;
        assert!(Pairs::new(1, 1).is_empty());
        assert_eq!(pairs(3, 1), [[1, 0], [2, 0]]);
        assert_eq!(pairs(1, 3), [[1, 0], [2, 0]]);
        assert_eq!(pairs(2, 2), [[1, 0], [3, 2]]);
    }
}
