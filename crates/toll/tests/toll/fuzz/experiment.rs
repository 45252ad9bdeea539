//! Mutated experiment files.

use serde_json::Value;
use toll_core::plan::Plan;
use toll_core::spec;
use toll_core::spec::Experiment;
use toll_stats::Rng;

use crate::fuzz::drive::{self, Case};
use crate::fuzz::{corpus, mutate, shown};

fn make(rng: &mut Rng) -> String {
    let all = corpus::experiments();
    let text = all[rng.below(all.len())];
    if rng.below(4) == 0 {
        return mutate::bytes(text, all[rng.below(all.len())], rng);
    }
    let table: toml::Table = text.parse().expect("our own experiment is TOML");
    let mut value = serde_json::to_value(table).expect("TOML can be represented as JSON");
    mutate::structure(&mut value, rng);
    without_nothing(&mut value);
    // Some numbers and other values cannot be represented in TOML.
    match toml::to_string(&value) {
        Ok(text) if rng.below(8) == 0 => mutate::bytes(&text, &text, rng),
        Ok(text) => text,
        Err(_) => mutate::bytes(text, text, rng),
    }
}

/// Removes nulls, which TOML lacks.
fn without_nothing(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(without_nothing);
        }
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nothing);
        }
        _ => {}
    }
}

fn check(text: &str, case: &mut Case) {
    let rng = &mut case.rng;
    let shown = rng.below(3);
    for (index, profile) in ["quick", "standard", "full"].into_iter().enumerate() {
        match spec::parse(text, "fuzz", profile) {
            Ok(experiment) => accepted(experiment, index == shown, rng),
            Err(error) => assert!(error.to_string().starts_with("fuzz"), "{error}"),
        }
    }
}

/// Checks that an accepted experiment can be stored and planned and, once measured, judged and
/// shown.
fn accepted(experiment: Experiment, is_shown: bool, rng: &mut Rng) {
    experiment
        .check()
        .expect("an accepted experiment passes the checks");
    let kept = serde_json::to_string(&experiment).expect("an experiment is plain data");
    let read: Experiment = serde_json::from_str(&kept).expect("a stored experiment can be read");
    assert_eq!(read, experiment);
    let seed = rng.next_u64();
    let Ok(plan) = Plan::new(&experiment, seed) else {
        return;
    };
    assert_eq!(Plan::new(&read, seed).as_ref(), Ok(&plan));
    let mut order = plan.block_order(rng.below(6) as u32, None);
    order.sort_unstable();
    assert!(order.into_iter().eq(0..plan.treatments.len()));
    if is_shown && let Some(stored) = corpus::made_up(experiment, rng) {
        shown::everywhere(&stored, rng);
    }
}

#[test]
fn experiment_files_are_refused_or_run() {
    drive::fuzz("experiment", 200, make, check);
}
