//! Whether machines differ by a fact as a claim says, and whether published platforms
//! could have shown it.
//!
//! Levels of the fact are compared among machines that are alike in the other explaining facts. The
//! intervals of all these comparisons hold simultaneously. A claim is supported if the fact
//! explains the values and one interval lies beyond the claimed factor. A claim is refuted if all
//! intervals lie below that factor. If another fact splits the machines in the same way, the claim
//! is neither supported nor refuted.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::{Interval, Welch};

use super::explain::{self, LEVEL_MACHINES_MIN, Levels};
use super::model::{FactRole, FleetDifference, FleetFact, FleetVerdict, LevelRatio};
use super::pooling::Pooling;
use super::sentence::list;
use crate::claim::model::{ClaimDirection, Outcome};
use crate::claim::{ALPHA, CONFIDENCE};
use crate::format;
use crate::spec::{KERNEL, Platform};

/// Minimum number of machines of a level in a comparison; with fewer, the interval does not hold.
const COMPARED_MIN: usize = 3;

/// Comparison of two levels, on a logarithmic scale.
struct Comparison<'a> {
    of: &'a str,
    to: &'a str,
    ratio: Interval,
}

/// Judges a claim on how machines differ; returns `None` for any other claim.
pub(super) fn difference(
    verdict: &FleetVerdict,
    pooling: &Pooling,
    levels: &BTreeMap<&str, Levels>,
    facts: &[FleetFact],
) -> Option<FleetDifference> {
    let fact = verdict.differ_by.as_deref()?;
    let explaining = facts.iter().filter(|one| one.role == FactRole::Explains);
    let explaining: Vec<&str> = explaining.map(|one| one.name.as_str()).collect();
    let others = explaining.iter().filter(|name| **name != fact);
    let alike_in: Vec<&str> = others.copied().collect();
    let strata = explain::strata(
        pooling.values.len(),
        alike_in.iter().map(|name| &levels[name]),
    );
    let unknown = vec![None; pooling.values.len()];
    let own = levels.get(fact).unwrap_or(&unknown);
    let comparisons = comparisons(&pooling.values, own, &strata, verdict);
    let confounded_with = explain::confounded_with(fact, levels, LEVEL_MACHINES_MIN);
    let bound = verdict.threshold.ln();
    let explains = explaining.contains(&fact);
    let by = |key: fn(&Interval) -> f64| {
        let largest = |a: &&Comparison, b: &&Comparison| key(&a.ratio).total_cmp(&key(&b.ratio));
        comparisons.iter().max_by(largest)
    };
    let (lowest, highest) = (by(|ratio| ratio.low), by(|ratio| ratio.high));
    let is_beyond = lowest.is_some_and(|one| one.ratio.low > bound);
    let is_below = highest.is_some_and(|one| one.ratio.high < bound) && is_complete(&comparisons);
    let (outcome, shown) = match (is_beyond, is_below, confounded_with.is_empty()) {
        _ if pooling.values.is_empty() => (Outcome::NotTestable, None),
        (true, _, true) if explains => (Outcome::Supported, lowest),
        (true, ..) => (Outcome::Undecided, lowest),
        (_, true, true) => (Outcome::Refuted, highest),
        _ => (Outcome::Undecided, by(|ratio| ratio.estimate)),
    };
    let level_ratio = |one: &Comparison| LevelRatio {
        of: one.of.to_owned(),
        to: one.to.to_owned(),
        ratio: pooling.estimate(&one.ratio),
    };
    Some(FleetDifference {
        fact: fact.to_owned(),
        outcome,
        levels: shown.map(level_ratio),
        alike_in: alike_in.into_iter().map(str::to_owned).collect(),
        confounded_with: confounded_with.into_iter().map(str::to_owned).collect(),
    })
}

/// Whether every two of the compared levels are compared with each other. Since the
/// machines must be alike in other facts, two levels may have no comparison.
fn is_complete(comparisons: &[Comparison]) -> bool {
    let pairs = comparisons
        .iter()
        .map(|one| (one.of.min(one.to), one.of.max(one.to)));
    let pairs: BTreeSet<(&str, &str)> = pairs.collect();
    let levels: BTreeSet<&str> = comparisons
        .iter()
        .flat_map(|one| [one.of, one.to])
        .collect();
    pairs.len() == levels.len() * levels.len().saturating_sub(1) / 2
}

/// Compares all levels of a fact with each other, in the claim's direction or, if it names none, in
/// both.
fn comparisons<'a>(
    values: &[f64],
    levels: &[Option<&'a str>],
    strata: &[usize],
    verdict: &FleetVerdict,
) -> Vec<Comparison<'a>> {
    let mut groups: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
    for ((value, level), stratum) in values.iter().zip(levels).zip(strata) {
        if let Some(level) = level {
            groups.entry((*stratum, level)).or_default().push(*value);
        }
    }
    groups.retain(|_, values| values.len() >= COMPARED_MIN);
    let is_ordered = verdict.differ_by.as_deref() == Some(KERNEL);
    let mut found = Vec::new();
    for ((stratum, of), numerator) in &groups {
        for ((other, to), denominator) in &groups {
            let is_claimed = match (is_ordered, verdict.direction) {
                (false, _) => of != to,
                (true, ClaimDirection::Less) => version(of) > version(to),
                (true, _) => version(of) < version(to),
            };
            if is_claimed && stratum == other {
                found.push((*of, *to, Welch::of_few(denominator, numerator)));
            }
        }
    }
    // The two directions of a comparison share one interval.
    let intervals = found.len() / if is_ordered { 1 } else { 2 };
    let confidence = 1.0 - ALPHA / intervals.max(1) as f64;
    let comparison = |(of, to, welch): (&'a str, &'a str, Welch)| Comparison {
        of,
        to,
        ratio: Interval {
            confidence: CONFIDENCE,
            ..welch.interval(confidence)
        },
    };
    found.into_iter().map(comparison).collect()
}

/// Splits a release into numbers, which order releases: 6.12 comes after 6.8.
fn version(release: &str) -> Vec<u64> {
    release
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// Returns the result in words, such as `supported: xfs over ext4 is 30.1 [25.2, 35.9],
/// beyond the claimed 2`.
pub(super) fn sentence(verdict: &FleetVerdict, difference: &FleetDifference) -> String {
    let FleetDifference {
        fact,
        alike_in,
        confounded_with,
        ..
    } = difference;
    let words = |names: &[String], last| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        list(&names, last)
    };
    let alike = if alike_in.is_empty() {
        String::new()
    } else {
        format!("among machines alike in {}, ", words(alike_in, "and"))
    };
    let claimed = verdict.threshold;
    let measured = |one: &LevelRatio| {
        let ratio = format::ratio_interval(&one.ratio);
        format!("{} over {} is {ratio}", one.of, one.to)
    };
    let is_beyond = |one: &LevelRatio| one.ratio.low > verdict.threshold;
    let is_beyond = difference.levels.as_ref().is_some_and(is_beyond);
    let measured = difference.levels.as_ref().map(measured);
    match (difference.outcome, measured) {
        (Outcome::NotTestable, _) => {
            "not testable: no machine has a value with an interval".to_owned()
        }
        (_, _) if !confounded_with.is_empty() => format!(
            "undecided: on these machines {fact} cannot be told from {}",
            words(confounded_with, "or")
        ),
        (_, None) => {
            format!("undecided: {alike}no two levels of {fact} have {COMPARED_MIN} machines each")
        }
        (Outcome::Supported, Some(measured)) => {
            format!("supported: {alike}{measured}, beyond the claimed {claimed}")
        }
        (Outcome::Refuted, Some(measured)) => {
            format!("refuted: {alike}{measured} at most, below the claimed {claimed}")
        }
        (Outcome::Undecided, Some(measured)) if is_beyond => {
            format!("undecided: {alike}{measured}, but with so few machines this may be chance")
        }
        (Outcome::Undecided, Some(measured)) => {
            format!(
                "undecided: {alike}{measured}, which may be above or below the claimed {claimed}"
            )
        }
    }
}

/// Returns, for each publication that draws a conclusion about platforms from a claim, whether its
/// platforms can show that machines differ by a fact.
pub(super) fn published(claim: &str, fact: &str, platforms: &[&Platform]) -> Vec<String> {
    let concerned = platforms
        .iter()
        .filter(|one| one.concluded.contains_key(claim));
    let mut reports: BTreeMap<&str, Vec<&Platform>> = BTreeMap::new();
    for platform in concerned {
        reports.entry(&platform.report).or_default().push(platform);
    }
    let describe = |(report, platforms): (&str, Vec<&Platform>)| {
        let count = platforms.len();
        match obstacles(fact, &platforms).as_slice() {
            [] => format!("{report} describes {count} platforms"),
            why => format!(
                "the {count} platforms of {report} cannot show a difference: {}",
                why.join(", and ")
            ),
        }
    };
    reports.into_iter().map(describe).collect()
}

/// Applies the rules for machines to platforms: returns why they cannot show that machines differ
/// by a fact. Few platforms share a level, so every level counts.
fn obstacles(fact: &str, platforms: &[&Platform]) -> Vec<String> {
    let names = platforms.iter().flat_map(|one| one.facts.keys());
    let level = |platform: usize, name: &str| {
        let level = platforms[platform].facts.get(name)?;
        Some(level.as_str())
    };
    let levels = |name| (0..platforms.len()).map(|one| level(one, name)).collect();
    let levels: BTreeMap<&str, Levels> = names.map(|name| (name.as_str(), levels(name))).collect();
    let confounded = explain::confounded_with(fact, &levels, 1);
    let few = format!("fewer than two levels of {fact} have {LEVEL_MACHINES_MIN} platforms each");
    let alike = format!(
        "{fact} cannot be told from {}",
        list(&confounded, "or from")
    );
    let found = [
        (!explain::is_testable(fact, &levels), few),
        (!confounded.is_empty(), alike),
    ];
    let found = found.into_iter().filter(|(is_there, _)| *is_there);
    found.map(|(_, why)| why).collect()
}
