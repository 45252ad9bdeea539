//! Comparisons of runs at different times.

use super::*;
use crate::claim::between::{Side, compare_sides};
use crate::claim::model::{Replicates, RunComparison, RunRatio};
use toll_stats::Decision;

fn compared(new: &StoredRun, old: &StoredRun) -> RunComparison {
    between(&new.clone().into(), &old.clone().into(), &[])
}

fn between(new: &Run, old: &Run, others: &[Run]) -> RunComparison {
    compare_sides(&new.into(), &old.into(), others).remove(0)
}

/// Time of one treatment in a block, in nanoseconds, with some noise.
fn noisy(base: f64, block: u32) -> Option<f64> {
    Some(base * (1.0 + 0.004 * f64::from(block * 7 % 11) - 0.02))
}

fn relation_of(comparison: &RunComparison, label: &str) -> Relation {
    let mut ratios = comparison.ratios.iter();
    let found = ratios.find(|ratio| ratio.label == label);
    found
        .unwrap_or_else(|| panic!("{label}: {comparison:#?}"))
        .relation
}

#[test]
fn each_treatment_is_compared_with_itself_in_the_earlier_run() {
    let old = run("", 40, |_, buffer, block| noisy(buffer * 100.0, block));
    let new = run("", 30, |durability, buffer, block| {
        let factor = match (durability, buffer as u64) {
            ("fsync", 4096) => 1.3,
            ("fsync", 16384) => 0.8,
            _ => 1.0,
        };
        noisy(buffer * 100.0 * factor, block + 3)
    });
    let comparison = compared(&new, &old);
    assert_eq!(comparison.ratios.len(), 12, "twins are left out");
    assert_eq!(comparison.ratios[0].counts, [30, 40]);
    let worse = "durability=fsync buffer=4KiB";
    assert_eq!(relation_of(&comparison, worse), Relation::Worse);
    assert_eq!(
        relation_of(&comparison, "durability=fsync buffer=16KiB"),
        Relation::Better
    );
    let regressed = |limit: f64| {
        let ratios = comparison.ratios.iter();
        let is_one = |ratio: &&RunRatio| {
            let judged = comparison.judged(ratio).unwrap();
            judged.regression(limit) == Decision::Supported
        };
        let labels: Vec<&str> = ratios
            .filter(is_one)
            .map(|one| one.label.as_str())
            .collect();
        labels.join(", ")
    };
    assert_eq!(regressed(0.05), worse);
    assert_eq!(regressed(0.2), worse);
    assert_eq!(regressed(0.4), "");
}

#[test]
fn a_run_and_itself_are_the_same_or_not_told_apart() {
    let one = run("", 30, |_, buffer, block| noisy(buffer * 100.0, block));
    for ratio in compared(&one, &one).ratios {
        assert!(
            matches!(ratio.relation, Relation::Same | Relation::Undecided),
            "{ratio:?}"
        );
    }
}

#[test]
fn intervals_of_several_treatments_hold_together() {
    let one = run("", 40, |_, buffer, block| noisy(buffer * 100.0, block));
    for ratio in compared(&one, &one).ratios {
        assert!(ratio.ratio.unwrap().confidence >= 1.0 - 0.05 / 12.0);
    }
}

#[test]
fn too_few_trials_decide_nothing() {
    let old = run("", 3, |_, buffer, _| Some(buffer));
    let new = run("", 3, |_, buffer, _| Some(buffer * 10.0));
    for ratio in compared(&new, &old).ratios {
        assert_eq!(ratio.relation, Relation::Undecided);
        assert!(ratio.reason.unwrap().contains("too few"));
    }
}

#[test]
fn a_difference_as_between_twins_is_none() {
    let old = run("", 30, |_, buffer, block| noisy(buffer * 100.0, block));
    let mut new = run("", 30, |_, buffer, block| noisy(buffer * 110.0, block));
    let is_worse = |new: &StoredRun| {
        let ratios = compared(new, &old).ratios;
        ratios.iter().any(|ratio| ratio.relation == Relation::Worse)
    };
    assert!(is_worse(&new));
    for trial in &mut new.trials {
        if new.treatments[trial.treatment].twin_of.is_some() {
            for value in trial.samples.get_mut("duration_ns").unwrap() {
                *value *= 1.4;
            }
        }
    }
    assert!(!is_worse(&new));
}

#[test]
fn what_one_run_alone_has_is_named_and_what_failed_has_a_reason() {
    let old = run("", 12, |_, buffer, _| Some(buffer));
    let new = run("", 12, |durability, buffer, _| {
        (durability != "fsync").then_some(buffer)
    });
    let mut fewer = new.clone();
    for treatment in &mut fewer.treatments {
        if treatment.levels["durability"].text == "o-sync" {
            let other = treatment.levels["buffer"].clone();
            treatment.levels.insert("durability".into(), other);
        }
    }
    let comparison = compared(&fewer, &old);
    assert_eq!(comparison.only_new.len(), 4);
    assert_eq!(comparison.only_old.len(), 4);
    assert!(comparison.only_old[0].contains("o-sync"), "{comparison:#?}");
    let failed = comparison
        .ratios
        .iter()
        .filter(|ratio| ratio.ratio.is_none());
    for ratio in failed.clone() {
        assert_eq!(
            ratio.reason.as_deref(),
            Some("the new run has no trial of this treatment")
        );
    }
    assert_eq!(failed.count(), 4);
}

/// Makes runs of the same treatments, each a little longer or shorter as a whole.
fn sessions(shares: &[f64]) -> Vec<Run> {
    let shares = shares.iter();
    let session = |share: &f64| {
        run("", 20, |_, buffer, block| {
            noisy(buffer * 100.0 * share, block)
        })
        .into()
    };
    shares.map(session).collect()
}

const LONGER: &str = "durability=none buffer=4KiB";

#[test]
fn runs_of_the_same_thing_tell_how_far_sessions_lie_apart() {
    let all = sessions(&[1.0, 1.03, 0.98, 1.01, 0.99]);
    let [old, new] = [&all[0], &sessions(&[1.04])[0]];
    let alone = between(new, old, &all[1..2]);
    assert_eq!((alone.sessions.runs, alone.sessions.shift), (2, None));
    assert_eq!(relation_of(&alone, LONGER), Relation::Worse);
    let known = between(new, old, &all[1..]);
    assert_eq!(known.sessions.runs, 5);
    // All treatments move together, by a standard deviation of 1.9 %, so they have no
    // variation of their own: 3.495 · √2 · 0.019, at half of the error rate.
    let shift = known.sessions.shift.unwrap();
    assert!((0.092..0.102).contains(&shift), "{shift}");
    assert_eq!(known.margin, shift);
    assert_eq!(known.replicates, Replicates::Trials);
    assert_ne!(relation_of(&known, LONGER), Relation::Worse);
    // A run of other work is not a session.
    let mut other: Vec<Run> = all[1..].to_vec();
    for run in &mut other {
        run.stored.run.machine.kernel_version = "another".into();
    }
    assert_eq!(between(new, old, &other).sessions.runs, 1);
}

#[test]
fn three_runs_a_side_are_compared_by_run() {
    let (old, new) = (
        sessions(&[1.0, 1.03, 0.98]),
        sessions(&[1.02, 0.99, 1.01, 1.0]),
    );
    let sides = [&new, &old].map(|runs| Side::new(runs).unwrap());
    let same = compare_sides(&sides[0], &sides[1], &[]).remove(0);
    assert_eq!(same.replicates, Replicates::Sessions);
    assert_eq!(same.margin, MARGIN_MIN);
    assert_eq!(same.ratios[0].counts, [4, 3]);
    for ratio in &same.ratios {
        assert_eq!(ratio.relation, Relation::Undecided, "{ratio:?}");
        let ratio = ratio.ratio.unwrap();
        assert!(ratio.low < 0.97 && ratio.high > 1.03, "{ratio:?}");
    }
    let twice = sessions(&[2.04, 1.98, 2.02]);
    let twice = compare_sides(&Side::new(&twice).unwrap(), &sides[1], &[]).remove(0);
    let ratios = twice.ratios.iter();
    let levels: Vec<f64> = ratios.map(|one| one.ratio.unwrap().confidence).collect();
    assert!(
        twice
            .ratios
            .iter()
            .all(|one| one.relation == Relation::Worse),
        "{twice:#?}"
    );
    // Holm's levels, from 0.05/12 to 0.05.
    assert!(
        levels
            .iter()
            .any(|level| (level - (1.0 - 0.05 / 12.0)).abs() < 1e-9)
    );
    assert!(levels.iter().any(|level| (level - 0.95).abs() < 1e-9));
}

#[test]
fn fewer_runs_a_side_pool_their_trials_and_keep_the_margin() {
    let (old, new) = (sessions(&[1.0, 1.03]), sessions(&[1.02, 0.99, 1.01]));
    let sides = [&new, &old].map(|runs| Side::new(runs).unwrap());
    let compared = compare_sides(&sides[0], &sides[1], &[]).remove(0);
    assert_eq!(compared.replicates, Replicates::Trials);
    assert_eq!(compared.ratios[0].counts, [60, 40]);
    assert_eq!((compared.sessions.runs, compared.sessions.shift), (2, None));
    let known = compare_sides(&sides[0], &sides[1], &sessions(&[0.98])).remove(0);
    assert_eq!(known.sessions.runs, 3);
    assert!(known.margin > 0.05, "{}", known.margin);
}

#[test]
fn a_treatment_that_too_few_runs_of_a_side_have_measured_is_not_judged() {
    let (old, mut new) = (sessions(&[1.0, 1.03, 0.98]), sessions(&[1.02, 0.99]));
    let gap = run("", 20, |durability, buffer, block| {
        (durability != "fsync").then(|| noisy(buffer * 100.0, block))?
    });
    new.push(gap.into());
    let sides = [&new, &old].map(|runs| Side::new(runs).unwrap());
    let compared = compare_sides(&sides[0], &sides[1], &[]).remove(0);
    let reason = "measured in 2 of 3 new runs";
    let actual = |ratio: &&RunRatio| ratio.reason.as_deref() == Some(reason);
    assert_eq!(
        compared.ratios.iter().filter(actual).count(),
        4,
        "{compared:#?}"
    );
}

#[test]
fn runs_of_different_things_make_no_side() {
    let check = |change: fn(&mut Run), why: &str| {
        let mut runs = sessions(&[1.0, 1.01]);
        runs[1].stored.run.id = 2;
        change(&mut runs[1]);
        let refused = Side::new(&runs).unwrap_err();
        let begin = "cannot take runs 1 and 2 as sessions of the same work: ";
        assert!(
            refused.starts_with(begin) && refused.contains(why),
            "{refused}"
        );
    };
    check(
        |run| run.stored.run.experiment = "u".into(),
        "`t` against `u`",
    );
    check(
        |run| run.stored.run.machine.hostname = "b".into(),
        "the machine",
    );
    check(
        |run| run.stored.run.machine.kernel_version = "b".into(),
        "the kernel",
    );
    check(
        |run| run.stored.run.status = RunStatus::Unfinished,
        "--resume 2",
    );
    check(|run| run.stored.experiment.run.iterations = 9, "iterations");
}
