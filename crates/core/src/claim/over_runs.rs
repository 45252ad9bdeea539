//! Multiplies the evidence of comparable runs.
//!
//! Each run's trials are new, so the product of its e-values with those of earlier runs is
//! an e-value again, even if the earlier ones were the reason to run again.

use std::collections::{BTreeMap, BTreeSet};

use toll_stats::benjamini_hochberg;

use super::context::AnalysisContext;
use super::model::{ClaimOverRuns, EValues, ErrorRate, ExcludedRuns, Outcome, OverRuns};
use super::work::{different_work, differing};
use super::{ALPHA, guest, verdict};
use crate::format;
use crate::plan::Treatment;
use crate::run::{RunRecord, StoredRun};

/// A run whose evidence is multiplied with that of other runs, which are added one by one.
///
/// All runs of the experiment must be added: choosing among them by their results makes the method
/// invalid.
#[derive(Debug, Clone)]
pub struct Multiplied<'a> {
    run: &'a StoredRun,
    /// Identities of all runs that were added.
    seen: BTreeSet<String>,
    runs: Vec<i64>,
    excluded: BTreeMap<String, Vec<i64>>,
    claims: Vec<ClaimOverRuns>,
}

impl<'a> Multiplied<'a> {
    pub fn new(run: &'a StoredRun) -> Self {
        let claims = run.experiment.claim_family();
        let claims = claims.map(|claim| ClaimOverRuns {
            id: claim.id.clone(),
            runs: 0,
            e_values: None,
            needed: None,
            outcome: Outcome::NotTestable,
            error_rate: None,
        });
        let mut multiplied = Self {
            run,
            seen: BTreeSet::new(),
            runs: Vec::new(),
            excluded: BTreeMap::new(),
            claims: claims.collect(),
        };
        multiplied.add(run);
        multiplied
    }

    /// Adds a run of the same experiment. Excludes the run if its machine, kernel or workload
    /// differs. An unfinished run adds the evidence of its trials so far.
    pub fn add(&mut self, other: &StoredRun) {
        if !self.seen.insert(other.run.uid.clone()) {
            return;
        }
        if let Some(what) = difference(self.run, other) {
            return self.exclude(other.run.id, &format!("{what} differs"));
        }
        self.runs.push(other.run.id);
        for (claim, further) in self.claims.iter_mut().zip(e_values(other)) {
            claim.runs += usize::from(further.is_some());
            claim.e_values = match (claim.e_values, further) {
                (Some(known), Some(further)) => Some(known.times(further)),
                (known, further) => known.or(further),
            };
        }
    }

    /// Excludes a run, with the reason in a few words.
    pub fn exclude(&mut self, id: i64, reason: &str) {
        let runs = self.excluded.entry(reason.to_owned()).or_default();
        runs.push(id);
    }

    /// Judges all claims with evidence together, by the procedure of Wang and Ramdas ("False
    /// discovery rate control with e-values", JRSS B 84 (2022)). It is the procedure of Benjamini
    /// and Hochberg, applied to the inverses of e-values. Only one of a claim's two e-values, that
    /// for the wrong side, can cause an error, so each claim counts once. Whatever the dependence
    /// between claims, at most 5 % of the verdicts are wrong on average. A verdict is family-wise
    /// if its e-value reaches the number of claims divided by 5 %. The chance that any family-wise
    /// verdict is wrong is then at most 5 %.
    pub fn conclude(mut self) -> OverRuns {
        let tested = self.claims.iter_mut();
        let mut tested: Vec<(&mut ClaimOverRuns, EValues)> = tested
            .filter_map(|claim| claim.e_values.map(|found| (claim, found)))
            .collect();
        let inverse = |(_, found): &(_, EValues)| 10.0_f64.powf(-found.log10()).min(1.0);
        let inverses: Vec<f64> = tested.iter().map(inverse).collect();
        let family_wise = ALPHA / inverses.len().max(1) as f64;
        let steps = benjamini_hochberg(&inverses, ALPHA);
        for (((claim, found), step), inverse) in tested.iter_mut().zip(steps).zip(inverses) {
            claim.needed = Some(1.0 / step.level);
            claim.outcome = if step.rejected {
                found.side()
            } else {
                Outcome::Undecided
            };
            claim.error_rate = step.rejected.then_some(if inverse <= family_wise {
                ErrorRate::FamilyWise
            } else {
                ErrorRate::FalseDiscovery
            });
        }
        self.runs.sort_unstable();
        let excluded = self.excluded.into_iter();
        OverRuns {
            run: self.run.run.id,
            runs: self.runs,
            excluded: excluded
                .map(|(reason, runs)| ExcludedRuns { reason, runs })
                .collect(),
            claims: self.claims,
        }
    }
}

/// Returns the evidence of one run on each claim.
fn e_values(stored: &StoredRun) -> Vec<Option<EValues>> {
    let StoredRun {
        experiment,
        treatments,
        trials,
        boots,
        ..
    } = stored;
    let context = &AnalysisContext::new(experiment, treatments, trials, boots);
    verdict::e_values_of_all(context)
}

/// Returns the first difference that makes another run of the same experiment incomparable.
fn difference(one: &StoredRun, other: &StoredRun) -> Option<String> {
    let systems = system(&one.run).into_iter().zip(system(&other.run));
    let of_system = systems
        .filter(|((_, one), (_, other))| one != other)
        .map(|((what, _), _)| format!("the {what}"))
        .next();
    of_system
        .or_else(|| different_guest(one, other))
        .or_else(|| different_variable(&one.run, &other.run))
        .or_else(|| {
            let work = different_work(&[&one.experiment, &other.experiment]);
            Some(format!("the workload ({})", work.first()?.what))
        })
        .or_else(|| different_experiment(one, other).map(str::to_owned))
}

/// Identifies the machine and kernel of a run, and the program that measured. Facts that
/// explain the most come first.
fn system(run: &RunRecord) -> [(&'static str, String); 15] {
    let machine = &run.machine;
    let known = |fact: &Option<String>| fact.clone().unwrap_or_default();
    [
        ("host", machine.hostname.clone()),
        ("CPU", machine.cpu_model.clone()),
        ("number of CPUs", machine.cpus_online.to_string()),
        // The kernel reserves a little more or less of the memory at each boot.
        ("memory", format::bytes(machine.memory_bytes as f64)),
        ("virtualization", machine.virtualization.clone()),
        ("kernel release", machine.kernel_release.clone()),
        ("kernel build", machine.kernel_version.clone()),
        ("kernel command line", machine.kernel_command_line.clone()),
        ("microcode", known(&machine.microcode)),
        ("state of mitigations", format!("{:?}", machine.mitigations)),
        ("multithreading", known(&machine.smt)),
        ("frequency governor", known(&machine.governor)),
        ("huge pages setting", known(&machine.transparent_hugepage)),
        ("work file system", machine.work_file_system.kind.clone()),
        ("version of toll", run.toll_version.clone()),
    ]
}

/// Returns a difference between guests that were booted alike. If only one of the runs booted a
/// guest, that is not a difference.
fn different_guest(one: &StoredRun, other: &StoredRun) -> Option<String> {
    /// Facts that are read anew at each boot, or follow from the guest's settings.
    const VARYING: [&str; 3] = ["clock read, ns", "memory, bytes", "kernel command line"];
    let guests = [one, other].map(|run| guest::summarise(&run.boots));
    let is_up = |facts: &BTreeMap<String, String>| !facts.is_empty();
    let [of_one, of_other] = &guests;
    let pairs = of_one.iter().filter_map(|guest| {
        let same = of_other.iter().find(|other| other.levels == guest.levels)?;
        Some([guest, same])
    });
    let facts = pairs.map(|pair| {
        pair.map(|guest| {
            let mut facts = guest.facts.clone();
            facts.retain(|name, _| !VARYING.contains(&name.as_str()));
            let accelerator = guest.accelerator.clone();
            facts.extend(accelerator.map(|accelerator| ("accelerator".to_owned(), accelerator)));
            facts
        })
    });
    let differences = facts
        .filter(|pair| pair.iter().all(is_up))
        .flat_map(|pair| differing(&pair));
    differences
        .map(|one| format!("the guest's {}", one.what))
        .next()
}

fn different_variable(one: &RunRecord, other: &RunRecord) -> Option<String> {
    let variables = [one, other].map(|run| run.variables.clone());
    let different = differing(&variables).into_iter().next()?;
    Some(format!("the variable {}", different.what))
}

fn different_experiment(one: &StoredRun, other: &StoredRun) -> Option<&'static str> {
    let levels = |run: &StoredRun| -> Vec<_> {
        let all = run.treatments.iter();
        all.map(|treatment: &Treatment| (treatment.levels.clone(), treatment.twin_of))
            .collect()
    };
    let (mine, others) = (&one.experiment, &other.experiment);
    let is_other_workload = mine.workload != others.workload
        || mine.rows != others.rows
        || mine.guest != others.guest
        || mine.trees != others.trees
        || mine.parsed_metrics != others.parsed_metrics;
    let are_other_claims = mine.claims != others.claims || mine.derived != others.derived;
    [
        (is_other_workload, "the workload"),
        (levels(one) != levels(other), "the set of treatments"),
        (are_other_claims, "the definition of the claims"),
    ]
    .into_iter()
    .find_map(|(is_other, what)| is_other.then_some(what))
}
