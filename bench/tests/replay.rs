//! What the plans of the built-in claims can decide, and how often they are wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toll_bench::replay::{
    Case, Choice, Document, Effort, Noise, Pace, RECORDED_NOISE, Setup, Truth, promises, replay,
    simulate,
};
use toll_core::claim::model::Outcome;
use toll_core::spec::{Claim, Test, builtin, parse};
use toll_stats::{Rng, clopper_pearson};

fn setup(experiment: &str, profile: &str) -> Setup {
    let noise = Noise::of_json(RECORDED_NOISE).unwrap();
    Setup::new(experiment, profile, &noise).unwrap()
}

#[test]
fn a_quantity_that_is_moved_has_the_value_without_noise() {
    for (experiment, values) in [
        ("cat", &[0.5, 1.0, 40.0][..]),
        ("transfer", &[0.02, 1.3]),
        ("write", &[0.3, 0.9]),
        ("sweep", &[0.7, 1.2]),
    ] {
        let setup = setup(experiment, "standard");
        for studied in &setup.claims {
            // Values that a level, a share or the levels' range allows.
            let id = studied.claim.id.as_str();
            let values = match studied.claim.published {
                Some(published) if id.starts_with("cat.knee") && published > 2.0 => &[published],
                // From this level on its clock of 10 ms reads no time at all.
                _ if id == "write.buffer-threshold.zero" => &[16_384.0],
                _ if id.contains(".zero") || id.contains("fast-fs") => &[20_000.0],
                _ if id == "write.fs-order.corrected" => &[2.5],
                // The best over the worst is never below 1.
                _ if id.starts_with("cat.knee.plateau") => &[1.2],
                _ => values,
            };
            for value in values {
                let mut world = setup.world.clone();
                studied.target.put(*value, &mut world).unwrap();
                let found = setup.truth(studied, &world).1.unwrap();
                assert!(
                    (found / value - 1.0).abs() < 1e-9,
                    "{id}: {found}, not {value}"
                );
            }
        }
    }
}

#[test]
fn a_border_lies_between_two_verdicts() {
    for experiment in ["cat", "sweep", "transfer"] {
        let setup = setup(experiment, "quick");
        for studied in &setup.claims {
            for border in setup.borders(studied).unwrap() {
                let outcomes = [0.9999, 1.0001].map(|factor| {
                    let mut world = setup.world.clone();
                    studied
                        .target
                        .put(border.value * factor, &mut world)
                        .unwrap();
                    setup.truth(studied, &world).0
                });
                let has = |wanted| outcomes.contains(&wanted);
                assert!(
                    has(border.begins) && outcomes[0] != outcomes[1],
                    "{}: {outcomes:?} at {}",
                    studied.claim.id,
                    border.value
                );
            }
        }
    }
}

/// Asserts that a ratio drawn around some levels is estimated at its exact value at others.
fn assert_estimated(setup: &Setup, terms: &[(usize, f64)], exact: &[f64], drawn_from: &[f64]) {
    let mut rng = Rng::new(2);
    let of = |world: &[f64]| -> f64 { terms.iter().map(|(at, sign)| sign * world[*at]).sum() };
    let draws = (0..1000).map(|_| of(drawn_from) + setup.nodes.draw_sum(terms, &mut rng));
    let found = toll_stats::hodges_lehmann(&draws.collect::<Vec<_>>(), 0.9999);
    assert!(found.contains(of(exact)), "{terms:?}: {found:?}");
}

#[test]
fn a_value_that_trials_are_drawn_around_is_what_the_estimator_estimates() {
    let sweep = setup("sweep", "quick");
    let knee = sweep.claims.iter().find(|one| one.claim.id == "cat.knee");
    let knee = knee.unwrap();
    let border = sweep.borders(knee).unwrap().pop().unwrap().value;
    let mut exact = sweep.world.clone();
    knee.target.put(border, &mut exact).unwrap();
    let drawn_from = sweep.moved(knee, border).unwrap();
    for terms in knee.target.ratios(border) {
        assert_estimated(&sweep, &terms, &exact, &drawn_from);
    }
    let cat = setup("cat", "quick");
    for studied in cat.claims.iter().filter(|one| one.is_published_in_world) {
        for terms in studied.target.ratios(1.0) {
            assert_estimated(&cat, &terms, &cat.world, &cat.drawn_world);
        }
    }
}

#[test]
fn the_worlds_published_values_are_what_was_published() {
    let setup = setup("cat", "standard");
    for studied in &setup.claims {
        let Some(published) = studied.claim.published else {
            continue;
        };
        assert!(studied.is_published_in_world, "{}", studied.claim.id);
        let (_, found) = setup.truth(studied, &setup.world);
        let error = found.unwrap() / published - 1.0;
        assert!(error.abs() < 1e-9, "{}: {found:?}", studied.claim.id);
    }
}

#[test]
fn what_the_trials_of_a_block_have_in_common_stays() {
    let treatments: Vec<serde_json::Value> = setup("cat", "quick")
        .run
        .treatments
        .iter()
        .map(|treatment| {
            let levels = treatment.levels.iter();
            let levels = levels.map(|(name, level)| (name.clone(), level.text.clone().into()));
            serde_json::json!({
                "levels": serde_json::Value::Object(levels.collect()),
                "is_twin": treatment.twin_of.is_some(),
                "metrics": { "duration_per_byte_ns": {
                    "median": 1.0, "deviations": [-20000, 0, 5000, 30000, null, -1000],
                } },
            })
        })
        .collect();
    let noise = serde_json::json!({ "machine": "x", "runs": [{
        "experiment": "cat", "profile": "quick", "date": "", "blocks": 6, "block_s": 1.0,
        "treatments": treatments,
    }] });
    let noise = Noise::of_json(&noise.to_string()).unwrap();
    let setup = Setup::new("cat", "quick", &noise).unwrap();
    let mut rng = Rng::new(1);
    let (mut own, mut between) = (0.0, 0.0);
    for _ in 0..500 {
        let drawn = setup.nodes.draw(&mut rng);
        own += drawn[0].abs();
        between += (drawn[1] - drawn[0]).abs();
    }
    // One block in six was not recorded, so each treatment draws its own deviation there.
    assert!(own > 0.0 && between < 0.5 * own, "{between} of {own}");
}

/// Returns all cases of some claims in the standard profile. `TOLL_REPLAY_RUNS`, which
/// `make test-rest` sets, is the number of runs; with it all claims of the experiments are
/// simulated.
fn simulated(claims: &[(&str, &str)]) -> Vec<(Setup, Vec<Case>)> {
    let runs = std::env::var("TOLL_REPLAY_RUNS").ok();
    let runs = runs.map(|runs| runs.parse().expect("it is a number of runs"));
    let effort = Effort {
        runs: runs.unwrap_or(20),
        seed: 1,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        only_published: false,
    };
    let each = claims.iter().map(|(experiment, start)| {
        let mut setup = setup(experiment, "standard");
        if runs.is_none() {
            setup.study(start);
        }
        let cases = simulate(&setup, effort).0;
        assert!(!cases.is_empty(), "{experiment} {start}");
        (setup, cases)
    });
    each.collect()
}

/// Returns, by experiment and id, the claims with a published value that a run of the standard
/// profile can test, each with the reason in its file why it may stay undecided.
fn published_claims() -> BTreeMap<(String, String), Option<String>> {
    let mut found = BTreeMap::new();
    for builtin in builtin::BUILTINS {
        let experiment = parse(builtin.toml, builtin.name, "standard").unwrap();
        let claims = experiment.claims.into_iter();
        let is_tested =
            |one: &Claim| one.differ_by.is_none() && !matches!(one.test(), Test::Never(_));
        let tested = claims.filter(is_tested);
        for claim in tested.filter(|one| one.published.is_some()) {
            found.insert((builtin.name.to_owned(), claim.id), claim.underpowered);
        }
    }
    found
}

#[test]
fn a_claim_that_the_kept_replay_finds_undecided_says_why_and_no_other_does() {
    const ENOUGH: f64 = 0.8;
    const AMPLE: f64 = 0.9;
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/replay.json");
    let kept = Document::read(&[kept]).unwrap();
    let claims = published_claims();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    let cases = kept.cases.iter();
    for case in cases.filter(|one| one.profile == "standard" && one.truth == Truth::Published) {
        let key = (case.experiment.clone(), case.claim.clone());
        seen.insert(key.clone());
        let Some(power) = case.power() else { continue };
        match claims.get(&key) {
            None => wrong.push(format!("{}: no experiment file has this claim", case.claim)),
            Some(None) if power < ENOUGH => {
                wrong.push(format!("{}: power {power:.2} without a reason", case.claim));
            }
            Some(Some(why)) if power > AMPLE => {
                wrong.push(format!("{}: power {power:.2}, despite {why:?}", case.claim));
            }
            Some(_) => {}
        }
    }
    let plans = kept.plans.iter().filter(|one| one.profile == "standard");
    let left_out = plans.flat_map(|plan| plan.left_out.iter().map(|(id, _)| id));
    let left_out: BTreeSet<&String> = left_out.collect();
    let unseen = claims.keys().filter(|key| !seen.contains(*key));
    for (_, id) in unseen.filter(|(_, id)| !left_out.contains(id)) {
        wrong.push(format!("{id}: not in results/replay.json; run make replay"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 100, "{} claims", seen.len());
}

#[test]
fn a_published_value_is_decided_or_the_file_says_why_not() {
    for (setup, cases) in simulated(&[("cat", "cat.swept")]) {
        for case in cases.iter().filter(|one| one.truth == Truth::Published) {
            let is_it = |one: &&toll_bench::replay::Studied| one.claim.id == case.claim;
            let claim = &setup.claims.iter().find(is_it).unwrap().claim;
            let right = match case.right {
                Some(Outcome::Supported) => case.supported,
                _ => case.refuted,
            };
            // The share may be lower only by chance, or with a reason.
            let power = clopper_pearson(right, case.runs, 0.99).high;
            assert!(power >= 0.8 || claim.underpowered.is_some(), "{case:?}");
        }
    }
}

#[test]
fn at_most_one_in_twenty_verdicts_is_wrong_where_verdicts_change() {
    for (_, cases) in simulated(&[("cat", "cat.swept"), ("crossing", "crossing.copy")]) {
        let borders = cases
            .iter()
            .filter(|one| matches!(one.truth, Truth::SupportedBorder | Truth::RefutedBorder));
        let borders: Vec<&Case> = borders.collect();
        assert!(!borders.is_empty());
        for case in borders {
            let wrong = clopper_pearson(case.wrong(), case.runs, 0.99).low;
            assert!(wrong <= 0.05, "{case:?}");
        }
    }
}

#[test]
fn a_run_takes_the_time_of_the_trials_that_did_not_rest() {
    let choice = Choice {
        experiments: &["cat".into()],
        profiles: &["quick".into()],
        claim: None,
        effort: Effort {
            runs: 10,
            seed: 1,
            threads: 1,
            only_published: true,
        },
    };
    let noise = Noise::of_json(RECORDED_NOISE).unwrap();
    let document = replay(&choice, &noise, &mut |_| {}).unwrap();
    let plan = &document.plans[0];
    let pace = Pace::from_cases(&document, plan);
    let whole_s = document.cases[0].blocks * plan.block_s.unwrap();
    let run_s = pace.run_s.unwrap();
    assert!(run_s < 0.95 * whole_s, "{run_s} of {whole_s}");
    assert!(run_s <= plan.time_budget_s, "{run_s}");
    assert!(pace.right > 0.0);
    let verdicts = pace.right + pace.wrong + pace.open;
    assert!((verdicts - pace.claims as f64).abs() < 1e-9, "{pace:?}");
}

/// Checks how often verdicts of either grade are wrong, with simulated runs of each kind of noise
/// and plan: ten times `TOLL_REPLAY_RUNS`, or 60 if that is not set.
#[test]
fn at_most_one_in_twenty_verdicts_is_wrong_by_the_promise_of_its_grade() {
    let runs = std::env::var("TOLL_REPLAY_RUNS").ok();
    let runs = runs.map_or(6, |runs| {
        runs.parse::<usize>().expect("it is a number of runs")
    }) * 10;
    let kinds = promises::Noise::all();
    let found: Vec<promises::Promise> = std::thread::scope(|scope| {
        let of_kind = |noise| promises::PLANS.map(|plan| promises::simulate(noise, plan, runs));
        let running: Vec<_> = kinds
            .iter()
            .map(|kind| scope.spawn(move || of_kind(*kind)))
            .collect();
        let joined = running
            .into_iter()
            .map(|thread| thread.join().expect("a kind ends"));
        joined.flatten().collect()
    });
    for one in &found {
        // Distant noise on one side makes log-ratios asymmetric.
        for wrong in [one.family_wise_wrong, one.family_wise_wrong_on_borders] {
            assert!(clopper_pearson(wrong, runs, 0.999).low <= 0.055, "{one:?}");
        }
        // A share of a run is between 0 and 1, so its variance is at most its mean.
        for rate in [
            one.false_discovery_rate,
            one.false_discovery_rate_on_borders,
        ] {
            assert!(rate <= 0.05 + 3.3 * (0.05 / runs as f64).sqrt(), "{one:?}");
        }
    }
    let mean =
        |of: fn(&promises::Promise) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    assert!(mean(|one| one.false_discovery_rate) <= 0.05);
    assert!(mean(|one| one.family_wise_wrong as f64) / runs as f64 <= 0.05);
    // Otherwise the promise would be empty.
    assert!(mean(|one| one.decided) > 0.5);
}
