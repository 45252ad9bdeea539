use toll_core::claim::model::Estimate;
use toll_stats::Rng;

use super::*;

/// Simulates values around 100 with a deviation of 2 %, higher by `deviations` deviations
/// from the place `step` on.
fn simulated(rng: &mut Rng, length: usize, step: usize, deviations: f64) -> Vec<f64> {
    let value = |place| {
        let height = if place >= step { deviations } else { 0.0 };
        100.0 * (0.02 * (rng.normal() + height)).exp()
    };
    (0..length).map(value).collect()
}

#[test]
fn flat_series_rarely_have_a_candidate_and_steps_of_three_deviations_do() {
    const SERIES: usize = 200;
    let mut rng = Rng::new(7);
    for length in [20, 50, 100] {
        let (mut flat, mut found) = (0, 0);
        for _ in 0..SERIES {
            let values = simulated(&mut rng, length, length, 0.0);
            flat += usize::from(!candidates(&values).is_empty());
            let values = simulated(&mut rng, length, length / 2, 3.0);
            let is_there = |place: &usize| place.abs_diff(length / 2) <= 2;
            found += usize::from(candidates(&values).iter().any(is_there));
        }
        assert!(flat * 10 <= SERIES, "{length}: {flat} flat");
        assert!(found * 10 >= SERIES * 9, "{length}: {found} found");
    }
}

#[test]
fn the_place_of_a_step_is_exact_where_values_repeat() {
    for step in 1..12 {
        let mut values = [100.0; 12];
        values[step..].fill(103.0);
        assert_eq!(candidates(&values), [step]);
    }
    assert_eq!(candidates(&[100.0; 12]), Vec::<usize>::new());
    assert_eq!(candidates(&[100.0, 200.0, 200.0]), Vec::<usize>::new());
}

fn record(commit: usize, machine: &str, run: &str, value: f64) -> Line {
    Line::Record(Record {
        commit: format!("{commit:040}"),
        run: run.into(),
        experiment: "commands".into(),
        created_at: String::new(),
        toll_version: String::new(),
        machine: machine.into(),
        measured: vec![Measured {
            benchmark: "sort".into(),
            metric: "duration_ns".into(),
            unit: "ns".into(),
            values: vec![value],
        }],
    })
}

fn branch(length: usize) -> Vec<Commit> {
    let commit = |place| Commit {
        hash: format!("{place:040}"),
        subject: format!("Commit {place}"),
    };
    (0..length).map(commit).collect()
}

#[test]
fn order_repetition_other_machines_and_other_branches_do_not_change_a_series() {
    let value = |place| if place < 8 { 100.0 } else { 110.0 };
    let line = |place: usize| record(place * 2, "a", &format!("run {place}"), value(place));
    let lines: Vec<Line> = (0..16).map(line).collect();
    let branch = branch(40);
    let found = series(&branch, &lines);
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    let [candidate] = one.candidates.as_slice() else {
        panic!("{one:?}")
    };
    assert_eq!(candidate.subject, "Commit 16");
    assert_eq!((candidate.suspects, candidate.state), (2, State::Unchecked));
    assert!((candidate.ratio - 1.1).abs() < 1e-9);
    let mut mixed = lines.clone();
    mixed.extend(lines);
    mixed.reverse();
    mixed.push(record(99, "a", "elsewhere", 1.0));
    assert_eq!(series(&branch, &mixed), found);
    mixed.push(record(3, "b", "run", 1.0));
    let apart = series(&branch, &mixed);
    assert_eq!((apart.len(), &apart[0]), (2, one));
}

#[test]
fn a_check_settles_its_candidate_alone() {
    let value = |place| if place < 8 { 100.0 } else { 110.0 };
    let mut lines: Vec<Line> = (0..16)
        .map(|place| record(place, "a", &format!("{place}"), value(place)))
        .collect();
    let mut check = Check {
        before: format!("{:040}", 7),
        commit: format!("{:040}", 8),
        experiment: "commands".into(),
        benchmark: "sort".into(),
        metric: "max_rss_bytes".into(),
        toll_version: String::new(),
        created_at: String::new(),
        ratio: Estimate {
            value: 1.1,
            low: 1.0,
            high: 1.2,
            confidence: 0.95,
        },
        blocks: 6,
        confirmed: true,
    };
    let state = |lines: &[Line]| series(&branch(16), lines)[0].candidates[0].state;
    lines.push(Line::Check(check.clone()));
    assert_eq!(state(&lines), State::Unchecked);
    check.metric = "duration_ns".into();
    lines.push(Line::Check(check));
    assert_eq!(state(&lines), State::Confirmed);
}

#[test]
fn lines_are_read_as_written_and_others_are_refused() {
    let line = record(3, "a", "run", 1.5);
    assert_eq!(parse(&line.text()), Ok(line.clone()));
    assert!(!line.text().contains('\n'));
    let damaged = &line.text()[..40];
    assert!(parse(damaged).is_err());
    assert!(parse(r#"{"kind":"of-the-future"}"#).is_err());
}
