//! Why one command takes longer than another.

use serde_json::Value;

use crate::common::{
    Bench, TOLL, has, has_program, is_root, lacks, list, skip, source_tree, texts,
};

/// A bench with the program whose delays are known; `None` if it cannot be built, or
/// nothing be profiled, here.
fn bench() -> Option<Bench> {
    if !is_root() {
        skip("sampling the kernel needs root");
        return None;
    }
    if !has_program("cc") {
        skip("there is no C compiler");
        return None;
    }
    let bench = Bench::new();
    let source = source_tree().join("bench/why/plant.c");
    let built = bench.shell(&format!("cc -O1 -g -pthread -o plant {}", source.display()));
    assert_eq!(built.code, Some(0), "{built:?}");
    let probed =
        bench.shell("perf_event=/proc/sys/kernel/perf_event_paranoid; test -e $perf_event");
    if probed.code != Some(0) {
        skip("this kernel has no perf events");
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
    // Medians of parts add up but roughly to that of the whole.
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
        &["cannot explain a treatment by itself"],
    );
}

#[test]
fn where_nothing_may_be_sampled_the_timed_trials_tell_of_programs_kernel_and_waits() {
    if !has_program("python3") {
        return skip("there is no python3");
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
