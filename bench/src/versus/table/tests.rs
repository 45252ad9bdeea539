use super::*;
use crate::machine::Machine;
use crate::versus::Comparison;
use crate::versus::decision::is_right;
use crate::versus::tool::answer_at;

fn one(tool: Tool, difference_percent: u32, setting: &str, p: f64, wall_s: f64) -> Comparison {
    let ratio = 1.0 + f64::from(difference_percent) / 100.0;
    Comparison {
        tool,
        condition: Condition::Quiet,
        difference_percent,
        setting: setting.to_owned(),
        answer: answer_at(p, ratio, LEVEL),
        p: (tool == Tool::Hyperfine).then_some(p),
        ratio,
        wall_s,
    }
}

fn document(comparisons: Vec<Comparison>) -> Document {
    Document {
        version: super::super::VERSION,
        date: "2026-01-01 00:00:00 UTC".into(),
        command_line: "bench-hyperfine".into(),
        seed: 1,
        machine: Machine::inspect(),
        versions: vec!["toll 0".into(), "hyperfine 0".into()],
        work: (2000, 1e7),
        different: 5,
        comparisons,
        cut: false,
    }
}

/// 20 identical pairs, of which hyperfine calls three different.
fn identical() -> Vec<Comparison> {
    let ps = (0..20).map(|i| if i < 3 { 0.001 * f64::from(i + 1) } else { 0.4 });
    let hyperfine = ps.map(|p| one(Tool::Hyperfine, 0, "", p, 6.0));
    let toll = (0..20).map(|_| one(Tool::Toll, 0, "", 1.0, 1.0));
    hyperfine.chain(toll).collect()
}

#[test]
fn false_alarms_are_counted_with_their_interval() {
    let text = render(&document(identical()));
    assert!(
        text.contains("| quiet | hyperfine | 3 of 20 | 15.0 % [3.2, 37.9] | 6.00 s | no |"),
        "{text}"
    );
    assert!(
        text.contains("| quiet | toll | 0 of 20 | 0.0 % [0.0, 16.8] | 1.00 s | yes |"),
        "{text}"
    );
}

#[test]
fn a_level_is_made_stricter_only_where_it_raises_too_many_alarms() {
    let all = document(identical());
    // One of 20 may be below it.
    assert_eq!(calibrated_level(&all, Condition::Quiet), 0.002);
    assert_eq!(calibrated_level(&all, Condition::Drift), LEVEL);
    let none = document(
        (0..20)
            .map(|_| one(Tool::Hyperfine, 0, "", 0.3, 1.0))
            .collect(),
    );
    assert_eq!(calibrated_level(&none, Condition::Quiet), LEVEL);
}

#[test]
fn the_time_is_that_of_the_first_setting_that_is_right_often_enough() {
    let mut made = identical();
    for (setting, p, wall_s) in [
        ("--runs 10", 0.2, 1.0),
        ("--runs 20", 0.01, 2.0),
        ("--runs 40", 1e-6, 4.0),
    ] {
        made.extend((0..5).map(|_| one(Tool::Hyperfine, 5, setting, p, wall_s)));
    }
    made.extend((0..5).map(|_| one(Tool::Toll, 5, "", 0.0, 1.0)));
    let text = render(&document(made));
    let row = text
        .lines()
        .find(|line| line.starts_with("| quiet | 5 %"))
        .unwrap();
    for cell in [
        "| 1.00 s, defaults, 5 of 5 |",
        "| 2.00 s, `--runs 20`, 5 of 5 |",
        "| 4.00 s, `--runs 40`, 5 of 5 (p < 2.00e-3) |",
        "| 0.25 | yes |",
    ] {
        assert!(row.contains(cell), "{cell} in {row}");
    }
}

#[test]
fn who_is_not_right_in_four_times_the_time_takes_longer_than_that() {
    let mut made = identical();
    made.extend((0..5).map(|_| one(Tool::Toll, 5, "--runs 20", 0.0, 1.0)));
    made.extend((0..2).map(|_| one(Tool::Hyperfine, 5, "--runs 40", 0.5, 3.0)));
    made.extend((0..2).map(|_| one(Tool::Hyperfine, 5, "--runs 80", 0.5, 6.0)));
    let text = render(&document(made));
    let row = text.lines().find(|line| line.starts_with("| quiet | 5 %"));
    let row = row.unwrap();
    assert!(row.contains("| over 6.00 s, `--runs 80` |"), "{row}");
    assert!(row.ends_with("| under 0.17 | yes |"), "{row}");
}

#[test]
fn a_setting_that_was_cut_short_shows_nothing() {
    let mut made = identical();
    made.extend((0..4).map(|_| one(Tool::Toll, 5, "--runs 6", 0.0, 1.0)));
    let text = render(&document(made));
    let row = text.lines().find(|line| line.starts_with("| quiet | 5 %"));
    assert!(row.unwrap().contains("| – | – |"), "{row:?}");
}

#[test]
fn a_decision_on_the_wrong_side_is_not_right() {
    let mut wrong = one(Tool::Hyperfine, 5, "", 1e-9, 1.0);
    wrong.ratio = 0.9;
    assert!(!is_right(&wrong, LEVEL));
    let mut better = one(Tool::Toll, 5, "", 0.0, 1.0);
    assert!(is_right(&better, LEVEL));
    better.answer = Answer::Shorter;
    assert!(!is_right(&better, LEVEL));
}
