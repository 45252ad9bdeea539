//! Runs that were exported on another machine.

use serde_json::Value;
use toll_host::store::Store;
use toll_host::store::exchange::RunDocument;
use toll_stats::Rng;

use crate::fuzz::drive::{self, Case};
use crate::fuzz::{corpus, mutate, shown};

fn make(rng: &mut Rng) -> String {
    let all = corpus::documents();
    let text = &all[rng.below(all.len())];
    if rng.below(4) == 0 {
        return mutate::bytes(text, &all[rng.below(all.len())], rng);
    }
    let mut value: Value = serde_json::from_str(text).expect("our own document is JSON");
    mutate::structure(&mut value, rng);
    let text = value.to_string();
    match rng.below(8) {
        0 => mutate::bytes(&text, &text, rng),
        _ => text,
    }
}

fn check(text: &str, case: &mut Case) {
    let Ok(stored) = RunDocument::parse(text) else {
        return;
    };
    let again =
        RunDocument::parse(&corpus::text(&stored)).expect("an accepted document is accepted again");
    assert_eq!(again, stored);
    let mut store = Store::in_memory().expect("a store can be made in memory");
    let id = store
        .import(&stored)
        .expect("an accepted run can be stored");
    let mut kept = store.load(id).expect("a stored run can be read");
    kept.run.id = stored.run.id;
    // The store sorts trials by block and position; a document may have them in any order.
    let mut sorted = stored.clone();
    sorted
        .trials
        .sort_by_key(|trial| (trial.block, trial.position));
    kept.trials
        .sort_by_key(|trial| (trial.block, trial.position));
    assert_eq!(kept.run, sorted.run);
    assert_eq!(kept.trials.len(), sorted.trials.len());
    assert_eq!(store.runs().expect("the runs can be listed").len(), 1);
    shown::everywhere(&kept, &mut case.rng);
}

#[test]
fn documents_are_refused_or_kept_and_shown() {
    drive::fuzz("document", 250, make, check);
}
