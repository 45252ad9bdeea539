//! Compares commands or kernels, by function.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CommandCount, has_several_kernels};
use crate::explain::parts::keep_until_explained;

/// Difference between a count and its reference, for the median runs. The ends bound the difference
/// between any two runs of the sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub instructions: i64,
    pub low: i64,
    pub high: i64,
}

impl Difference {
    /// Takes, for each side, the count of the median run, followed by the smallest and the largest
    /// count.
    fn new(one: (u64, [u64; 2]), reference: (u64, [u64; 2])) -> Self {
        let less = |a: u64, b: u64| a.cast_signed() - b.cast_signed();
        Self {
            instructions: less(one.0, reference.0),
            low: less(one.1[0], reference.1[1]),
            high: less(one.1[1], reference.1[0]),
        }
    }

    /// Whether all runs of one side exceed all runs of the other by more than the runs of both
    /// sides differ among themselves. The width of the interval is the sum of both ranges.
    fn is_told_from_variation(&self) -> bool {
        let width = self.high - self.low;
        self.low > width || self.high < -width
    }
}

/// A function whose count differs between the sides by more than the runs of either vary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferingFunction {
    pub name: String,
    #[serde(flatten)]
    pub difference: Difference,
}

/// A count compared with another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountComparison {
    /// Index of the count.
    pub count: usize,
    /// Index of the reference with which the count is compared.
    pub reference: usize,
    #[serde(flatten)]
    pub difference: Difference,
    /// Functions that differ, the largest first. The differing functions that are not listed
    /// have less than 1 % of the difference.
    pub functions: Vec<DifferingFunction>,
    /// The part of the difference that the functions do not explain.
    pub rest: i64,
    /// Share of the difference that the functions explain; absent if there is no difference.
    pub explained: Option<f64>,
}

/// Compares each count with its reference: with several kernels, the same command under
/// the first kernel; with one kernel, the first command. References are not compared with
/// anything.
pub fn comparisons(counts: &[CommandCount]) -> Vec<CountComparison> {
    let has_kernels = has_several_kernels(counts);
    let reference = |one: &CommandCount| {
        if has_kernels {
            counts
                .iter()
                .position(|other| other.command == one.command)
                .unwrap_or_default()
        } else {
            0
        }
    };
    let pairs = counts.iter().map(reference).enumerate();
    pairs
        .filter(|(count, reference)| count != reference)
        .map(|(count, reference)| compare(counts, count, reference))
        .collect()
}

fn compare(counts: &[CommandCount], count: usize, reference: usize) -> CountComparison {
    let (one, other) = (&counts[count], &counts[reference]);
    let totals = |side: &CommandCount| (side.instructions.total, side.ends());
    let difference = Difference::new(totals(one), totals(other));
    let mut functions = differing(one, other);
    let size = |one: &DifferingFunction| one.difference.instructions.unsigned_abs() as f64;
    let whole = difference.instructions.unsigned_abs() as f64;
    keep_until_explained(&mut functions, size, whole);
    let named = functions.iter().map(|one| one.difference.instructions);
    let rest = difference.instructions - named.sum::<i64>();
    CountComparison {
        count,
        reference,
        difference,
        functions,
        rest,
        explained: (whole > 0.0).then(|| 1.0 - rest.unsigned_abs() as f64 / whole),
    }
}

fn differing(one: &CommandCount, other: &CommandCount) -> Vec<DifferingFunction> {
    let middle = |side: &CommandCount| -> BTreeMap<String, u64> {
        let functions = side.functions.iter();
        functions
            .map(|one| (one.name.clone(), one.instructions))
            .collect()
    };
    let (middle, other_middle) = (middle(one), middle(other));
    let sides = [(one, &middle), (other, &other_middle)];
    let mut names: Vec<&String> = sides.iter().flat_map(|(_, middle)| middle.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let difference = |name: &String| {
        let [one, other] = sides.map(|(side, middle)| {
            let count = middle.get(name).copied().unwrap_or_default();
            (count, side.range_of(name))
        });
        Difference::new(one, other)
    };
    let all = names.into_iter().map(|name| DifferingFunction {
        name: name.clone(),
        difference: difference(name),
    });
    all.filter(|one| one.difference.is_told_from_variation())
        .collect()
}

#[cfg(test)]
mod tests {
    use toll_stats::Rng;

    use super::super::tests::{command, function};
    use super::super::{CountedRun, Executed, Instructions};
    use super::*;

    /// Runs, each with the counts of its functions.
    fn of_functions(kernel: &str, runs: &[&[(&str, u64)]]) -> CommandCount {
        let run = |functions: &&[(&str, u64)]| {
            let total = functions.iter().map(|(_, count)| count).sum();
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
        CommandCount::new("x".into(), kernel.into(), runs.iter().map(run).collect())
    }

    #[test]
    fn functions_are_listed_that_no_variation_explains_until_they_are_the_difference() {
        let old = of_functions(
            "toll",
            &[
                &[("read", 1000), ("tick", 50)],
                &[("read", 1000), ("tick", 90)],
            ],
        );
        let new = of_functions(
            "mine",
            &[
                &[("read", 3000), ("fget", 500), ("little", 5), ("tick", 80)],
                &[("read", 3001), ("fget", 500), ("little", 5), ("tick", 60)],
            ],
        );
        let [compared] = &comparisons(&[old.clone(), new])[..] else {
            panic!("one is compared");
        };
        let listed: Vec<_> = compared
            .functions
            .iter()
            .map(|one| (one.name.as_str(), one.difference))
            .collect();
        let difference = |instructions, low, high| Difference {
            instructions,
            low,
            high,
        };
        let expected = [
            ("read", difference(2001, 2000, 2001)),
            ("fget", difference(500, 500, 500)),
        ];
        assert_eq!(listed, expected);
        assert_eq!(compared.rest, compared.difference.instructions - 2501);
        assert!(compared.explained.unwrap() > 0.98, "{compared:?}");
        let same = CommandCount {
            kernel: "same".into(),
            ..old.clone()
        };
        let compared = &comparisons(&[old, same])[0];
        assert!(compared.functions.is_empty() && compared.explained.is_none());
    }

    #[test]
    fn what_varies_as_much_as_it_differs_is_not_listed() {
        let difference = |low, high| Difference {
            instructions: low,
            low,
            high,
        };
        let is_told = |low, high| difference(low, high).is_told_from_variation();
        assert!(is_told(1, 1) && is_told(-1, -1) && !is_told(0, 0));
        assert!(is_told(31, 60) && !is_told(30, 60));
        assert!(is_told(-60, -31) && !is_told(-60, -30) && !is_told(-1, 60));
    }

    /// Returns the share of 20,000 lists, of this many runs per side, that contain a function
    /// that does not differ.
    fn listed_by_chance(runs: usize, mut count: impl FnMut(&mut Rng) -> u64) -> f64 {
        const LISTS: usize = 20_000;
        let mut rng = Rng::new(1);
        let mut side = || {
            let counts: Vec<u64> = (0..runs).map(|_| count(&mut rng)).collect();
            let ends = [counts.iter().min(), counts.iter().max()];
            (counts[0], ends.map(|end| *end.unwrap()))
        };
        let listed =
            (0..LISTS).filter(|_| Difference::new(side(), side()).is_told_from_variation());
        listed.count() as f64 / LISTS as f64
    }

    #[test]
    fn a_function_that_varies_and_does_not_differ_is_hardly_listed() {
        let normal = |rng: &mut Rng| (1e6 + 1e4 * rng.normal()) as u64;
        let one_of_two = |rng: &mut Rng| 1000 + 30 * rng.below(2) as u64;
        // docs/METHODOLOGY.md has the rates: 6.5 and 12 % of lists, 0.3 and 3 %.
        for (runs, counts_normal, counts_two) in [(2, 0.07, 0.13), (3, 0.004, 0.035)] {
            let (normal, two) = (
                listed_by_chance(runs, normal),
                listed_by_chance(runs, one_of_two),
            );
            assert!(normal < counts_normal, "{runs} runs: {normal}");
            assert!(two < counts_two, "{runs} runs: {two}");
        }
    }

    #[test]
    fn counts_are_compared_with_the_first_kernel_or_the_first_command() {
        let compared = |sides: &[(&str, &str)]| -> Vec<[String; 2]> {
            let counts = sides
                .iter()
                .map(|(name, kernel)| command(name, kernel, &[1]));
            let counts: Vec<CommandCount> = counts.collect();
            let labels = super::super::labels(&counts);
            let pairs = comparisons(&counts).into_iter();
            pairs
                .map(|one| [one.count, one.reference].map(|index| labels[index].clone()))
                .collect()
        };
        assert!(compared(&[]).is_empty() && compared(&[("a", "toll")]).is_empty());
        let commands = [("a", "toll"), ("a", "toll"), ("b", "toll")];
        assert_eq!(compared(&commands), [["a", "a"], ["b", "a"]]);
        let kernels = [("a", "toll"), ("a", "mine"), ("b", "toll"), ("b", "mine")];
        let expected = [["a on mine", "a on toll"], ["b on mine", "b on toll"]];
        assert_eq!(compared(&kernels), expected);
    }
}
