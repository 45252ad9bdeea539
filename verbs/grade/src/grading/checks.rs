//! Finds signs that submitted data were not measured. An honest run passes every check.

use std::collections::BTreeMap;

use toll_core::claim::model::{Analysis, Estimate, Verdict};
use toll_core::plan::{Plan, Treatment};
use toll_core::run::{StoredRun, TrialRecord, TrialState};

use super::copies::{BLOCKS_COMPARED_MAX, Block, copied_blocks};
use super::model::DataCheck;
use super::order;

/// The metric whose samples are parts of a trial's time.
const DURATION: &str = "duration_ns";

/// Largest relative difference between the clocks of `toll` and its probe.
const CLOCK_SLACK: f64 = 0.01;

/// Maximum number of contradictions that a check lists.
const NAMED_MAX: usize = 3;

/// Checks a run that was read from a document. `concluded` is what the document says about the run,
/// `analysis` is what follows from its samples, and `version` is this program's.
pub fn check(
    stored: &StoredRun,
    concluded: Option<&Analysis>,
    analysis: &Analysis,
    version: &str,
) -> Vec<DataCheck> {
    let of_other_version = (stored.run.toll_version != version).then(|| {
        format!(
            "toll {} made the run, and this is toll {version}, whose results may differ",
            stored.run.toll_version
        )
    });
    let mut checks = planned(stored, of_other_version.clone());
    checks.extend([
        times(stored),
        durations(stored),
        rates(stored),
        copies(stored),
        verdicts(concluded, analysis, of_other_version),
    ]);
    checks
}

/// Checks treatments, order and completeness against the plan.
fn planned(stored: &StoredRun, mut not_made: Option<String>) -> Vec<DataCheck> {
    let mut treatments = made(
        "treatments",
        "the treatments of a run follow from its experiment",
    );
    let mut order = made(
        "order",
        "the order of blocks before the first look follows from the experiment and the seed",
    );
    let mut trials = made(
        "trials",
        "a run completes each block before the next, and records trials that fail",
    );
    let plan = Plan::new(&stored.experiment, stored.run.seed);
    if not_made.is_none() {
        match &plan {
            Ok(plan) if bare(&plan.treatments) == bare(&stored.treatments) => {
                let compared = order::compare(stored, plan);
                let numbers = |blocks: &[u32]| blocks.iter().map(|block| block + 1).collect();
                order.contradictions = of_blocks(
                    numbers(&compared.out_of_order),
                    "has its trials in an order that does not follow from the seed",
                );
                trials.contradictions = of_blocks(numbers(&compared.incomplete), "lacks trials");
                order.not_made = compared.not_compared.clone();
                trials.not_made = compared.not_compared;
                return vec![treatments, order, trials];
            }
            Ok(_) => treatments
                .contradictions
                .push("its treatments are not those of its experiment".into()),
            Err(why) => treatments.contradictions.push(why.clone()),
        }
        not_made = Some("its treatments have no plan".into());
    } else {
        treatments.not_made.clone_from(&not_made);
    }
    order.not_made.clone_from(&not_made);
    trials.not_made = not_made;
    vec![treatments, order, trials]
}

/// Returns the treatments as the plan has them, without the reasons for skipping that the run
/// added.
fn bare(treatments: &[Treatment]) -> Vec<Treatment> {
    let clear = |treatment: &Treatment| Treatment {
        skipped: None,
        ..treatment.clone()
    };
    treatments.iter().map(clear).collect()
}

/// Checks that trials follow one another in the time of the run.
fn times(stored: &StoredRun) -> DataCheck {
    let mut check = made(
        "times",
        "trials run one after another, and no trial takes longer than its run so far",
    );
    let mut trials: Vec<&TrialRecord> = stored.trials.iter().collect();
    trials.sort_by_key(|trial| trial.run_ns);
    let too_long = trials.iter().filter(|trial| trial.wall_ns > trial.run_ns);
    let mut contradictions: Vec<String> = too_long
        .map(|trial| {
            format!(
                "{} took longer than the run had taken so far",
                name(trial, stored)
            )
        })
        .collect();
    // Guests may run side by side.
    if is_without_guests(stored) {
        let begin = |trial: &TrialRecord| trial.run_ns.saturating_sub(trial.wall_ns);
        let overlapping = trials.windows(2);
        let overlapping = overlapping.filter(|pair| begin(pair[1]) < pair[0].run_ns);
        contradictions.extend(overlapping.map(|pair| {
            let [one, next] = [pair[0], pair[1]].map(|trial| name(trial, stored));
            format!("{next} began before {one} ended")
        }));
    }
    check.contradictions = named(contradictions);
    check
}

/// Checks that the samples of each trial fit into the trial's time.
fn durations(stored: &StoredRun) -> DataCheck {
    let mut check = made(
        "durations",
        "the timed iterations of a trial are parts of it, so together they take no longer",
    );
    let longer = host_trials(stored).filter(|trial| {
        let samples = trial.samples.get(DURATION);
        let total_ns: f64 = samples.into_iter().flatten().sum();
        total_ns > trial.wall_ns as f64 * (1.0 + CLOCK_SLACK)
    });
    let wrong = longer.map(|trial| {
        format!(
            "the samples of {} take longer than the trial",
            name(trial, stored)
        )
    });
    check.contradictions = named(wrong.collect());
    check
}

/// Checks that each trial's times, bytes and rates follow from one another.
fn rates(stored: &StoredRun) -> DataCheck {
    let mut check = made(
        "rates",
        "rates are computed from the bytes and times of the same sample",
    );
    let parsed = &stored.experiment.parsed_metrics;
    let differing = host_trials(stored).filter(|trial| {
        let column = |name: &str| {
            let is_measured = !parsed.contains_key(name);
            trial.samples.get(name).filter(|_| is_measured)
        };
        let (Some(durations), Some(per_byte)) = (column(DURATION), column("duration_per_byte_ns"))
        else {
            return false;
        };
        let mut bytes = trial
            .samples
            .iter()
            .filter(|(name, _)| name.starts_with("bytes_"));
        let is_of_bytes = bytes.clone().next().is_none()
            || bytes.any(|(_, bytes)| are_products(per_byte, bytes, durations));
        let seconds = vec![1e9; per_byte.len()];
        let is_inverse = column("throughput_bytes_per_s")
            .is_none_or(|throughput| are_products(per_byte, throughput, &seconds));
        !(is_of_bytes && is_inverse)
    });
    let wrong = differing.map(|trial| {
        format!(
            "the rates of {} do not follow from its times",
            name(trial, stored)
        )
    });
    check.contradictions = named(wrong.collect());
    check
}

fn are_products(one: &[f64], other: &[f64], products: &[f64]) -> bool {
    let factors = one.iter().zip(other);
    let mut pairs = factors.zip(products);
    pairs.all(|((one, other), product)| is_near(one * other, *product))
}

/// Whether two numbers differ at most in their last digits.
fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

/// Checks for blocks that are the same although they cannot be.
fn copies(stored: &StoredRun) -> DataCheck {
    let mut check = made(
        "copies",
        "the chance that two blocks are the same to the nanosecond is below one in ten thousand",
    );
    let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
    for trial in host_trials(stored) {
        if let Some(samples) = trial.samples.get(DURATION) {
            let block = blocks.entry(trial.block).or_default();
            block.insert(trial.treatment, samples);
        }
    }
    let (numbers, blocks): (Vec<u32>, Vec<Block>) = blocks.into_iter().unzip();
    let wrong = copied_blocks(&blocks).into_iter().map(|(one, other)| {
        let [one, other] = [one, other].map(|place| numbers[place] + 1);
        format!("blocks {one} and {other} are the same")
    });
    check.contradictions = named(wrong.collect());
    check.not_made = (blocks.len() > BLOCKS_COMPARED_MAX)
        .then(|| format!("only the first {BLOCKS_COMPARED_MAX} blocks were compared"));
    check
}

/// Checks that the document's verdicts follow from its samples.
fn verdicts(
    concluded: Option<&Analysis>,
    analysis: &Analysis,
    not_made: Option<String>,
) -> DataCheck {
    let mut check = made(
        "verdicts",
        "toll writes into the file the verdicts that follow from its samples",
    );
    let without = || "the file has no verdicts".to_owned();
    check.not_made = not_made.or_else(|| concluded.is_none().then(without));
    let Some(concluded) = concluded.filter(|_| check.not_made.is_none()) else {
        return check;
    };
    let all = |analysis: &Analysis| -> BTreeMap<String, Verdict> {
        let verdicts = analysis.verdicts.iter().chain(&analysis.checks);
        verdicts.map(|one| (one.id.clone(), one.clone())).collect()
    };
    let (written, own) = (all(concluded), all(analysis));
    let differing = own.iter().filter(|(id, own)| {
        let written = written.get(*id);
        !written.is_some_and(|written| is_same_verdict(written, own))
    });
    let mut wrong: Vec<String> = differing
        .map(|(id, _)| format!("its verdict on {id} does not follow from its samples"))
        .collect();
    let unknown = written.keys().filter(|id| !own.contains_key(*id));
    wrong.extend(
        unknown.map(|id| format!("it has a verdict on {id}, which is not among its claims")),
    );
    check.contradictions = named(wrong);
    check
}

/// Whether two verdicts are the same except in the last digits, in which logarithms differ between
/// machines.
fn is_same_verdict(one: &Verdict, other: &Verdict) -> bool {
    let is_same_interval = match (&one.measured, &other.measured) {
        (Some(one), Some(other)) => {
            let values = |interval: &Estimate| [interval.value, interval.low, interval.high];
            let mut pairs = values(one).into_iter().zip(values(other));
            pairs.all(|(one, other)| is_near(one, other))
        }
        (one, other) => one.is_none() && other.is_none(),
    };
    one.outcome == other.outcome && one.blocks == other.blocks && is_same_interval
}

/// Returns the completed trials that ran on the machine itself, since the clock of a guest may run
/// differently.
fn host_trials(stored: &StoredRun) -> impl Iterator<Item = &TrialRecord> {
    let is_on_host = |trial: &&TrialRecord| {
        let treatment = &stored.treatments[trial.treatment];
        trial.state == TrialState::Completed && treatment.boot().is_none()
    };
    stored.trials.iter().filter(is_on_host)
}

fn is_without_guests(stored: &StoredRun) -> bool {
    let mut treatments = stored.treatments.iter();
    treatments.all(|treatment| treatment.boot().is_none())
}

fn name(trial: &TrialRecord, stored: &StoredRun) -> String {
    let label = &stored.treatments[trial.treatment].label;
    format!("{label} in block {}", trial.block + 1)
}

fn made(id: &str, reason: &str) -> DataCheck {
    DataCheck {
        id: id.into(),
        reason: reason.into(),
        contradictions: Vec::new(),
        not_made: None,
    }
}

fn of_blocks(blocks: Vec<u32>, what: &str) -> Vec<String> {
    let wrong = blocks.iter().map(|block| format!("block {block} {what}"));
    named(wrong.collect())
}

/// Returns the first contradictions, and the number of further ones.
fn named(mut contradictions: Vec<String>) -> Vec<String> {
    let more = contradictions.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        contradictions.truncate(NAMED_MAX);
        contradictions.push(format!("and {more} more"));
    }
    contradictions
}
