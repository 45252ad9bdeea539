//! Trials under a memory limit: they use swap and a control group of the run's own. Both are gone
//! afterwards, however the run ends.

use std::path::PathBuf;

use toll_testing::{Bench, all_are, capability, list, skip, wait_until};

const EXPERIMENT: &str = r#"
format = 1
name = "pressed"
title = "pressed"
question = "pressed?"
metric = "duration_ns"

[workload]
kind = "memory"
buffer = "16MiB"
order = "random"
steps = 64
limit = "64MiB"

[[factor]]
name = "pressure"
levels = ["none", "competing"]

[run]
iterations = 1
"#;

/// Returns whether this machine lacks anything that a limit needs, and prints the skip with the
/// reason.
fn is_skipped(bench: &Bench) -> bool {
    match capability(bench, "limit on memory, with swap") {
        Ok(()) => false,
        Err(reason) => {
            skip(&format!("a memory limit is not available: {reason}"));
            true
        }
    }
}

/// Returns the active swap files in a test's directory.
fn swap_files(bench: &Bench) -> Vec<String> {
    let own = bench.path("").display().to_string();
    let list = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let is_own = |line: &&str| line.starts_with(&own);
    list.lines().filter(is_own).map(str::to_owned).collect()
}

/// Returns the control groups that a process made.
fn control_groups(pid: u32) -> Vec<PathBuf> {
    fn walk(directory: PathBuf, prefix: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    found.push(entry.path());
                }
                walk(entry.path(), prefix, found);
            }
        }
    }
    let mut found = Vec::new();
    walk("/sys/fs/cgroup".into(), &format!("toll-{pid}-"), &mut found);
    found
}

#[test]
fn a_trial_under_pressure_runs_and_leaves_neither_swap_nor_group() {
    let bench = Bench::new();
    if is_skipped(&bench) {
        return;
    }
    bench.write("pressed.toml", EXPERIMENT);
    let arguments = [
        "run",
        "pressed.toml",
        "-r",
        "2",
        "--no-html",
        "-q",
        "--json",
    ];
    let run = bench.json(&arguments);
    let trials = list(&run["runs"][0]["trials"]);
    // Includes the A/A twin.
    assert_eq!(trials.len(), 6, "{run:#}");
    all_are("completed", trials);
    assert_eq!(swap_files(&bench), Vec::<String>::new());
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

/// The whole working set exceeds the limit; the hot pages alone do not.
const SETS: &str = r#"
format = 1
name = "sets"
title = "sets"
question = "spared?"
metric = "hot_major_faults"

require = ["set != executable or mapping == file-private", "set == executable or mapping == anonymous"]

[workload]
kind = "reclaim"
hot = "8MiB"
# Both are well below the limit and its swap together, which other tests may use at the same time.
stream = "72MiB"
limit = "64MiB"
processes = 2

[[factor]]
name = "set"
levels = ["private-hot", "shared-hot", "executable"]

[[factor]]
name = "mapping"
levels = ["anonymous", "file-private"]
"#;

#[test]
fn a_set_larger_than_its_limit_is_swapped_and_worked_on_all_the_same() {
    let bench = Bench::new();
    if is_skipped(&bench) {
        return;
    }
    bench.write("sets.toml", SETS);
    let run = bench.measured("sets.toml -r 2");
    let trials = list(&run["trials"]);
    // Includes the A/A twin.
    assert_eq!(trials.len(), 8, "{run:#}");
    let mut swapped = 0.0;
    for trial in trials {
        assert_eq!(trial["state"], "completed", "{trial:#}");
        let bytes = trial["samples"]["swapped_out_bytes"][0].as_f64();
        swapped += bytes.unwrap_or(0.0);
    }
    assert!(swapped > 0.0, "no page was swapped out: {trials:#?}");
    assert_eq!(swap_files(&bench), Vec::<String>::new());
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_run_under_pressure_is_cleared_by_the_doctor() {
    let bench = Bench::new();
    if is_skipped(&bench) {
        return;
    }
    bench.write("pressed.toml", EXPERIMENT);
    let arguments = "run pressed.toml -r 1000 -L steps=100000 --no-html -q";
    let mut running = bench.start(arguments);
    let pid = running.0.id();
    wait_until("a trial runs under the limit", || {
        control_groups(pid).iter().any(|group| {
            std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|list| !list.is_empty())
        })
    });
    assert_eq!(swap_files(&bench).len(), 1);
    running.kill();
    let output = bench.ok("doctor --restore").stdout;
    assert!(output.contains("cleared after a killed run"), "{output}");
    assert_eq!(swap_files(&bench), Vec::<String>::new());
    assert_eq!(control_groups(pid), Vec::<PathBuf>::new());
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn without_a_limit_to_be_had_the_treatment_is_skipped_with_the_reason() {
    let bench = Bench::new();
    if capability(&bench, "limit on memory, with swap").is_ok() {
        // Even where limits work, a limit above all memory shows the message of a missing one.
        bench.write("pressed.toml", EXPERIMENT);
        let arguments = "run pressed.toml -L limit=64GiB --dry-run";
        let output = bench.ok(arguments).stdout;
        let skipped = output
            .lines()
            .find(|line| line.trim_start().starts_with("competing"));
        assert!(
            skipped
                .unwrap()
                .contains("(skipped: 65536 MiB of memory are needed"),
            "{output}"
        );
        return;
    }
    bench.write("pressed.toml", EXPERIMENT);
    let output = bench.ok("run pressed.toml --dry-run").stdout;
    let skipped = output
        .lines()
        .find(|line| line.trim_start().starts_with("competing"));
    assert!(skipped.unwrap().contains("(skipped: "), "{output}");
}
