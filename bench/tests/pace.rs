//! Right verdicts a minute of simulated runs.

use toll_bench::replay::{Choice, Document, Effort, Noise, RECORDED_NOISE, render_against, replay};

/// Runs of an experiment in its quick profile at published, else recorded values.
fn published(experiment: &str) -> Document {
    let choice = Choice {
        experiments: &[experiment.into()],
        profiles: &["quick".into()],
        claim: None,
        effort: Effort {
            runs: 10,
            seed: 1,
            threads: 1,
            only_published: true,
        },
    };
    replay(
        &choice,
        &Noise::of_json(RECORDED_NOISE).unwrap(),
        &mut |_| {},
    )
    .unwrap()
}

#[test]
fn a_run_takes_the_time_of_the_trials_that_did_not_rest() {
    let document = published("cat");
    let (plan, pace) = (&document.plans[0], document.plans[0].pace.unwrap());
    let whole_s = document.cases[0].blocks * plan.block_s.unwrap();
    let run_s = pace.run_s.unwrap();
    assert!(run_s < 0.95 * whole_s, "{run_s} of {whole_s}");
    assert!(run_s <= plan.time_budget_s, "{run_s}");
    assert!(pace.right > 0.0);
    let verdicts = pace.right + pace.wrong + pace.open;
    assert!((verdicts - pace.claims as f64).abs() < 1e-9, "{pace:?}");
}

#[test]
fn right_verdicts_a_minute_follow_time_and_common_claims() {
    let new = published("crossing");
    let mut old = new.clone();
    // As rules recorded it that let nothing rest, here in twice the time.
    for case in &mut old.cases {
        let run_s = case.run_s.take().unwrap();
        case.blocks = 2.0 * run_s / new.plans[0].block_s.unwrap();
    }
    let mut claims = old.plans[0].claims.iter_mut();
    let claim = claims.find(|claim| !claim.is_check).unwrap();
    for case in old.cases.iter_mut().filter(|case| case.claim == claim.id) {
        case.claim = "another".into();
    }
    claim.id = "another".into();
    let text = render_against(&old, &new).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| crossing"))
        .map(|line| line.split(" | ").collect())
        .collect();
    let [all, common] = &rows[..] else {
        panic!("{text}");
    };
    assert_eq!(all.last(), Some(&"2.00 |"), "{text}");
    assert_eq!((all[2], common[2]), ("4 → 4", "3 → 3"), "{text}");
}
