//! Runs that were exported elsewhere.

use serde_json::Value;
use toll::store::Store;
use toll::store::exchange::RunDocument;
use toll_stats::Rng;

use crate::fuzz::drive::{self, Case};
use crate::fuzz::{corpus, mutate, shown};

fn make(rng: &mut Rng) -> String {
    let all = corpus::documents();
    let text = &all[rng.below(all.len())];
    if rng.below(4) == 0 {
        return mutate::bytes(text, &all[rng.below(all.len())], rng);
    }
    let mut value: Value = serde_json::from_str(text).expect("it is one of ours");
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
    let again = RunDocument::parse(&corpus::text(&stored)).expect("what was accepted is again");
    assert_eq!(again, stored);
    let mut store = Store::in_memory().expect("there is memory");
    let id = store
        .import(&stored)
        .expect("what was accepted can be kept");
    let mut kept = store.load(id).expect("what was kept can be read");
    kept.run.id = stored.run.id;
    // The store sorts trials by their places; a document has them in any order.
    let mut sorted = stored.clone();
    sorted
        .trials
        .sort_by_key(|trial| (trial.block, trial.position));
    kept.trials
        .sort_by_key(|trial| (trial.block, trial.position));
    assert_eq!(kept.run, sorted.run);
    assert_eq!(kept.trials.len(), sorted.trials.len());
    assert_eq!(store.runs().expect("it can be listed").len(), 1);
    shown::everywhere(&kept, &mut case.rng);
}

#[test]
fn documents_are_refused_or_kept_and_shown() {
    drive::fuzz("document", 250, make, check);
}
