//! Reports on many machines: on how many of them each claim holds, where their values lie,
//! and which facts explain how they differ. Only the verdicts of each machine's runs are
//! used.

mod difference;
mod explain;
mod facts;
pub mod model;
mod pooling;
mod sentence;

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::RandomEffects;

use crate::claim::CONFIDENCE;
use crate::claim::model::{Estimate, Outcome};
use crate::spec::Platform;
use explain::{Finding, Levels};
pub use facts::facts_of;
use model::{
    FactLevel, FleetClaim, FleetFact, FleetMachine, FleetReport, FleetVerdict, MachineFacts,
    MachineOutcome, OutcomeCounts, PooledEstimate,
};
use pooling::Pooling;

/// Combines the verdicts of machines. Each machine judges a claim at most once.
pub fn report(machines: &[FleetMachine]) -> FleetReport {
    // Values in different units, or of different quantities, belong to different claims.
    let mut claims: BTreeMap<[&str; 3], Vec<Judged>> = BTreeMap::new();
    for machine in machines {
        for verdict in &machine.verdicts {
            let key = [&verdict.claim, &verdict.quantity, &verdict.unit].map(String::as_str);
            let judged = Judged { machine, verdict };
            claims.entry(key).or_default().push(judged);
        }
    }
    let mut platforms: Vec<&Platform> = Vec::new();
    for platform in machines.iter().flat_map(|machine| &machine.platforms) {
        if !platforms.contains(&platform) {
            platforms.push(platform);
        }
    }
    let facts = machines.iter().map(|machine| MachineFacts {
        id: machine.id.clone(),
        facts: machine.facts.clone(),
    });
    FleetReport {
        machines: facts.collect(),
        claims: claims
            .values()
            .map(|judged| claim(judged, &platforms))
            .collect(),
        published_platforms: platforms.into_iter().cloned().collect(),
    }
}

/// A verdict on one claim, with its machine.
#[derive(Clone, Copy)]
struct Judged<'a> {
    machine: &'a FleetMachine,
    verdict: &'a FleetVerdict,
}

fn claim(judged: &[Judged], platforms: &[&Platform]) -> FleetClaim {
    let verdict = judged[0].verdict;
    let differ_by = verdict.differ_by.as_deref();
    let measured = judged.iter().map(|one| one.verdict.measured);
    // A value that is not above 0 cannot differ by a factor.
    let has_factor = |one: &Estimate| differ_by.is_none() || one.low > 0.0;
    let estimates: Vec<Option<Estimate>> = measured.map(|one| one.filter(has_factor)).collect();
    let pooling = Pooling::new(&estimates, verdict.unit.is_empty() || differ_by.is_some());
    let effects = pooling.all();
    let outlying: Vec<usize> = effects
        .iter()
        .flat_map(|all| &all.outlying)
        .copied()
        .collect();
    let outlying: Vec<usize> = outlying.iter().map(|at| pooling.machines[*at]).collect();
    let levels = levels(judged, &pooling);
    let facts = facts(judged, &pooling, &levels);
    let difference = difference::difference(verdict, &pooling, &levels, &facts);
    let published = differ_by.map(|fact| difference::published(&verdict.claim, fact, platforms));
    let counts = counts(judged);
    let machines = judged
        .iter()
        .enumerate()
        .map(|(index, one)| MachineOutcome {
            machine: one.machine.id.clone(),
            outcome: one.verdict.outcome,
            measured: one.verdict.measured,
            is_outlying: outlying.contains(&index),
        });
    FleetClaim {
        claim: verdict.claim.clone(),
        text: verdict.text.clone(),
        report: verdict.report.clone(),
        quantity: verdict.quantity.clone(),
        unit: verdict.unit.clone(),
        threshold: verdict.threshold,
        machines: machines.collect(),
        counts,
        pooled: effects.map(|effects| pooled(judged, &pooling, &effects, &outlying)),
        sentence: match &difference {
            Some(difference) => difference::sentence(verdict, difference),
            None => sentence::sentence(&counts, &facts),
        },
        facts,
        difference,
        published: published.unwrap_or_default(),
    }
}

fn counts(judged: &[Judged]) -> OutcomeCounts {
    let mut counts = OutcomeCounts::default();
    for one in judged {
        let count = match one.verdict.outcome {
            Outcome::Supported => &mut counts.supported,
            Outcome::Refuted => &mut counts.refuted,
            Outcome::Undecided => &mut counts.undecided,
            Outcome::NotTestable => &mut counts.not_testable,
        };
        *count += 1;
    }
    counts
}

fn pooled(
    judged: &[Judged],
    pooling: &Pooling,
    effects: &RandomEffects,
    outlying: &[usize],
) -> PooledEstimate {
    let names = outlying.iter().map(|at| judged[*at].machine.id.clone());
    PooledEstimate {
        scale: pooling.scale,
        machines: pooling.machines.len(),
        mean: pooling.estimate(&effects.confidence_interval(CONFIDENCE)),
        prediction: pooling.estimate(&effects.prediction_interval(CONFIDENCE)),
        between_deviation: effects.between_variance.sqrt(),
        outlying: names.collect(),
    }
}

/// Returns, for every fact that is known of at least one machine, the level of each machine that
/// has a value.
fn levels<'a>(judged: &[Judged<'a>], pooling: &Pooling) -> BTreeMap<&'a str, Levels<'a>> {
    let names = judged.iter().flat_map(|one| one.machine.facts.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let level = |machine: usize, name: &str| {
        let level = judged[machine].machine.facts.get(name)?;
        Some(level.as_str())
    };
    let levels = |name: &str| {
        let measured = pooling.machines.iter();
        measured.map(|machine| level(*machine, name)).collect()
    };
    names.iter().map(|name| (*name, levels(name))).collect()
}

fn facts(judged: &[Judged], pooling: &Pooling, levels: &BTreeMap<&str, Levels>) -> Vec<FleetFact> {
    let findings = explain::findings(&pooling.values, levels);
    let fact = |(name, finding): (String, Finding)| FleetFact {
        role: finding.role,
        with: finding.with,
        p: finding.test.map(|test| test.moderator.p),
        p_adjusted: finding.test.map(|test| test.adjusted_p),
        explained: finding.test.map(|test| test.moderator.explained),
        levels: fact_levels(judged, pooling, &name),
        name,
    };
    findings.into_iter().map(fact).collect()
}

fn fact_levels(judged: &[Judged], pooling: &Pooling, name: &str) -> Vec<FactLevel> {
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, one) in judged.iter().enumerate() {
        if let Some(level) = one.machine.facts.get(name) {
            members.entry(level).or_default().push(index);
        }
    }
    let is_supported = |index: &&usize| judged[**index].verdict.outcome == Outcome::Supported;
    let level = |(level, machines): (&str, Vec<usize>)| FactLevel {
        level: level.to_owned(),
        machines: machines.len(),
        supported: machines.iter().filter(is_supported).count(),
        mean: pooling.mean_of(&machines),
    };
    members.into_iter().map(level).collect()
}

#[cfg(test)]
mod tests;
