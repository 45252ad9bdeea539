//! The probe of the next trial, which is started while a trial is recorded. It is never started
//! during a measurement, nor when no trial follows.

use serde_json::Value;
use toll_testing::{Bench, TOLL, can_trace, list};

use crate::settings::Settings;

/// A command that counts the processes that `toll` has started. Its parent is the probe, whose
/// parent is `toll`.
const COUNTS: &str = "p=$(cut -d' ' -f4 /proc/$PPID/stat); wc -w </proc/$p/task/$p/children";

/// Writes an experiment that counts these processes in trials of two treatments.
fn counting(bench: &Bench, run: &str) -> String {
    let script = bench.write("count.sh", COUNTS);
    let toml = format!(
        "format = 1\nname = 'counting'\n[workload]\nkind = 'command'\n\
         command = 'sh {} {{how}}'\n[metrics.probes]\npattern = '([0-9]+)'\n\
         [[factor]]\nname = 'how'\nlevels = ['a', 'b']\n[run]\n{run}\n",
        script.display()
    );
    bench.write("counting.toml", &toml).display().to_string()
}

#[test]
fn no_other_probe_is_there_while_one_is_measured() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let file = counting(&bench, "iterations = 2");
    let run = bench.measured(&["-r", "5", &file]);
    let trials = list(&run["trials"]);
    assert!(trials.len() >= 10, "{run:#}");
    for trial in trials {
        assert_eq!(
            trial["samples"]["probes"],
            serde_json::json!([1.0, 1.0]),
            "{trial:#}"
        );
    }
    settings.are_back_at_once();
}

#[test]
fn a_probe_that_no_trial_came_for_is_ended_with_the_run() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    // The run ends before its maximum of blocks, so a next trial was expected.
    let file = counting(&bench, "min_blocks = 1\nmax_blocks = 500");
    let run = bench.measured(&[&file]);
    let reason = run["run"]["stop_reason"].to_string();
    assert!(reason.contains("nothing was left to decide"), "{run:#}");
    settings.are_back_at_once();
}

#[test]
fn the_next_probe_is_started_before_a_long_trial_is_committed() {
    let bench = Bench::new();
    if !can_trace(&bench) {
        return;
    }
    let trace = bench.path("trace").display().to_string();
    let ran = bench.shell(&format!(
        "strace -f -o {trace} -e trace=execve,fsync,fdatasync {TOLL} run -N -q --no-html -r 4 \
         'sleep 0.15'"
    ));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let trace = bench.read("trace");
    // There is one measured command for each trial, and the twin has as many trials.
    let lines: Vec<&str> = trace.lines().collect();
    let is_probe = |line: &&&str| line.contains("execve(") && line.contains("/toll-probe\"");
    let is_commit = |line: &&&str| line.contains("fsync(") || line.contains("fdatasync(");
    let is_command = |line: &&&str| line.contains("execve(") && line.contains("[\"sleep\"");
    let trials: Vec<usize> = (0..lines.len())
        .filter(|line| is_command(&&lines[*line]))
        .collect();
    assert_eq!(trials.len(), 8, "{trace}");
    for pair in trials.windows(2) {
        let between = &lines[pair[0]..pair[1]];
        let probe = between.iter().position(|line| is_probe(&line));
        let commit = between.iter().position(|line| is_commit(&line));
        assert!(probe.is_some() && commit.is_some(), "{trace}");
        assert!(probe < commit, "{trace}");
    }
    let after = &lines[trials[7]..];
    assert!(!after.iter().any(|line| is_probe(&line)), "{trace}");
}

#[test]
fn short_trials_are_committed_together() {
    let bench = Bench::new();
    if !can_trace(&bench) {
        return;
    }
    let trace = bench.path("trace").display().to_string();
    let run = format!("strace -f -o {trace} -e trace=fsync,fdatasync {TOLL} run -N -q --no-html");
    let commits = |options: &str| {
        let ran = bench.shell(&format!("{run} {options}"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        bench.read("trace").matches("sync(").count()
    };
    // Each long trial is committed alone; the remaining commits belong to the run itself.
    let (own, short) = (commits("-r 4 'sleep 0.15'") - 8, commits("-r 40 true"));
    let trials = bench.json("export last --json -")["trials"].clone();
    let run_ns = |trial: &Value| trial["run_ns"].as_u64().unwrap();
    let run_ns = list(&trials).iter().map(run_ns).max().unwrap();
    // One commit per 0.1 s, and a few when SQLite checkpoints its log.
    let due = run_ns as usize / 100_000_000;
    assert!(
        short <= own + due + 8,
        "{short} commits of 80 trials in {run_ns} ns, {own} of the run"
    );
    assert_eq!(trials.as_array().unwrap().len(), 80);
}

#[test]
fn each_probe_has_the_padding_of_its_own_trial() {
    let bench = Bench::new();
    let script = bench.write("padding.sh", "printf %s \"$TOLL_PADDING\" | wc -c");
    let toml = format!(
        "format = 1\nname = 'padding'\n[workload]\nkind = 'command'\ncommand = 'sh {}'\n\
         [metrics.padding]\npattern = '([0-9]+)'\n",
        script.display()
    );
    bench.write("padding.toml", &toml);
    let padding = || -> Vec<f64> {
        let run = "run -q --no-html --json -r 6 --seed 7 padding.toml";
        let document: Value = bench.json(run)["runs"][0].clone();
        let trials = list(&document["trials"]);
        let mut of: Vec<(u64, u64, f64)> = trials
            .iter()
            .map(|trial| {
                let place = |name: &str| trial[name].as_u64().expect("it is a number");
                let bytes = trial["samples"]["padding"][0]
                    .as_f64()
                    .expect("it is a number");
                (place("block"), place("position"), bytes)
            })
            .collect();
        of.sort_by_key(|(block, position, _)| (*block, *position));
        of.into_iter().map(|(_, _, bytes)| bytes).collect()
    };
    let first = padding();
    assert_eq!(first, padding());
    let all: std::collections::BTreeSet<u64> = first.iter().map(|bytes| *bytes as u64).collect();
    assert!(all.len() > first.len() / 2, "{first:?}");
}
