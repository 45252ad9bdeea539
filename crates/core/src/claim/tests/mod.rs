//! What each verdict needs, tested on made-up runs.

mod between;
mod derived;
mod explanatory_metrics;
mod families;
mod functions;
mod over_runs;
mod price_list;
mod questions;
mod sessions;
mod shown;
#[path = "../../../../stats/tests/simulation/mod.rs"]
mod simulation;
mod worlds;

use std::collections::BTreeMap;

use super::*;
use crate::plan::Plan;
use crate::run::{BootRecord, RunRecord, RunStatus, TrialState};
use crate::spec;
use model::{Outcome, Relation, Verdict};

const HEAD: &str = "
format = 1
name = 't'
report = 'Paper'
counters = ['cycles', 'branches']
[workload]
kind = 'write'
input = '1MiB'
[[factor]]
name = 'durability'
levels = ['none', 'o-sync', 'fsync']
[[factor]]
name = 'buffer'
levels = ['4KiB', '16KiB', '64KiB', '256KiB']
[profile.full.factors]
durability = ['none', 'fdatasync', 'absent']
buffer = ['4KiB', '8KiB']
";

/// Makes a run of `blocks` blocks. `duration` gives the nanoseconds of a trial by
/// durability, buffer and block; `None` is a failure.
fn run(toml: &str, blocks: u32, duration: impl Fn(&str, f64, u32) -> Option<f64>) -> StoredRun {
    let experiment = spec::parse(&format!("{HEAD}{toml}"), "test", "quick").unwrap();
    let plan = Plan::new(&experiment, 1).unwrap();
    let mut trials = Vec::new();
    for block in 0..blocks {
        for treatment in &plan.treatments {
            let buffer = treatment.levels["buffer"].number.unwrap();
            let value = duration(&treatment.levels["durability"].text, buffer, block);
            trials.push(trial(block, treatment.index, value, buffer));
        }
    }
    StoredRun {
        run: record(),
        experiment,
        treatments: plan.treatments,
        trials,
        boots: Vec::new(),
        profiles: Vec::new(),
    }
}

fn trial(block: u32, treatment: usize, duration: Option<f64>, buffer: f64) -> TrialRecord {
    let bytes = f64::from(1 << 20);
    let samples = duration.map_or_else(BTreeMap::new, |duration| {
        BTreeMap::from([
            // One outlier in a trial must not move it.
            (
                "duration_ns".to_owned(),
                vec![duration, duration, duration * 50.0],
            ),
            ("calls".to_owned(), vec![bytes / buffer; 3]),
            ("bytes_written".to_owned(), vec![bytes; 3]),
        ])
    });
    TrialRecord {
        block,
        treatment,
        state: if duration.is_some() {
            TrialState::Completed
        } else {
            TrialState::Failed
        },
        message: duration.is_none().then(|| "cannot write: broken".into()),
        samples,
        ..TrialRecord::default()
    }
}

fn record() -> RunRecord {
    RunRecord {
        id: 1,
        experiment: "t".into(),
        status: RunStatus::Complete,
        ..RunRecord::default()
    }
}

/// A run of ten blocks in a guest, compared with its cheapest treatment.
pub(super) fn in_guest(toml: &str, accelerator: &str) -> StoredRun {
    let mut stored = run(toml, 10, cost);
    stored.experiment.reference = Some(stored.treatments[0].levels.clone());
    stored.boots = vec![BootRecord {
        levels: stored.treatments[0].boot().unwrap(),
        accelerator: Some(accelerator.into()),
        ..BootRecord::default()
    }];
    stored
}

/// Noise of about ±0.5 %, without a pattern over treatments and blocks.
fn noise(durability: &str, buffer: f64, block: u32) -> f64 {
    let seed = durability.len() as u64 * 1000 + buffer as u64 * 7 + u64::from(block);
    1.0 + 0.005 * (2.0 * toll_stats::Rng::new(seed).uniform() - 1.0)
}

/// 10 µs per call and 1 ns per byte; O_SYNC adds 90 µs per call.
fn cost(durability: &str, buffer: f64, block: u32) -> Option<f64> {
    let per_call = if durability == "o-sync" { 100e3 } else { 10e3 };
    let bytes = f64::from(1 << 20);
    Some((bytes / buffer * per_call + bytes) * noise(durability, buffer, block))
}

fn claim(id: &str, of: &str, to: &str, rest: &str) -> String {
    format!(
        "[[claim]]\nid = '{id}'\ntext = 'x'\nof = {{ durability = '{of}' }}\n\
         to = {{ durability = '{to}' }}\nat = {{ buffer = '4KiB' }}\n{rest}\n"
    )
}

fn only(toml: &str, blocks: u32, f: impl Fn(&str, f64, u32) -> Option<f64>) -> Verdict {
    let verdicts = analyse(&run(toml, blocks, f)).verdicts;
    assert_eq!(verdicts.len(), 1);
    verdicts.into_iter().next().unwrap()
}

#[test]
fn a_claim_whose_trials_all_failed_tells_why_they_did() {
    let toml = claim("c", "o-sync", "none", "direction = 'greater'");
    let table = "[[table]]\ntitle = 'x'\nunit = ''\nrows = [{ label = 'a', at = { durability = 'o-sync', buffer = '4KiB' } }]";
    let without_sync = |durability: &str, buffer, block| match durability {
        "o-sync" => None,
        other => cost(other, buffer, block),
    };
    let stored = run(&format!("{toml}{table}"), 10, without_sync);
    let analysis = analyse(&stored);
    assert_eq!(analysis.verdicts[0].outcome, Outcome::NotTestable);
    assert_eq!(analysis.verdicts[0].reason, "cannot write: broken");
    let row = &analysis.tables[0].groups[0].rows[0];
    assert_eq!(row.missing.as_deref(), Some("cannot write: broken"));
}

#[test]
fn a_large_effect_on_the_claimed_side_is_supported() {
    let verdict = only(
        &claim("c", "o-sync", "none", "direction = 'greater'"),
        10,
        cost,
    );
    assert_eq!(verdict.outcome, Outcome::Supported, "{}", verdict.reason);
    let measured = verdict.measured.unwrap();
    // 26.6 ms over 3.6 ms.
    assert!(
        measured.low < 7.385 && 7.385 < measured.high,
        "{measured:?}"
    );
    assert_eq!(verdict.report.as_deref(), Some("Paper"));
}

#[test]
fn an_effect_on_the_other_side_is_refuted() {
    let verdict = only(
        &claim("c", "o-sync", "none", "direction = 'less'"),
        10,
        cost,
    );
    assert_eq!(verdict.outcome, Outcome::Refuted);
}

#[test]
fn a_claimed_difference_is_refuted_where_there_is_none() {
    let verdict = only(&claim("c", "fsync", "none", "direction = 'less'"), 15, cost);
    assert_eq!(verdict.outcome, Outcome::Refuted);
    assert!(
        verdict.reason.contains("no difference"),
        "{}",
        verdict.reason
    );
}

#[test]
fn no_difference_is_supported_by_an_interval_inside_the_margin() {
    let verdict = only(
        &claim("c", "fsync", "none", "direction = 'equal'"),
        15,
        cost,
    );
    assert_eq!(verdict.outcome, Outcome::Supported);
    let verdict = only(
        &claim("c", "o-sync", "none", "direction = 'equal'"),
        15,
        cost,
    );
    assert_eq!(verdict.outcome, Outcome::Refuted);
}

#[test]
fn too_few_blocks_decide_nothing_however_large_the_effect() {
    let verdict = only(
        &claim("c", "o-sync", "none", "direction = 'greater'"),
        4,
        cost,
    );
    assert_eq!(verdict.outcome, Outcome::Undecided);
}

#[test]
fn an_effect_short_of_the_claimed_extent_is_refuted_and_said_to_hold_in_direction() {
    let toml = claim(
        "c",
        "o-sync",
        "none",
        "direction = 'greater'\nthreshold = 100",
    );
    let verdict = only(&toml, 10, cost);
    assert_eq!(verdict.outcome, Outcome::Refuted);
    assert!(
        verdict.reason.contains("direction holds"),
        "{}",
        verdict.reason
    );
}

#[test]
fn what_did_not_run_is_not_testable_with_the_reason() {
    let fails = |durability: &str, buffer: f64, block: u32| match durability {
        "o-sync" => None,
        _ => cost(durability, buffer, block),
    };
    let toml = claim("c", "o-sync", "none", "direction = 'greater'");
    assert_eq!(only(&toml, 10, fails).outcome, Outcome::NotTestable);

    let mut skipped = run(&toml, 10, fails);
    for treatment in &mut skipped.treatments {
        treatment.skipped = Some("needs root".into());
    }
    let verdict = &analyse(&skipped).verdicts[0];
    assert_eq!(verdict.outcome, Outcome::NotTestable);
    assert_eq!(verdict.reason, "needs root");

    let toml = claim("c", "o-sync", "fdatasync", "direction = 'greater'");
    let verdict = only(&toml, 10, cost);
    assert_eq!(verdict.outcome, Outcome::NotTestable);
    assert!(
        verdict.reason.contains("no durability=fdatasync"),
        "{}",
        verdict.reason
    );
}

#[test]
fn a_noisy_twin_warns_and_changes_no_verdict() {
    let toml = claim("c", "fsync", "o-sync", "direction = 'less'");
    let quiet = run(&toml, 12, cost);
    let mut noisy = quiet.clone();
    let twin = noisy.treatments.len() - 1;
    let of_twin = noisy.trials.iter_mut().filter(|one| one.treatment == twin);
    for trial in of_twin.filter(|trial| trial.block.is_multiple_of(3)) {
        let values = trial.samples.get_mut("duration_ns").unwrap();
        values.iter_mut().for_each(|value| *value *= 1.5);
    }
    let (quiet, noisy) = (analyse(&quiet), analyse(&noisy));
    assert_eq!(quiet.verdicts, noisy.verdicts);
    let warns = |analysis: &Analysis| {
        analysis
            .warnings
            .iter()
            .any(|one| one.contains("same treatment"))
    };
    assert!(!warns(&quiet), "{:?}", quiet.warnings);
    assert!(warns(&noisy), "{:?}", noisy.warnings);
}

#[test]
fn a_border_is_the_threshold_itself_but_for_a_threshold_of_one() {
    let longer = |share: f64| {
        move |durability: &str, buffer: f64, block: u32| {
            let value = cost("none", buffer, block)?;
            Some(if durability == "fsync" {
                value * share
            } else {
                value
            })
        }
    };
    let outcome = |rest: &str, share: f64| {
        only(&claim("c", "fsync", "none", rest), 20, longer(share)).outcome
    };
    let at_most = "direction = 'less'\nthreshold = 1.05";
    assert_eq!(outcome(at_most, 1.045), Outcome::Supported);
    assert_eq!(outcome(at_most, 1.055), Outcome::Refuted);
    let faster = "direction = 'less'";
    assert_eq!(outcome(faster, 0.985), Outcome::Supported);
    assert_eq!(outcome(faster, 0.995), Outcome::Refuted);
}

#[test]
fn a_ratio_of_ratios_compares_effects() {
    let toml = "[[claim]]\nid = 'c'\ntext = 'x'\ndirection = 'greater'\n\
                of = { durability = 'o-sync', buffer = '4KiB' }\n\
                to = { durability = 'none', buffer = '4KiB' }\n\
                per_of = { durability = 'o-sync', buffer = '256KiB' }\n\
                per_to = { durability = 'none', buffer = '256KiB' }\n";
    let verdict = only(toml, 10, cost);
    assert_eq!(verdict.outcome, Outcome::Supported);
    // 7.38 at 4 KiB over 1.34 at 256 KiB.
    let measured = verdict.measured.unwrap();
    assert!((measured.value - 5.50).abs() < 0.1, "{measured:?}");
}

#[test]
fn holm_asks_more_of_each_of_many_claims() {
    let many: String = (0..40)
        .map(|i| claim(&format!("c{i}"), "o-sync", "none", "direction = 'greater'"))
        .collect();
    // 1/1024 is the smallest p of 10 blocks; over 40 claims that is 0.039, and more with looks.
    for verdict in analyse(&run(&many, 10, cost)).verdicts {
        assert!(!verdict.is_family_wise());
    }
    for verdict in analyse(&run(&many, 16, cost)).verdicts {
        assert_eq!(verdict.outcome, Outcome::Supported);
        assert!(verdict.is_family_wise());
    }
}

#[test]
fn a_check_is_judged_for_itself_and_costs_claims_nothing() {
    // If the checks counted too, ten blocks would be too few for all claims.
    let many = |name: &str, rest: &str| -> String {
        let claims = (0..10).map(|i| claim(&format!("{name}{i}"), "o-sync", "none", rest));
        claims.collect()
    };
    let toml = many("claim", "direction = 'greater'")
        + &many("sound", "direction = 'greater'\ncheck = true")
        + &claim("odd", "o-sync", "none", "direction = 'less'\ncheck = true")
        + &claim(
            "open",
            "fsync",
            "none",
            "between = [0.5, 1.0]\ncheck = true",
        );
    let stored = run(&toml, 10, cost);
    let analysis = analyse(&stored);
    let outcomes = |verdicts: &[Verdict]| -> Vec<(String, Outcome)> {
        let outcomes = verdicts.iter().map(|one| (one.id.clone(), one.outcome));
        outcomes.collect()
    };
    let claims = outcomes(&analysis.verdicts);
    assert_eq!(claims.len(), 10);
    let is_supported = |(_, outcome): &(String, Outcome)| *outcome == Outcome::Supported;
    assert!(claims.iter().all(is_supported), "{claims:?}");
    let checks = outcomes(&analysis.checks);
    assert!(checks[..10].iter().all(is_supported), "{checks:?}");
    assert_eq!(checks[10], ("odd".to_owned(), Outcome::Refuted));
    assert_eq!(checks[11], ("open".to_owned(), Outcome::Undecided));
    let warnings = analysis.warnings.iter();
    let failed: Vec<_> = warnings.filter(|one| one.contains("check ")).collect();
    assert!(failed.len() == 1 && failed[0].contains("odd"), "{failed:?}");
    let waited = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    let is_of_claim = |question: &Question| question.outcome.is_some();
    assert_eq!(waited.into_iter().filter(is_of_claim).count(), 10);
}

const DERIVED: &str = "
[[derived]]
id = 'call'
text = 'x'
kind = 'cost-per-call'
factor = 'buffer'
at = { durability = 'o-sync' }
[[derived]]
id = 'knee'
text = 'x'
kind = 'knee'
factor = 'buffer'
tolerance = '25%'
at = { durability = 'none' }
[[derived]]
id = 'zero'
text = 'x'
kind = 'crossing'
factor = 'buffer'
of = { durability = 'none' }
to = { durability = 'o-sync' }
[[derived]]
id = 'half'
text = 'x'
kind = 'crossing'
factor = 'buffer'
value = 0.5
of = { durability = 'none' }
to = { durability = 'o-sync' }
[[derived]]
id = 'share'
text = 'x'
kind = 'call-share'
factor = 'buffer'
level = '4KiB'
at = { durability = 'o-sync' }
[[derived]]
id = 'acc'
text = 'x'
kind = 'acceleration'
factor = 'buffer'
level = '4KiB'
of = { durability = 'none' }
to = { durability = 'o-sync' }
[[derived]]
id = 'spread'
text = 'x'
kind = 'spread'
factor = 'durability'
at = { buffer = '4KiB' }
";

#[test]
fn derived_quantities_find_what_was_put_in() {
    let analysis = analyse(&run(DERIVED, 20, cost));
    let value = |id: &str| {
        let derived = analysis
            .derived
            .iter()
            .find(|derived| derived.id == id)
            .unwrap();
        derived
            .estimate
            .unwrap_or_else(|| panic!("{id}: {:?}", derived.note))
    };
    let call = value("call");
    assert!(
        call.low.unwrap() < 100e3 && 100e3 < call.high.unwrap(),
        "{call:?}"
    );
    // 1 MiB at 64 KiB a call: 1.21 ms, within 25 % of 1.09 ms at 256 KiB.
    assert_eq!(value("knee").value, Some(65536.0));
    assert_eq!(
        value("zero").value,
        None,
        "O_SYNC always costs more: beyond the levels"
    );
    let half = value("half").value.unwrap();
    assert!((16384.0..131_072.0).contains(&half), "{half}");
    let share = value("share").value.unwrap();
    assert!((share - 0.961).abs() < 0.01, "{share}");
    // 1 - 3.61/26.65.
    let saved = value("acc");
    assert!(
        saved.low.unwrap() < 0.8646 && 0.8646 < saved.high.unwrap(),
        "{saved:?}"
    );
    assert!((value("spread").value.unwrap() - 7.38).abs() < 0.2);
}

#[test]
fn failures_are_counted_and_leave_no_value() {
    let once = |durability: &str, buffer: f64, block: u32| match (durability, block) {
        ("fsync", 3) => None,
        _ => cost(durability, buffer, block),
    };
    let analysis = analyse(&run("", 6, once));
    let fsync = analysis
        .treatments
        .iter()
        .find(|t| t.label.contains("fsync"))
        .unwrap();
    assert_eq!((fsync.trials_completed, fsync.trials_failed), (5, 1));
    assert_eq!(fsync.estimates["duration_ns"].trial_values.len(), 5);
    assert_eq!(fsync.first_failure.as_deref(), Some("cannot write: broken"));
    assert_eq!(analysis.blocks, 6);
}
