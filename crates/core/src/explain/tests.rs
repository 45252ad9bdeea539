//! Attribution on made-up stacks.

use toll_stats::Rng;

use super::*;
use crate::run::{Machine, ProfiledTrial, RunRecord, RunStatus, TrialRecord};
use crate::size;

const BLOCKS: u32 = 16;

const EXPERIMENT: &str = "
format = 1
name = 't'
[workload]
kind = 'write'
input = '1MiB'
[[factor]]
name = 'durability'
levels = ['none', 'fsync']
";

/// Makes a run without trials.
fn two_treatments() -> StoredRun {
    let experiment = crate::spec::parse(EXPERIMENT, "test", "quick").unwrap();
    let plan = crate::plan::Plan::new(&experiment, 1).unwrap();
    StoredRun {
        run: RunRecord {
            id: 1,
            uid: String::new(),
            experiment: "t".into(),
            title: String::new(),
            question: String::new(),
            profile: "quick".into(),
            seed: 1,
            created_at: String::new(),
            updated_at: None,
            status: RunStatus::Complete,
            stop_reason: None,
            toll_version: String::new(),
            command_line: String::new(),
            machine: Machine::default(),
            imported: false,
            variables: BTreeMap::new(),
        },
        experiment,
        treatments: plan.treatments,
        trials: Vec::new(),
        boots: Vec::new(),
        profiles: Vec::new(),
    }
}

fn kernel(name: &str) -> ProfiledFunction {
    ProfiledFunction {
        name: Some(name.into()),
        file: None,
    }
}

fn user(name: Option<&str>, file: &str) -> ProfiledFunction {
    ProfiledFunction {
        name: name.map(str::to_owned),
        file: Some(file.into()),
    }
}

/// Makes trials of two treatments. `time` gives the microseconds of a stack by treatment and
/// stack, to which noise of 2 % is added.
fn record(
    functions: Vec<ProfiledFunction>,
    stacks: &[(Activity, &[u32])],
    time: impl Fn(usize, usize) -> f64,
) -> ProfileRecord {
    let mut rng = Rng::new(7);
    let mut trials = Vec::new();
    for block in 0..BLOCKS {
        for treatment in [1, 0] {
            let of_stack = |(index, (activity, _)): (usize, &(Activity, &[u32]))| {
                let time_ns = time(treatment, index) * 1e3 * (1.0 + 0.02 * rng.normal());
                (*activity, index as u32, (2.0 * time_ns) as u64)
            };
            trials.push(ProfiledTrial {
                block,
                treatment,
                iterations: 2,
                samples: 100,
                times: stacks.iter().enumerate().map(of_stack).collect(),
                counts: BTreeMap::from([("minor_faults".into(), 10.0 + treatment as f64)]),
            });
        }
    }
    ProfileRecord {
        treatment: 1,
        reference: 0,
        functions,
        stacks: stacks.iter().map(|(_, stack)| stack.to_vec()).collect(),
        trials,
        ..ProfileRecord::default()
    }
}

/// A timed trial of one iteration.
fn timed((treatment, duration_ns): (usize, f64)) -> TrialRecord {
    TrialRecord {
        treatment,
        samples: BTreeMap::from([("duration_ns".into(), vec![duration_ns])]),
        ..TrialRecord::default()
    }
}

fn explained(record: ProfileRecord) -> Explanation {
    explain(&two_treatments(), &record).unwrap()
}

#[test]
fn a_difference_is_split_into_functions_and_waits_and_adds_up() {
    let functions = vec![
        user(Some("spin"), "prog"),
        kernel("vfs_read"),
        kernel("ksys_read"),
        kernel("do_syscall_64"),
        kernel("schedule"),
        kernel("anon_pipe_read"),
    ];
    let stacks: &[(Activity, &[u32])] = &[
        (Activity::OnCpu, &[0]),
        (Activity::OnCpu, &[1, 2, 3, 0]),
        (Activity::Blocked, &[4, 5, 2, 3, 0]),
        (Activity::WaitsForCpu, &[]),
    ];
    // The same noise and waits for a CPU on both sides.
    let times = [[100.0, 50.0, 50.0, 900.0], [600.0, 50.0, 350.0, 900.0]];
    let explanation = explained(record(functions, stacks, |treatment, stack| {
        times[treatment][stack]
    }));
    let names: Vec<&str> = explanation
        .rows
        .iter()
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(names, ["spin (prog)", "waits in anon_pipe_read (read)"]);
    assert_eq!((explanation.slower, explanation.faster), (1, 0));
    assert!((explanation.difference_ns.value / 800e3 - 1.0).abs() < 0.05);
    let shares: Vec<f64> = explanation
        .rows
        .iter()
        .map(|row| row.share.unwrap().value)
        .collect();
    assert!((shares[0] - 500.0 / 800.0).abs() < 0.02, "{shares:?}");
    assert!((shares[1] - 300.0 / 800.0).abs() < 0.02, "{shares:?}");
    let rest = explanation.not_attributed_share.unwrap();
    assert!((shares[0] + shares[1] + rest.value - 1.0).abs() < 0.01);
    let entries: Vec<&str> = explanation
        .entries
        .iter()
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(entries, ["programs themselves", "read"]);
    assert!(explanation.waits_for_cpu_ns > 800e3);
    assert_eq!(explanation.counts.len(), 1);
    assert_eq!(explanation.counts[0].difference.value, 1.0);
}

#[test]
fn rows_and_entries_begin_with_the_largest_difference() {
    let functions = vec![
        user(Some("spin"), "prog"),
        kernel("vfs_read"),
        kernel("ksys_read"),
        kernel("do_syscall_64"),
    ];
    let stacks: &[(Activity, &[u32])] = &[(Activity::OnCpu, &[0]), (Activity::OnCpu, &[1, 2, 3])];
    // Most time is in the program, and most of the difference in the system call.
    let times = [[500.0, 50.0], [600.0, 400.0]];
    let explanation = explained(record(functions, stacks, |treatment, stack| {
        times[treatment][stack]
    }));
    let names = |rows: &[ExplainedRow]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&explanation.rows), ["vfs_read (read)", "spin (prog)"]);
    assert_eq!(names(&explanation.entries), ["read", "programs themselves"]);
}

#[test]
fn the_treatment_that_takes_longer_is_found_out() {
    let functions = vec![user(Some("spin"), "prog")];
    let stacks: &[(Activity, &[u32])] = &[(Activity::OnCpu, &[0])];
    let explanation = explained(record(functions, stacks, |treatment, _| {
        [300.0, 100.0][treatment]
    }));
    assert_eq!((explanation.slower, explanation.faster), (0, 1));
    assert!(explanation.difference_ns.low > 0.0);
    assert!((explanation.rows[0].share.unwrap().value - 1.0).abs() < 1e-9);
}

#[test]
fn timed_trials_of_the_other_sign_are_told() {
    let functions = vec![user(Some("spin"), "prog")];
    let stacks: &[(Activity, &[u32])] = &[(Activity::OnCpu, &[0])];
    let mut stored = two_treatments();
    stored.trials = [(0, 90.0), (1, 100.0)].map(timed).to_vec();
    let record = record(functions, stacks, |treatment, _| [300.0, 100.0][treatment]);
    let explanation = explain(&stored, &record).unwrap();
    assert!((explanation.ratio - 3.0).abs() < 0.1, "{explanation:?}");
    assert!(explanation.notes[0].contains("the opposite, a ratio of 0.900"));
    stored.trials = [(0, 110.0), (1, 100.0)].map(timed).to_vec();
    let explanation = explain(&stored, &record).unwrap();
    assert_eq!((explanation.ratio, explanation.notes), (1.1, Vec::new()));
}

#[test]
fn functions_too_small_to_be_told_apart_are_a_group_together() {
    let mut functions = vec![user(Some("work"), "prog")];
    functions.extend((0..400).map(|index| user(Some(&format!("f{index}")), "libc.so.6")));
    let stacks: Vec<Vec<u32>> = (0..=400).map(|index| vec![index]).collect();
    let stacks: Vec<(Activity, &[u32])> = stacks
        .iter()
        .map(|stack| (Activity::OnCpu, &stack[..]))
        .collect();
    let explanation = explained(record(functions, &stacks, |treatment, stack| {
        match (stack, treatment) {
            (0, _) => 100.0,
            (_, 1) => 1.0,
            _ => 0.1,
        }
    }));
    let row = &explanation.rows[0];
    assert_eq!((row.name.as_str(), row.kind), ("libc.so.6", RowKind::Group));
    assert!(row.share.unwrap().value > 0.9, "{explanation:?}");
}

#[test]
fn identical_treatments_yield_rows_in_at_most_5_percent_of_runs() {
    let functions: Vec<_> = (0..30)
        .map(|index| user(Some(&format!("f{index}")), "prog"))
        .collect();
    let stacks: Vec<Vec<u32>> = (0..30).map(|index| vec![index]).collect();
    let mut rng = Rng::new(3);
    let mut with_rows = 0;
    let runs = size::runs(400);
    for _ in 0..runs {
        let mut trials = Vec::new();
        for block in 0..BLOCKS {
            for treatment in [0, 1] {
                let time = |stack: u32| {
                    (
                        Activity::OnCpu,
                        stack,
                        (1e5 * (1.0 + 0.3 * rng.normal()).max(0.0)) as u64,
                    )
                };
                trials.push(ProfiledTrial {
                    block,
                    treatment,
                    iterations: 1,
                    samples: 100,
                    times: (0..30).map(time).collect(),
                    counts: BTreeMap::new(),
                });
            }
        }
        let explanation = explained(ProfileRecord {
            treatment: 1,
            reference: 0,
            functions: functions.clone(),
            stacks: stacks.clone(),
            trials,
            ..ProfileRecord::default()
        });
        with_rows += usize::from(!explanation.rows.is_empty());
    }
    // 5 % and two standard errors of all runs.
    let most = (0.05 + 0.02 * size::widening()) * runs as f64;
    assert!(with_rows as f64 <= most, "{with_rows} of {runs}");
}

#[test]
fn a_profile_without_a_whole_block_explains_nothing() {
    let mut half = record(Vec::new(), &[(Activity::StartAndEnd, &[])], |_, _| 1.0);
    half.trials.retain(|trial| trial.treatment == 1);
    assert_eq!(explain(&two_treatments(), &half), None);
}
