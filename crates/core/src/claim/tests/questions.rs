//! Questions for which a run goes on.

use super::*;
use crate::spec::ComparisonGoal;

#[test]
fn a_width_is_wanted_by_what_was_claimed_and_not_by_what_was_found() {
    let target = |rest: &str, duration: fn(&str, f64, u32) -> Option<f64>| {
        let stored = run(&claim("c", "o-sync", "none", rest), 10, duration);
        questions(&stored.experiment, &stored.treatments, &stored.trials, &[])[0].target
    };
    let other = |_: &str, _: f64, block: u32| Some(1.0 + f64::from(block));
    // A quarter of the way from 1 to 1.1 on a logarithmic scale, less than 5 %.
    let near = "direction = 'greater'\npublished = 1.1";
    assert_eq!(target(near, cost), target(near, other));
    assert!((target(near, cost) - 1.1_f64.ln() / 4.0).abs() < 1e-12);
    assert_eq!(target("direction = 'greater'\npublished = 150", cost), 0.05);
    // Half the margin, so that sameness can be shown.
    let same = "direction = 'equal'\nmargin = '2%'";
    assert!((target(same, cost) - 1.02_f64.ln() / 2.0).abs() < 1e-3);
}

#[test]
fn a_run_goes_on_for_what_is_open_alone() {
    let toml = claim("clear", "o-sync", "none", "direction = 'greater'")
        + &claim("close", "fsync", "none", "direction = 'greater'");
    let close = |durability: &str, buffer: f64, block: u32| {
        let value = cost(
            if durability == "fsync" {
                "none"
            } else {
                durability
            },
            buffer,
            block,
        )?;
        let noise = 0.9 + 0.3 * f64::from(block * 7 % 11) / 11.0;
        Some(if durability == "fsync" {
            value * noise
        } else {
            value
        })
    };
    let stored = run(&toml, 10, close);
    let all = questions(&stored.experiment, &stored.treatments, &stored.trials, &[]);
    let settled: Vec<(&str, bool)> = all
        .iter()
        .map(|one| {
            (
                one.id.as_str(),
                one.is_settled(ComparisonGoal::Precision, false),
            )
        })
        .collect();
    assert_eq!(settled, [("clear", true), ("close", false)]);
    let labels = all[1]
        .treatments
        .iter()
        .map(|one| &stored.treatments[*one].label);
    let labels: Vec<&String> = labels.collect();
    assert_eq!(labels.len(), 2);
    assert!(
        labels.iter().all(|label| !label.contains("o-sync")),
        "{labels:?}"
    );
}

#[test]
fn a_comparison_ends_by_its_goal_when_its_time_is_over() {
    use ComparisonGoal::{Decision, Precision, QuickAnswer};
    let question = |half_width: f64, is_decided: bool| Question {
        id: "x".into(),
        half_width,
        target: 0.05,
        is_decided,
        must_be_decided: false,
        outcome: None,
        treatments: Vec::new(),
    };
    let goals = [Precision, Decision, QuickAnswer];
    for (one, early, late) in [
        (question(0.01, true), true, [true; 3]),
        (question(0.01, false), false, [true, false, false]),
        (question(0.5, true), false, [false; 3]),
    ] {
        assert_eq!(
            goals.map(|goal| one.is_settled(goal, true)),
            [early; 3],
            "{one:?}"
        );
        assert_eq!(
            goals.map(|goal| one.is_settled(goal, false)),
            late,
            "{one:?}"
        );
    }
}
