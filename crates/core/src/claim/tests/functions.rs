//! Functions that account for the difference between two path lengths.

use toll_stats::Rng;
use toll_wire::guest::PATH_LENGTH;

use super::*;
use crate::claim::model::FunctionDifferences;
use crate::size;

/// Number of functions that are unrelated to the difference.
const OTHERS: usize = 60;

/// Makes a run whose trials have the instructions that `count` gives by durability and
/// block.
fn run_of_functions(
    blocks: u32,
    mut count: impl FnMut(&str, u32) -> BTreeMap<String, u64>,
) -> StoredRun {
    let toml = "[reference]\ndurability = 'none'\nbuffer = '4KiB'\n";
    let mut stored = run(toml, blocks, |_, _, _| Some(1.0));
    stored.experiment.compare_in(&[PATH_LENGTH.to_owned()]);
    for trial in &mut stored.trials {
        let levels = &stored.treatments[trial.treatment].levels;
        let functions = count(&levels["durability"].text, trial.block);
        let length: u64 = functions.values().sum();
        // The instructions between the marks and the clock are in no function.
        trial.samples = BTreeMap::from([(PATH_LENGTH.to_owned(), vec![length as f64 - 150.0])]);
        trial.functions = functions;
    }
    stored
}

fn explained(stored: &StoredRun, durability: &str) -> Option<FunctionDifferences> {
    let analysis = analyse(stored);
    let is_it = |one: &&model::Comparison| {
        let levels = &stored.treatments[one.treatment].levels;
        levels["durability"].text == durability && levels["buffer"].text == "4KiB"
    };
    let found = analysis.comparisons.iter().find(is_it);
    found.expect("it is compared").functions.clone()
}

/// Returns counts with a function of 5,000 instructions, or more on one side, others that
/// vary on their own, and a timer tick in some trials.
fn with_cost(rng: &mut Rng, durability: &str) -> BTreeMap<String, u64> {
    let cost = if durability == "o-sync" { 9_000 } else { 0 };
    let tick = if rng.uniform() < 0.3 { 4_000 } else { 0 };
    let varying = (0..OTHERS).map(|number| {
        let width = 10.0 * (1 + number % 7) as f64;
        let count = 1_000.0 + width * rng.normal();
        (format!("other_{number}"), count as u64)
    });
    let mut functions: BTreeMap<String, u64> = varying.collect();
    functions.insert("vfs_read".into(), 5_000 + cost);
    functions.insert("rcu_note_context_switch".into(), 100 + cost / 100);
    functions.insert("tick_handle_periodic".into(), tick);
    functions
}

#[test]
fn a_cost_is_named_with_its_instructions_and_what_is_left() {
    let stored = run_of_functions(12, |durability, block| {
        match durability {
            "o-sync" => [("vfs_read", 9_000), ("fget", 1_000), ("new", 50)],
            _ => [
                ("vfs_read", 5_000),
                ("fget", 1_000 + u64::from(block % 2)),
                ("gone", 40),
            ],
        }
        .map(|(name, count)| (name.to_owned(), count))
        .into()
    });
    let found = explained(&stored, "o-sync").unwrap();
    let [cost, new] = &found.listed[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (cost.name.as_str(), cost.instructions.value),
        ("vfs_read", 4_000.0)
    );
    assert_eq!(
        (cost.instructions.low, cost.instructions.high),
        (4_000.0, 4_000.0)
    );
    assert_eq!((new.name.as_str(), new.instructions.value), ("new", 50.0));
    assert!(
        found.explained > 0.98 && found.rest.value < 0.0,
        "{found:?}"
    );
    assert_eq!(explained(&stored, "fsync"), None);
}

#[test]
fn functions_are_listed_by_chance_as_rarely_as_comparisons_are_wrong() {
    let runs = size::runs(300) as u64;
    let (mut first, mut wrong) = (0, 0);
    for seed in 0..runs {
        let mut rng = Rng::new(seed);
        let stored = run_of_functions(12, |durability, _| with_cost(&mut rng, durability));
        let Some(found) = explained(&stored, "o-sync") else {
            continue;
        };
        let names: Vec<&str> = found.listed.iter().map(|one| one.name.as_str()).collect();
        first += u64::from(names.first() == Some(&"vfs_read"));
        let is_none = |name: &&str| !["vfs_read", "rcu_note_context_switch"].contains(name);
        wrong += u64::from(names.iter().any(is_none));
    }
    assert!(first >= runs * 95 / 100, "first in {first}");
    // 5 % and three standard errors of all runs.
    let most = (0.05 + 0.04 * size::widening()) * runs as f64;
    assert!(wrong as f64 <= most, "wrong in {wrong}");
}

#[test]
fn without_counted_functions_or_enough_blocks_there_is_no_list() {
    let mut stored = run_of_functions(3, |durability, _| with_cost(&mut Rng::new(1), durability));
    assert_eq!(explained(&stored, "o-sync"), None);
    stored = run_of_functions(12, |durability, _| with_cost(&mut Rng::new(1), durability));
    assert!(explained(&stored, "o-sync").is_some());
    for trial in &mut stored.trials {
        trial.functions.clear();
    }
    assert_eq!(explained(&stored, "o-sync"), None);
}
