use crate::claim::model::{Analysis, Outcome, Relation};
use crate::claim::tests::in_guest;
use crate::claim::{analyse, questions};
use crate::run::StoredRun;

const GUEST: &str = "
[guest]
[[claim]]
id = 'time'
text = 'slower'
of = { durability = 'o-sync' }
to = { durability = 'none' }
at = { buffer = '4KiB' }
direction = 'greater'
[[claim]]
id = 'count'
text = 'more calls'
metric = 'calls'
of = { buffer = '4KiB' }
to = { buffer = '16KiB' }
at = { durability = 'none' }
direction = 'greater'
[[claim]]
id = 'derived'
text = 'spread'
derived = 'spread'
threshold = 1.5
direction = 'greater'
[[derived]]
id = 'spread'
text = 'spread'
kind = 'spread'
factor = 'durability'
at = { buffer = '4KiB' }
[[advice]]
topic = 'durability'
kind = 'best'
factor = 'durability'
at = { buffer = '4KiB' }
";

fn outcomes(analysis: &Analysis) -> Vec<(&str, Outcome)> {
    let verdicts = analysis.verdicts.iter();
    verdicts.map(|v| (v.id.as_str(), v.outcome)).collect()
}

fn under(accelerator: &str) -> StoredRun {
    in_guest(GUEST, accelerator)
}

#[test]
fn under_tcg_times_are_shown_and_not_judged_and_counts_are() {
    let stored = under("tcg");
    let analysis = analyse(&stored);
    assert_eq!(
        outcomes(&analysis),
        [
            ("time", Outcome::NotTestable),
            ("count", Outcome::Supported),
            ("derived", Outcome::NotTestable),
        ]
    );
    let reason = &analysis.verdicts[0].reason;
    assert!(reason.contains("emulated, not judged"), "{reason}");
    assert!(reason.contains("the ratio was 7.3"), "{reason}");
    assert!(analysis.advice.is_empty());
    let relations = analysis.comparisons.iter().map(|c| c.relation);
    assert!(relations.into_iter().all(|r| r == Relation::Undecided));
    let found = |text: &String| text.contains("emulated, not judged");
    assert!(analysis.notes.iter().any(found), "{:?}", analysis.notes);
}

#[test]
fn no_run_waits_for_what_it_will_not_judge() {
    let stored = under("tcg");
    let open = questions(
        &stored.experiment,
        &stored.treatments,
        &stored.trials,
        &stored.boots,
    );
    let ids: Vec<&str> = open.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["count"]);
}

#[test]
fn under_kvm_everything_is_judged() {
    let analysis = analyse(&under("kvm"));
    let judged = outcomes(&analysis);
    assert!(
        judged
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Supported),
        "{judged:?}"
    );
    assert!(!analysis.advice.is_empty());
}
