//! `toll why`: why one command takes longer than another.

use rustix::process::Signal;
use serde_json::Value;
use toll_testing::{
    Bench, Running, TOLL, has, has_program, is_root, lacks, list, skip, source_tree, texts,
};

/// Prepares a bench with a program whose delays are known; `None`, with a skip line, if the program
/// cannot be built or nothing can be profiled here.
fn bench() -> Option<Bench> {
    if !is_root() {
        skip("sampling the kernel needs root");
        return None;
    }
    if !has_program("cc") {
        skip("a C compiler is missing");
        return None;
    }
    let bench = Bench::new();
    let source = source_tree().join("bench/why/plant.c");
    let built = bench.shell(&format!("cc -O1 -g -pthread -o plant {}", source.display()));
    assert_eq!(built.code, Some(0), "{built:?}");
    // Counters may not be permitted, as in many containers.
    let examined = bench.json("doctor --json --no-noise");
    let mut capabilities = list(&examined["capabilities"]).iter();
    let counters = capabilities.find(|one| one["what"] == "perf counters");
    let counters = counters.unwrap();
    let detail = counters["detail"].as_str().unwrap();
    if counters["ok"] == false && !detail.starts_with("software events only") {
        skip(detail);
        return None;
    }
    Some(bench)
}

fn explained(bench: &Bench, kind: &str) -> Value {
    let line = format!("-r 2 --why './plant none' './plant {kind}'");
    bench.measured(&line)["analysis"]["explanations"][0].clone()
}

#[track_caller]
fn first_row_names(kind: &str, expected: &str) {
    let Some(bench) = bench() else { return };
    let explanation = explained(&bench, kind);
    let rows = list(&explanation["rows"]);
    let names = texts(rows, "name");
    assert!(names[0].contains(expected), "{names:?}");
    assert_eq!(explanation["slower_label"], format!("./plant {kind}"));
    let sum: f64 = rows
        .iter()
        .map(|row| row["difference_ns"]["value"].as_f64().unwrap())
        .sum();
    let rest = explanation["not_attributed_ns"]["value"].as_f64().unwrap();
    let whole = explanation["difference_ns"]["value"].as_f64().unwrap();
    // The medians of the parts add up only roughly to the median of the whole.
    assert!(
        (sum + rest - whole).abs() < 0.5 * whole.abs().max(sum.abs()),
        "{explanation:#}"
    );
}

#[test]
fn a_delay_in_a_function_of_a_program_is_the_first_row() {
    first_row_names("spin", "planted_spin (plant)");
}

#[test]
fn a_delay_in_a_system_call_is_the_first_row() {
    first_row_names("call", "(getrandom)");
}

#[test]
fn a_wait_for_a_lock_is_the_first_row() {
    first_row_names("lock", "(futex");
}

#[test]
fn page_faults_are_the_first_row() {
    let Some(bench) = bench() else { return };
    let explanation = explained(&bench, "faults");
    let names = texts(list(&explanation["rows"]), "name");
    assert!(names[0].contains("page"), "{names:?}");
    let counts = list(&explanation["counts"]);
    let faults = counts.iter().find(|one| one["metric"] == "minor_faults");
    assert!(faults.unwrap()["difference"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_explanation_is_kept_and_shown_from_the_store_alone() {
    let Some(bench) = bench() else { return };
    bench.ok("run -r 2 --no-html './plant none' './plant spin'");
    let ran = bench.ok("why last");
    has(
        &ran.stdout,
        &[
            "./plant spin takes",
            "planted_spin (plant)",
            "not attributed",
        ],
    );
    std::fs::remove_file(bench.path("plant")).unwrap();
    has(&bench.ok("why --stored").stdout, &["planted_spin (plant)"]);
    has(&bench.ok("show last").stdout, &["planted_spin (plant)"]);
    let document = bench.document("last");
    assert_eq!(list(&document["profiles"]).len(), 1);
    bench.ok("report last --html page.html --plots plots");
    let page = bench.read("page.html");
    has(&page, &["planted_spin (plant)", "<figure class=\"flame\">"]);
    lacks(&page, &["<script", "<?xml"]);
    has(
        &bench.read("plots/commands-1-why-01.svg"),
        &["planted_spin"],
    );
}

/// Returns the differences of the counts by metric; `None`, with a skip line, if calls are not
/// counted.
fn counted(explanation: &Value) -> Option<std::collections::BTreeMap<String, Value>> {
    if explanation["notes"]
        .to_string()
        .contains("calls are not counted")
    {
        skip("BPF is not permitted here");
        return None;
    }
    let counts = list(&explanation["counts"]).iter();
    let named = counts.map(|one| {
        let metric = one["metric"].as_str().unwrap().to_owned();
        (metric, one["difference"].clone())
    });
    Some(named.collect())
}

#[track_caller]
fn is_exactly(estimate: &Value, expected: f64) {
    for bound in ["low", "value", "high"] {
        assert_eq!(estimate[bound], expected, "{estimate:#}");
    }
}

#[test]
fn system_calls_of_commands_are_counted_without_those_of_the_probe() {
    let Some(bench) = bench() else { return };
    bench.write("big", &"x".repeat(81920));
    bench.write("small", "x\n");
    let dd = "dd if=/dev/zero of=/dev/null";
    // Commands that run around the measured one are not counted either.
    let commands = format!("'{dd} bs=512 count=2000' '{dd} bs=64k count=20'");
    let line = format!("-r 2 -N --conclude 'cat small' --why {commands}");
    let ran = bench.measured(&line);
    let Some(counts) = counted(&ran["analysis"]["explanations"][0]) else {
        return;
    };
    is_exactly(&counts["calls.read"], 1980.0);
    is_exactly(&counts["calls.write"], 1980.0);
    let calls = counts.keys().filter(|name| name.starts_with("calls."));
    assert_eq!(calls.count(), 2, "{counts:#?}");
    let line = "-r 2 -N --why 'dd if=big of=/dev/null bs=4k' 'dd if=small of=/dev/null bs=4k'";
    let ran = bench.measured(line);
    let explanation = &ran["analysis"]["explanations"][0];
    let Some(counts) = counted(explanation) else {
        return;
    };
    // The few extra calls take less time than the noise of a busy machine.
    let is_big_slower = explanation["slower_label"]
        .as_str()
        .is_some_and(|label| label.contains("if=big"));
    let sign = if is_big_slower { 1.0 } else { -1.0 };
    is_exactly(&counts["page_cache_bytes"], sign * 81918.0);
    is_exactly(&counts["calls.read"], sign * 19.0);
}

#[test]
fn system_calls_of_workloads_are_those_of_the_timed_region() {
    let Some(bench) = bench() else { return };
    bench.write(
        "clock.toml",
        "format = 1\nname = 'clock'\ntitle = 'Clocks'\nmetric = 'duration_per_call_ns'\n\
         reference = { operation = 'vdso' }\n[workload]\nkind = 'crossing'\ncalls = 1000\n\
         [[factor]]\nname = 'operation'\nlevels = ['vdso', 'clock-syscall']\n",
    );
    let ran = bench.measured("-r 2 --why clock.toml");
    let Some(counts) = counted(&ran["analysis"]["explanations"][0]) else {
        return;
    };
    is_exactly(&counts["calls.clock_gettime"], 1000.0);
    let calls = counts.keys().filter(|name| name.starts_with("calls."));
    assert_eq!(calls.count(), 1, "{counts:#?}");
}

#[test]
fn a_signal_during_profiling_names_the_command_that_explains_the_run() {
    let bench = Bench::new();
    let work = "echo >>log; sleep 0.05";
    let said = std::fs::File::create(bench.path("said")).unwrap();
    let mut command = bench.spawnable(&format!(
        "run --no-html --why -r 2 '{work}' '{work}; sleep 0.01'"
    ));
    let mut running = Running(command.stderr(said).spawn().expect("toll starts"));
    let trials = 2 * 3;
    running.until("a profile began", || {
        std::fs::read_to_string(bench.path("log")).is_ok_and(|log| log.lines().count() > trials)
    });
    running.send(Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    has(&bench.read("said"), &["`toll why 1` explains the run"]);
    bench.ok("why 1");
    has(
        &bench.fails(2, "run --resume 1 --why"),
        &["it is complete", "`toll why 1 --stored` shows why"],
    );
}

#[test]
fn a_profile_that_cannot_be_is_refused_with_the_reason() {
    let bench = Bench::new();
    bench.ok("run -r 1 --no-html -N true -n a 'sleep 0' -n b");
    has(
        &bench.fails(2, "why last --stored"),
        &["cannot show why: run 1 was not profiled"],
    );
    has(
        &bench.fails(2, "why last --treatment nothing"),
        &["no treatment of the run has that label; labels are a, b"],
    );
    has(
        &bench.fails(2, "why last --treatment a --reference a"),
        &["cannot compare a treatment with itself"],
    );
}

#[test]
fn a_run_that_is_continued_is_explained_too() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 2 'sleep 0.01' true");
    let explained = "run -q --no-html --resume 1 --why";
    bench.ok(&format!("{explained} -r 3"));
    let document = bench.document("1");
    assert_eq!(list(&document["trials"]).len(), 3 * 3);
    assert_eq!(list(&document["profiles"]).len(), 1);
    has(&bench.fails(2, explained), &["run 1: it is complete"]);
    // A signal may have ended profiling after the last block.
    bench.ok("run -q --no-html -r 2 'sleep 0.01' true");
    bench.ok("run -q --no-html --resume 2 --why");
    let document = bench.document("2");
    assert_eq!(list(&document["trials"]).len(), 2 * 3);
    assert_eq!(list(&document["profiles"]).len(), 1);
}

#[test]
fn where_nothing_may_be_sampled_the_timed_trials_tell_of_programs_kernel_and_waits() {
    if !has_program("python3") {
        return skip("python3 is missing; install the package python3");
    }
    let bench = Bench::new();
    let script = source_tree().join("crates/toll/tests/toll/samples/without_perf_events.py");
    let line = "run -q --no-html --json --why -r 10 'sleep 0.05' true";
    let ran = bench.shell(&format!("python3 {} {TOLL} {line}", script.display()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let explanation = &document["runs"][0]["analysis"]["explanations"][0];
    assert_eq!(explanation["slower_label"], "sleep 0.05");
    let rows = list(&explanation["rows"]);
    assert_eq!(rows[0]["name"], "waits", "{explanation:#}");
    let longer_ns = rows[0]["difference_ns"]["value"].as_f64().unwrap();
    assert!(longer_ns > 25e6, "{explanation:#}");
    assert_eq!(list(&explanation["overheads"]), [] as [Value; 0]);
    let notes = explanation["notes"].to_string();
    has(&notes, &["perf_event_open", "perf_event_paranoid"]);
    bench.ok("report last --html page.html");
    lacks(&bench.read("page.html"), &["<figure class=\"flame\">"]);
}
