//! What the plans of the built-in claims can decide, and how often they are wrong.

use toll_bench::replay::{Case, Effort, Noise, RECORDED_NOISE, Setup, Truth, simulate};
use toll_core::claim::model::Outcome;
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
    for experiment in ["cat", "transfer"] {
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
    // One block in six was not recorded, so that each draws its own there.
    assert!(own > 0.0 && between < 0.5 * own, "{between} of {own}");
}

/// All cases of some claims in the standard profile. `TOLL_REPLAY_RUNS`, which `make
/// test` sets, simulates so many runs, and all claims of their experiments.
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
            // Fewer only by chance, or with a reason.
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
