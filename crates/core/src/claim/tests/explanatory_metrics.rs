//! Other metrics that are shown with a claim about time.

use super::*;
use model::ExplanatoryMetrics;

/// Returns the explanatory metrics of one claim, `o-sync` over `none` at 4 KiB. First calls
/// `change` for each trial with its samples, durability and block, to edit the samples.
fn with(
    blocks: u32,
    metric: &str,
    change: impl Fn(&mut BTreeMap<String, Vec<f64>>, &str, u32),
) -> Option<ExplanatoryMetrics> {
    let counters = "counters = ['dtlb-read-misses', 'cycles']\n";
    let toml = claim("c", "o-sync", "none", "direction = 'greater'");
    let mut stored = run(&toml, blocks, cost);
    stored.experiment.claims[0].metric = metric.to_owned();
    stored.experiment.counters = toml::from_str::<BTreeMap<String, Vec<String>>>(counters)
        .unwrap()
        .remove("counters")
        .unwrap();
    for trial in &mut stored.trials {
        let durability = &stored.treatments[trial.treatment].levels["durability"].text;
        change(&mut trial.samples, durability, trial.block);
    }
    analyse(&stored).verdicts.remove(0).explanatory_metrics
}

fn names(explanatory_metrics: &ExplanatoryMetrics) -> Vec<&str> {
    let differing = explanatory_metrics.differing.iter();
    differing.map(|sides| sides.metric.as_str()).collect()
}

#[test]
fn what_differs_is_told_with_its_ratio_counters_first_and_the_rest_by_name() {
    let found = with(10, "duration_ns", |samples, durability, block| {
        let synced = durability == "o-sync";
        let jitter = 1.0 + 0.001 * f64::from(block);
        let mut put = |name: &str, value: f64| {
            samples.insert(name.into(), vec![value * jitter]);
        };
        put("system_ns", if synced { 6e6 } else { 2e6 });
        put("user_ns", 1e6);
        put("counter.cycles", if synced { 4e6 } else { 1e6 });
        put("counter.cycles.running_ns", if synced { 4e6 } else { 1e6 });
        put("throughput_bytes_per_s", if synced { 1.0 } else { 9.0 });
    });
    let found = found.unwrap();
    assert_eq!(names(&found), ["counter.cycles", "system_ns"]);
    let ratio = found.differing[1].ratio.unwrap();
    assert!((ratio.value - 3.0).abs() < 1e-9, "{ratio:?}");
    assert!((ratio.confidence - CONFIDENCE).abs() < 1e-12 || ratio.confidence > CONFIDENCE);
    // Both sides make the same number of calls.
    assert_eq!(found.same, ["user_ns", "calls"]);
}

#[test]
fn a_difference_within_the_margin_or_without_a_side_is_not_told() {
    let found = with(10, "duration_ns", |samples, durability, block| {
        let synced = f64::from(u8::from(durability == "o-sync"));
        // 0.5 % apart, and one that goes up and down.
        samples.insert("user_ns".into(), vec![1e6 * (1.0 + 0.005 * synced)]);
        let sign = if block.is_multiple_of(2) { 1.0 } else { -1.0 };
        samples.insert("system_ns".into(), vec![1e6 * (1.0 + 0.3 * sign * synced)]);
        samples.insert("major_faults".into(), vec![0.0]);
    });
    let found = found.unwrap();
    assert!(found.differing.is_empty(), "{found:?}");
    assert_eq!(found.same, ["user_ns", "calls"]);
}

#[test]
fn a_side_of_nothing_has_no_ratio_but_is_told_if_every_block_agrees() {
    let found = with(10, "duration_ns", |samples, durability, block| {
        let synced = durability == "o-sync";
        samples.insert("major_faults".into(), vec![if synced { 64.0 } else { 0.0 }]);
        let rarely = synced && block == 3;
        samples.insert("minor_faults".into(), vec![f64::from(u8::from(rarely))]);
    });
    let found = found.unwrap();
    assert_eq!(names(&found), ["major_faults"]);
    let sides = &found.differing[0];
    assert_eq!((sides.of, sides.to, sides.ratio), (64.0, 0.0, None));
}

#[test]
fn few_blocks_tell_nothing() {
    let found = with(4, "duration_ns", |samples, durability, _| {
        let synced = durability == "o-sync";
        samples.insert("system_ns".into(), vec![if synced { 6e6 } else { 2e6 }]);
    });
    assert_eq!(found, None);
}

#[test]
fn claims_that_are_not_on_time_have_no_company() {
    let change = |samples: &mut BTreeMap<String, Vec<f64>>, durability: &str, _: u32| {
        let synced = durability == "o-sync";
        samples.insert("system_ns".into(), vec![if synced { 6e6 } else { 2e6 }]);
        samples.insert(
            "init_duration_ns".into(),
            vec![if synced { 6e6 } else { 2e6 }],
        );
        samples.insert(
            "init_minor_faults".into(),
            vec![if synced { 6.0 } else { 2.0 }],
        );
    };
    assert_eq!(with(10, "calls", change), None);
    // Initialisation is timed separately, and so are its causes.
    let found = with(10, "init_duration_ns", change).unwrap();
    assert_eq!(names(&found), ["init_minor_faults"]);
    assert!(found.same.is_empty());
}
