//! Which facts explain how machines differ.
//!
//! 1. Each fact is tested on its own; Holm's procedure bounds the error of a claim's tests.
//! 2. Of the significant facts, the one with the smallest p-value explains most.
//! 3. A fact that splits the machines in the same way is confounded with it.
//! 4. The other significant facts are tested again among machines that are alike in the explaining
//!    facts so far. Facts that are still significant also explain; the others are only associated.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Moderator, TestStep, holm};

use super::model::FactRole;
use crate::claim::ALPHA;

/// Minimum number of machines of a level, and of levels of a fact, for a test.
pub(super) const LEVEL_MACHINES_MIN: usize = 2;
const LEVELS_MIN: usize = 2;
/// Cramér's V from which two facts count as splitting the machines alike. If both facts have two
/// levels, V is 0.9 if one of 20 machines is split differently.
const CONFOUNDED: f64 = 0.9;
/// Seed of the permutations. Any seed would do; a fixed one gives the same report each time.
const SEED: u64 = 22;

/// The level of each machine; `None` if the level is not known.
pub(super) type Levels<'a> = Vec<Option<&'a str>>;

/// What was found about one fact.
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

/// Returns what was found about each fact, by name. `values` has one value per machine, in
/// the order of each fact's levels.
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

/// Tests every fact; the one that explains most comes first.
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
    // The smallest p-values are equal: no permutation was as extreme.
    tested.sort_by(|a, b| {
        let (a, b) = (&a.tested.moderator, &b.tested.moderator);
        a.p.total_cmp(&b.p)
            .then(b.explained.total_cmp(&a.explained))
    });
    tested
}

/// Returns the facts that explain, are confounded with an explaining fact, or are associated.
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

/// Splits strata so that the machines of each are alike in one more fact. Machines for which this
/// fact is unknown count as alike.
fn refine(strata: &[usize], levels: &[Option<usize>]) -> Vec<usize> {
    let pairs = || strata.iter().zip(levels);
    let all: BTreeSet<(&usize, &Option<usize>)> = pairs().collect();
    let number = |pair| all.iter().position(|one| *one == pair);
    pairs()
        .map(|pair| number(pair).expect("each pair is among all"))
        .collect()
}

/// Returns a number for each machine. Machines that are alike in some facts have the same number.
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

/// Whether at least two levels of a fact have two machines each.
pub(super) fn is_testable(fact: &str, facts: &BTreeMap<&str, Levels>) -> bool {
    let levels = facts.get(fact);
    levels.is_some_and(|levels| Split::new(levels, LEVEL_MACHINES_MIN).is_some())
}

/// Returns the facts that split the machines as one fact does. Levels of fewer machines
/// than `machines_min` do not count.
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

/// The division of the machines by a fact into the levels that have enough machines.
#[derive(Debug, Clone)]
struct Split {
    /// The number of each machine's level; `None` if that level has too few machines.
    levels: Vec<Option<usize>>,
}

impl Split {
    /// Splits the machines by their levels; `None` if fewer than two levels have `machines_min`
    /// machines.
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

    /// Whether these machines cannot tell the two facts apart. Either each level of one fact lies
    /// within one level of the other, or Cramér's V is 0.9 or more (Cramér, "Mathematical methods
    /// of statistics" (1946), section 21.9).
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
        // There are as many cells as levels, so each level has only one.
        let is_nested = cells.len() == rows.len().max(columns.len());
        let share = |((row, column), count): (&(usize, usize), &f64)| {
            count * count / (rows[row] * columns[column])
        };
        // Chi-squared divided by the number of machines.
        let contingency = cells.iter().map(share).sum::<f64>() - 1.0;
        let freedom = rows.len().min(columns.len()) as f64 - 1.0;
        is_nested || (contingency / freedom).sqrt() >= CONFOUNDED
    }
}
