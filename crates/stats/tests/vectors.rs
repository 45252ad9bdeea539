//! Tests the crate against `SciPy`, `NumPy`, statsmodels and brute force: the values in
//! `vectors.json`, which `tools/stats-vectors.py` writes.

use serde_json::Value;
use toll_stats::{
    Interval, Region, Rng, decision_p, fit_cost_model, hodges_lehmann, holm, mean, median_interval,
    normal_cdf, normal_quantile, quantile, standard_deviation,
};

fn section(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let rows = all[name].as_array().unwrap().clone();
    assert!(!rows.is_empty(), "section {name} is empty");
    rows
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn integers(value: &Value) -> Vec<u64> {
    let integer = |value: &Value| value.as_u64().unwrap();
    value.as_array().unwrap().iter().map(integer).collect()
}

#[track_caller]
fn assert_near(actual: f64, expected: f64, relative: f64, row: &Value) {
    let difference = (actual - expected).abs();
    assert!(
        difference <= relative * expected.abs() + 1e-300,
        "{actual} is not {expected} (off by {difference}) in {row}"
    );
}

/// For values that result from a subtraction. Their error can only be small relative to the
/// largest input value.
#[track_caller]
fn assert_near_beside(actual: f64, expected: f64, values: &[f64], row: &Value) {
    let scale = values.iter().fold(1e-300, |m: f64, x| m.max(x.abs()));
    assert!(
        (actual - expected).abs() <= 1e-14 * scale,
        "{actual} is not {expected} in {row}"
    );
}

#[test]
fn quantiles_and_moments_are_those_of_numpy() {
    for row in section("quantiles") {
        let values = numbers(&row["values"]);
        let expected = numbers(&row["quantiles"]);
        for (p, expected) in numbers(&row["probabilities"]).into_iter().zip(expected) {
            assert_near_beside(quantile(&values, p), expected, &values, &row);
        }
        assert_near_beside(mean(&values), number(&row["mean"]), &values, &row);
        match row["standard_deviation"].as_f64() {
            Some(sd) => assert_near_beside(standard_deviation(&values), sd, &values, &row),
            None => assert!(standard_deviation(&values).is_nan()),
        }
    }
}

#[test]
fn the_normal_distribution_is_that_of_scipy_far_into_the_tail() {
    for row in section("normal") {
        assert_near(
            normal_cdf(number(&row["x"])),
            number(&row["cdf"]),
            4e-13,
            &row,
        );
    }
    for row in section("normal_quantiles") {
        let x = normal_quantile(number(&row["p"]));
        assert!(
            (x - number(&row["x"])).abs() <= 4e-15 * x.abs(),
            "{x} in {row}"
        );
    }
}

#[test]
fn intervals_of_a_centre_are_those_of_every_sign_pattern() {
    for row in section("centre_intervals") {
        let values = numbers(&row["values"]);
        let check = |method: fn(&[f64], f64) -> Interval, key: &str| {
            for expected in row[key].as_array().unwrap() {
                let interval = method(&values, number(&expected["confidence"]));
                assert_near_beside(interval.low, number(&expected["low"]), &values, &row);
                assert_near_beside(interval.high, number(&expected["high"]), &values, &row);
                let achieved = number(&expected["achieved"]);
                assert!((interval.confidence - achieved).abs() < 1e-14, "{row}");
            }
        };
        check(hodges_lehmann, "signed_rank");
        check(median_interval, "order");
        let estimate = hodges_lehmann(&values, 0.9).estimate;
        assert_near_beside(estimate, number(&row["pseudo_median"]), &values, &row);
    }
}

#[test]
fn signed_rank_p_values_are_those_of_scipy() {
    for row in section("wilcoxon") {
        let values = numbers(&row["values"]);
        let p = decision_p(&values, Region::Below(number(&row["null"])));
        assert_near(p, number(&row["two-sided"]), 1e-12, &row);
    }
}

#[test]
fn ranks_for_many_values_are_those_of_scipys_binomial() {
    for row in section("large_order") {
        let n = row["n"].as_u64().unwrap();
        let values: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        let interval = median_interval(&values, number(&row["confidence"]));
        assert_eq!(interval.low, number(&row["low_rank"]), "{row}");
        assert_eq!(interval.high, n as f64 + 1.0 - interval.low, "{row}");
        assert_near(interval.confidence, number(&row["achieved"]), 1e-11, &row);
    }
}

#[test]
fn holms_procedure_is_that_of_statsmodels() {
    for row in section("holm") {
        let alpha = number(&row["alpha"]);
        let p_values = numbers(&row["p_values"]);
        let steps = holm(&p_values, alpha);
        let adjusted = numbers(&row["adjusted"]);
        let rejected = row["rejected"].as_array().unwrap();
        assert_eq!(steps.len(), adjusted.len());
        for (i, step) in steps.iter().enumerate() {
            assert_near(step.adjusted_p, adjusted[i], 1e-12, &row);
            assert_eq!(
                step.rejected,
                rejected[i].as_bool().unwrap(),
                "{i} in {row}"
            );
            assert_eq!(step.rejected, p_values[i] <= step.level, "{i} in {row}");
        }
    }
}

#[test]
fn cost_models_are_the_non_negative_least_squares_of_scipy() {
    for row in section("cost_models") {
        let [calls, bytes, time] = ["calls", "bytes", "time"].map(|key| numbers(&row[key]));
        let model = fit_cost_model(&calls, &bytes, &time).unwrap();
        assert_near(model.per_call, number(&row["per_call"]), 1e-9, &row);
        assert_near(model.per_byte, number(&row["per_byte"]), 1e-9, &row);
        let near = |actual: f64, key: &str| (actual - number(&row[key])).abs() < 1e-12;
        assert!(near(model.relative_residual_rms, "rms"), "{model:?} {row}");
        assert!(near(model.relative_residual_max, "max"), "{model:?} {row}");
    }
}

#[test]
fn random_numbers_are_those_of_an_independent_transcription() {
    for row in section("random_numbers") {
        let seed = row["seed"].as_u64().unwrap();
        let mut rng = Rng::new(seed);
        for expected in integers(&row["words"]) {
            assert_eq!(rng.next_u64(), expected, "seed {seed}");
        }
        let mut rng = Rng::new(seed);
        for (bound, expected) in integers(&row["bounds"])
            .into_iter()
            .zip(integers(&row["below"]))
        {
            assert_eq!(rng.below(bound as usize) as u64, expected, "seed {seed}");
        }
        let mut order: Vec<u64> = (0..10).collect();
        Rng::new(seed).shuffle(&mut order);
        assert_eq!(order, integers(&row["shuffled"]), "seed {seed}");
        assert_eq!(Rng::new(seed).uniform(), number(&row["uniform"]));
        assert_near(Rng::new(seed).normal(), number(&row["normal"]), 1e-14, &row);
        let child = Rng::new(seed).fork(3);
        assert_eq!(child.clone().next_u64(), row["fork_3"].as_u64().unwrap());
        let grandchild = child.fork(4).next_u64();
        assert_eq!(grandchild, row["fork_3_fork_4"].as_u64().unwrap());
    }
}
