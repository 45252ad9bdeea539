//! Which facts explain how machines differ.
//!
//! 1. Each fact is tested for itself, and Holm's procedure guards a claim's tests.
//! 2. Of those found, the one with the smallest p-value explains most.
//! 3. A fact that splits the machines as it does is confounded with it.
//! 4. Other facts found are tested once more among machines that are alike in what
//!    explains so far. What is still found explains, too; what is not is associated.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Moderator, TestStep, holm};

use super::model::FactRole;
use crate::claim::ALPHA;

/// Machines that a level needs, and levels that a fact needs, to be tested.
pub(super) const LEVEL_MACHINES_MIN: usize = 2;
const LEVELS_MIN: usize = 2;
/// Cramér's V from which on two facts split the machines alike. For two levels each, one
/// of 20 machines that is not split alike gives 0.9.
const CONFOUNDED: f64 = 0.9;
/// Of the permutations; any would do, one gives the same report each time.
const SEED: u64 = 22;

/// The level of each machine that tells it.
pub(super) type Levels<'a> = Vec<Option<&'a str>>;

/// What was found of one fact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub role: FactRole,
    pub with: Option<String>,
    pub test: Option<Tested>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tested {
    pub moderator: Moderator,
    pub adjusted_p: f64,
}

/// What was found of each fact, by name. `values` are the machines' in the order of the
/// levels of each fact.
pub(super) fn findings(
    values: &[f64],
    facts: &BTreeMap<&str, Levels>,
) -> BTreeMap<String, Finding> {
    let testable = facts
        .iter()
        .filter_map(|(name, levels)| Some((*name, Split::new(levels, LEVEL_MACHINES_MIN)?)));
    let testable: BTreeMap<&str, Split> = testable.collect();
    let one_stratum = vec![0; values.len()];
    let tested = test_all(values, &testable, &one_stratum);
    let mut findings: BTreeMap<String, Finding> = facts
        .keys()
        .map(|name| {
            let test = tested.iter().find(|one| one.name == *name);
            let role = match test {
                None => FactRole::NotTested,
                Some(_) => FactRole::NoDifference,
            };
            let finding = Finding {
                role,
                with: None,
                test: test.map(|one| one.tested),
            };
            ((*name).to_owned(), finding)
        })
        .collect();
    for (name, role, with) in roles(values, &testable, tested) {
        let finding = findings.get_mut(name).expect("each fact has a finding");
        finding.role = role;
        finding.with = with.map(str::to_owned);
    }
    findings
}

/// A fact that was tested.
struct TestedFact<'a> {
    name: &'a str,
    tested: Tested,
    is_found: bool,
}

/// Every fact, the one that explains most first.
fn test_all<'a>(
    values: &[f64],
    facts: &BTreeMap<&'a str, Split>,
    strata: &[usize],
) -> Vec<TestedFact<'a>> {
    let moderators: Vec<Moderator> = facts
        .values()
        .map(|split| split.test(values, strata))
        .collect();
    let p: Vec<f64> = moderators.iter().map(|moderator| moderator.p).collect();
    let steps: Vec<TestStep> = holm(&p, ALPHA);
    let all = facts.keys().zip(moderators).zip(steps);
    let mut tested: Vec<TestedFact> = all
        .map(|((name, moderator), step)| TestedFact {
            name,
            tested: Tested {
                moderator,
                adjusted_p: step.adjusted_p,
            },
            is_found: step.rejected,
        })
        .collect();
    // Small p-values are equal: no permutation was as extreme.
    tested.sort_by(|a, b| {
        let (a, b) = (&a.tested.moderator, &b.tested.moderator);
        a.p.total_cmp(&b.p)
            .then(b.explained.total_cmp(&a.explained))
    });
    tested
}

/// The facts that explain, are confounded with one that does, or are associated.
fn roles<'a>(
    values: &[f64],
    facts: &BTreeMap<&'a str, Split>,
    tested: Vec<TestedFact<'a>>,
) -> Vec<(&'a str, FactRole, Option<&'a str>)> {
    let is_found = |one: &&TestedFact| one.is_found;
    let candidates: BTreeSet<&str> = tested.iter().filter(is_found).map(|one| one.name).collect();
    let mut roles = Vec::new();
    let mut explaining = Vec::new();
    let mut left: BTreeMap<&str, Split> = facts.clone();
    let mut strata = vec![0; values.len()];
    let mut tested = tested;
    while let Some(first) = tested.iter().find(is_found) {
        let name = first.name;
        explaining.push(name);
        roles.push((name, FactRole::Explains, None));
        left.retain(|other, split| {
            let is_confounded = *other != name && split.is_confounded(&facts[name]);
            if is_confounded {
                roles.push((*other, FactRole::Confounded, Some(name)));
            }
            *other != name && !is_confounded
        });
        strata = refine(&strata, &facts[name].levels);
        let again = left.iter().filter(|(name, _)| candidates.contains(*name));
        let again = again.map(|(name, split)| (*name, split.clone()));
        tested = test_all(values, &again.collect(), &strata);
    }
    let associated = left.keys().filter(|name| candidates.contains(*name));
    roles.extend(associated.map(|name| (*name, FactRole::Associated, explaining.first().copied())));
    roles
}

/// Strata whose machines are alike in one more fact. Those that do not tell it are alike.
fn refine(strata: &[usize], levels: &[Option<usize>]) -> Vec<usize> {
    let pairs = || strata.iter().zip(levels);
    let all: BTreeSet<(&usize, &Option<usize>)> = pairs().collect();
    let number = |pair| all.iter().position(|one| *one == pair);
    pairs()
        .map(|pair| number(pair).expect("each pair is among all"))
        .collect()
}

/// Machines that are alike in some facts have one number.
pub(super) fn strata<'a>(
    machines: usize,
    facts: impl Iterator<Item = &'a Levels<'a>>,
) -> Vec<usize> {
    let mut strata = vec![0; machines];
    for levels in facts {
        if let Some(split) = Split::new(levels, 1) {
            strata = refine(&strata, &split.levels);
        }
    }
    strata
}

/// Whether two levels of a fact have two machines each.
pub(super) fn is_testable(fact: &str, facts: &BTreeMap<&str, Levels>) -> bool {
    let levels = facts.get(fact);
    levels.is_some_and(|levels| Split::new(levels, LEVEL_MACHINES_MIN).is_some())
}

/// The facts that split the machines as one fact does. Levels of fewer machines than
/// `machines_min` do not count.
pub(super) fn confounded_with<'a>(
    fact: &str,
    facts: &BTreeMap<&'a str, Levels>,
    machines_min: usize,
) -> Vec<&'a str> {
    let split = |name: &str| Split::new(facts.get(name)?, machines_min);
    let Some(own) = split(fact) else {
        return Vec::new();
    };
    let others = facts.keys().filter(|name| **name != fact);
    let is_confounded = |name: &&&str| split(name).is_some_and(|one| one.is_confounded(&own));
    others.filter(is_confounded).copied().collect()
}

/// How a fact splits the machines: into its levels that have enough machines.
#[derive(Debug, Clone)]
struct Split {
    /// The level of each machine by number; none of a machine whose level has too few.
    levels: Vec<Option<usize>>,
}

impl Split {
    /// `None` if fewer than two levels have so many machines.
    fn new(levels: &Levels, machines_min: usize) -> Option<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for level in levels.iter().flatten() {
            *counts.entry(level).or_default() += 1;
        }
        counts.retain(|_, count| *count >= machines_min);
        let names: Vec<&str> = counts.into_keys().collect();
        let number = |level: &Option<&str>| {
            let level = (*level)?;
            names.iter().position(|name| *name == level)
        };
        (names.len() >= LEVELS_MIN).then(|| Self {
            levels: levels.iter().map(number).collect(),
        })
    }

    fn test(&self, values: &[f64], strata: &[usize]) -> Moderator {
        let machines = || (0..values.len()).filter(|at| self.levels[*at].is_some());
        let values: Vec<f64> = machines().map(|at| values[at]).collect();
        let levels: Vec<usize> = self.levels.iter().flatten().copied().collect();
        let strata: Vec<usize> = machines().map(|at| strata[at]).collect();
        Moderator::test(&values, &levels, &strata, SEED)
    }

    /// Whether each level of one lies in one level of the other, or nearly: Cramér's V is
    /// 0.9 or more (Cramér, "Mathematical methods of statistics" (1946), section 21.9).
    fn is_confounded(&self, with: &Self) -> bool {
        let pairs = self.levels.iter().zip(&with.levels);
        let mut cells: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (own, other) in pairs {
            if let (Some(own), Some(other)) = (own, other) {
                *cells.entry((*own, *other)).or_default() += 1.0;
            }
        }
        let mut rows: BTreeMap<usize, f64> = BTreeMap::new();
        let mut columns: BTreeMap<usize, f64> = BTreeMap::new();
        for ((row, column), count) in &cells {
            *rows.entry(*row).or_default() += count;
            *columns.entry(*column).or_default() += count;
        }
        if rows.len() < LEVELS_MIN || columns.len() < LEVELS_MIN {
            return false;
        }
        // A cell for each level, so each has one alone.
        let is_nested = cells.len() == rows.len().max(columns.len());
        let share = |((row, column), count): (&(usize, usize), &f64)| {
            count * count / (rows[row] * columns[column])
        };
        // Chi-squared over the number of machines.
        let contingency = cells.iter().map(share).sum::<f64>() - 1.0;
        let freedom = rows.len().min(columns.len()) as f64 - 1.0;
        is_nested || (contingency / freedom).sqrt() >= CONFOUNDED
    }
}
