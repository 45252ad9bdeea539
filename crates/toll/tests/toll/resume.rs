//! Runs that are killed or stopped by a signal, and then resumed.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::json;
use toll_host::store::{RunStatus, Store, StoredRun};
use toll_testing::{Bench, Running, has, make_executable, processes_marked, wait_until};

use crate::settings::Settings;

fn stored(bench: &Bench) -> Option<StoredRun> {
    // Opening a missing store would create it, so this first looks for a directory that a run makes
    // after its store.
    if !bench.path("state/toll/leftovers").exists() {
        return None;
    }
    let store = Store::open(&bench.store()).expect("a killed run leaves its store intact");
    let (run, _) = store.runs().expect("the runs can be read").pop()?;
    Some(store.load(run.id).expect("the run can be read"))
}

#[track_caller]
fn nothing_runs(bench: &Bench) {
    let marker = bench.marker();
    wait_until("all processes of the run are gone", || {
        processes_marked(&marker).is_empty()
    });
}

#[test]
fn a_signal_ends_a_run_with_its_own_status_and_everything_is_kept_and_put_back() {
    for (signal, status) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        let bench = Bench::new();
        let settings = Settings::before(&bench);
        let mut child = bench.start_measuring(
            "run --html page.html --seed 1 -r 20 -c 'echo cleaned >>log' \
             \"sh -c 'setsid sleep 300 & sleep 0.1'\"",
        );
        child.send(signal);
        assert_eq!(child.end().code(), Some(status));
        // Checked at once, because toll has ended.
        settings.are_back_at_once();
        let first = stored(&bench).unwrap();
        assert_eq!(first.run.status, RunStatus::Unfinished);
        let count = first.trials.len();
        assert!((1..40).contains(&count), "{count}");
        assert!(bench.path("page.html").exists(), "the results are reported");
        assert_eq!(bench.read("log"), "cleaned\n", "the clean-up ran");
        assert!(bench.ok("list").stdout.contains("unfinished"));

        let resumed = bench.json("run --resume 1 --json -q --no-html");
        assert_eq!(resumed["runs"][0]["run"]["id"], 1);
        let run = stored(&bench).unwrap();
        assert_eq!(run.run.status, RunStatus::Complete);
        assert_eq!(run.trials.len(), 20 * 2);
        assert_eq!(run.trials[..count], first.trials);
    }
    for page in ["--help", "man"] {
        has(&Bench::new().ok(page).stdout, &["129", "130", "143"]);
    }
}

#[test]
fn a_second_signal_ends_a_run_that_is_still_cleaning_up() {
    let bench = Bench::new();
    let line = "run -q --no-html -r 9 -c 'touch cleaning; sleep 300' 'sleep 0.05'";
    let mut child = bench.start_measuring(line);
    child.send(Signal::INT);
    wait_until("the clean-up runs", || bench.path("cleaning").exists());
    child.send(Signal::INT);
    let status = child.end();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    nothing_runs(&bench);
}

#[test]
fn a_complete_run_is_not_resumed() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 1 true");
    let errors = bench.fails(2, "run --resume 1");
    assert!(errors.contains("complete"), "{errors}");
    assert!(bench.fails(2, "run --resume").contains("toll list"));
    has(&bench.fails(1, "run --resume 99"), &["run 99"]);
}

#[test]
fn the_last_run_that_can_still_succeed_is_resumed_and_named() {
    let bench = Bench::new();
    bench
        .start_measuring("run -q --no-html -r 20 'sleep 0.05'")
        .kill();
    // A run of another machine is never resumed.
    bench.ok("export last --json run.json");
    bench.ok("import --store other.sqlite run.json");
    let errors = bench.fails(2, "run --resume 1 --store other.sqlite");
    has(&errors, &["another machine"]);
    bench.fails(1, "run -q --no-html -r 9 nosuchprogram");
    let unfinished = bench.ok("list").stdout.matches("unfinished").count();
    assert_eq!(unfinished, 2);
    let ran = bench.ok("run --resume --no-html");
    has(&ran.stderr, &["resuming run 1 of commands", "sleep 0.05"]);
    let errors = bench.fails(2, "run --resume");
    has(
        &errors,
        &[
            "no unfinished run has anything left that can succeed",
            "toll list",
        ],
    );
}

#[test]
fn a_second_run_at_the_same_time_is_refused_and_told_why() {
    let bench = Bench::new();
    let mut child = bench.start_measuring("run -q --no-html -r 999 'sleep 0.05'");
    // A run into another store would disturb the measurement just as much.
    for line in ["run true", "run --resume", "run --store other.sqlite true"] {
        let holder = format!("process {}", child.0.id());
        has(&bench.fails(1, line), &[&holder, "wait for it"]);
    }
    // The work directory of the running run is not cleared.
    has(&bench.ok("doctor --restore").stdout, &["nothing was left"]);
    assert_eq!(bench.leftovers().len(), 2);
    // Reading the store disturbs a trial only little.
    bench.ok("list");
    bench.ok("show");
    child.kill();
    nothing_runs(&bench);
    bench.ok("run -q --no-html -r 1 true");
}

#[test]
fn what_a_killed_run_left_is_cleared_by_the_next_start_and_by_the_doctor() {
    for clear in ["run -r 1 --no-html true", "doctor --restore"] {
        let bench = Bench::new();
        bench
            .start_measuring("run -q --no-html -r 999 'sleep 0.05'")
            .kill();
        assert_eq!(
            bench.leftovers().len(),
            2,
            "a work directory and its journal"
        );
        let ran = bench.ok(clear);
        has(&(ran.stdout + &ran.stderr), &["cleared after a killed run"]);
        assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
        has(&bench.ok("doctor --restore").stdout, &["nothing was left"]);
    }
}

#[test]
fn a_journal_whose_last_line_a_kill_cut_short_is_put_back_up_to_there() {
    let bench = Bench::new();
    bench
        .start_measuring("run -q --no-html -r 999 'sleep 0.05'")
        .kill();
    let [work, journals] = bench.places_of_leftovers();
    let journal = std::fs::read_dir(&journals).unwrap().next().unwrap();
    let journal = journal.unwrap().path();
    let text = std::fs::read_to_string(&journal).unwrap();
    let mut cut = text.clone();
    cut.push_str(&json!({ "swap_file": "/swap" }).to_string());
    std::fs::write(&journal, cut).unwrap();
    // The journal of a run that was killed before it had written the first line.
    bench.shell(&format!(
        "umask 77; printf '{{' >{}/99999999-1.jsonl",
        journals.display()
    ));
    let output = bench.ok("doctor --restore").stdout;
    has(&output, &[&work.display().to_string()]);
    assert_eq!(bench.leftovers(), Vec::<PathBuf>::new());
    let (first, _) = text.split_once('\n').unwrap();
    std::fs::write(&journal, format!("{first}\n?\n")).unwrap();
    bench.shell(&format!("chmod 600 {}", journal.display()));
    let output = bench.run("doctor --restore");
    assert_eq!(output.code, Some(1), "{output:#?}");
    has(&output.stdout, &["look into it"]);
}

/// A mkfs that waits, and then creates its target, wherever that is.
const SLOW_MKFS: &str = "#!/bin/bash
touch \"$HOME/begun\"; sleep 1; mkdir -p \"$(dirname \"${@: -1}\")\"; : >\"${@: -1}\"
";

#[test]
fn what_a_killed_run_was_making_is_cleared_when_it_is_made() {
    if !toll_testing::is_root() {
        toll_testing::skip("file systems on loop devices need root");
        return;
    }
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    for directory in ["bin", "home"] {
        std::fs::create_dir_all(bench.path(directory)).unwrap();
    }
    make_executable(&bench.write("bin/mkfs.ext4", SLOW_MKFS));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", bench.path("bin").display());
    let file = "format = 1\nname = 'slow'\n[workload]\nkind = 'write'\nfs = 'ext4'\n";
    let file = bench.write("slow.toml", file).display().to_string();
    let mut command = bench.spawnable(&["run", "-q", "--no-html", &file]);
    let mut child = Running(command.env("PATH", path).spawn().unwrap());
    wait_until("mkfs has begun", || bench.path("home/begun").exists());
    child.kill();
    bench.ok("doctor --restore");
    settings.are_back();
}
