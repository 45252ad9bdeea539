//! What `toll run` shows of several experiments while they run, and of what was
//! measured when it is interrupted.

use std::fs::File;

use rustix::process::Signal;

use crate::common::{Bench, Running, has};

/// Most lines behind the last verdict table.
const SUMMARY_LINES_MAX: usize = 40;

const EXPERIMENT: &str = r#"
format = 1
name = "NAME"
[workload]
kind = "command"
command = "COMMAND"
shell = "sh"
[metrics.told]
pattern = 'told=([0-9.]+)'
[[factor]]
name = "n"
levels = ["1", "3"]
[[claim]]
id = "NAME.more"
text = "three is more than one"
metric = "told"
of = { n = "3" }
to = { n = "1" }
direction = "greater"
[[claim]]
id = "NAME.less"
text = "three is less than one"
metric = "told"
of = { n = "3" }
to = { n = "1" }
direction = "less"
[[claim]]
id = "NAME.never"
text = "nobody can say"
not_testable = "it takes a machine that nobody has"
"#;

/// An experiment, and one whose trials wait for the file `go`.
fn bench_of_two() -> Bench {
    let bench = Bench::new();
    for (name, command) in [
        ("first", "echo told={n}"),
        (
            "second",
            "until [ -e go ]; do sleep 0.01; done; echo told={n}",
        ),
    ] {
        let text = EXPERIMENT.replace("NAME", name).replace("COMMAND", command);
        bench.write(&format!("{name}.toml"), &text);
    }
    bench
}

/// Starts both, and waits until the second one runs; what they print goes to
/// files.
fn start(bench: &Bench) -> Running {
    let mut command = bench.spawnable("run -r 8 first.toml second.toml");
    command.stdout(File::create(bench.path("out")).unwrap());
    command.stderr(File::create(bench.path("err")).unwrap());
    let mut running = Running(command.spawn().unwrap());
    running.until("the second experiment runs", || {
        bench.read("err").contains("2/2 second: run 2 begins")
    });
    running
}

fn page(bench: &Bench) -> String {
    bench.read("data/toll/reports/runs-from-1.html")
}

#[test]
fn verdicts_and_the_page_come_when_each_experiment_ends() {
    let bench = bench_of_two();
    let mut running = start(&bench);
    let counts = "1 supported, 1 refuted, 1 not testable here";
    has(
        &bench.read("out"),
        &["✔ first.more", "✘ first.less", counts],
    );
    assert!(page(&bench).contains("first.more") && !page(&bench).contains("second.more"));
    bench.write("go", "");
    assert!(running.end().success());
    let out = bench.read("out");
    has(&out, &["✔ second.more"]);
    assert!(page(&bench).contains("first.more") && page(&bench).contains("second.more"));
    let summary = out.split("Summary of").nth(1).expect("a summary");
    assert!(summary.lines().count() <= SUMMARY_LINES_MAX, "{summary}");
    has(
        summary,
        &[
            "2 supported, 2 refuted, 2 not testable here",
            "✘ first.less",
            "claimed under 1.00",
            "2 claims: it takes a machine",
            "report: ",
        ],
    );
}

#[test]
fn an_interrupted_run_shows_and_keeps_what_was_measured() {
    let bench = bench_of_two();
    let mut running = start(&bench);
    running.send(Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    has(
        &bench.read("out"),
        &["✔ first.more", "Summary of 1 run", "report: "],
    );
    has(&bench.read("err"), &["interrupted; everything"]);
    has(&page(&bench), &["first.more"]);
    has(&bench.ok("show 1").stdout, &["✔ first.more"]);
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_is_shown_verdicts_first() {
    let bench = bench_of_two();
    let told = bench.ok("run -q --no-html -r 8 first.toml");
    assert_eq!(told.stderr, "", "nothing but results");
    let memory = "peak memory is at least";
    assert!(!told.stdout.contains(memory), "{told:#?}");
    let shown = bench.ok("show").stdout;
    let places = ["first.more", "Treatments", "This run"].map(|part| shown.find(part));
    assert!(places[0].is_some() && places.is_sorted(), "{shown}");
    assert_eq!(shown.matches(memory).count(), 1, "{shown}");
    for name in ["duration_ns", "max_rss_bytes"] {
        assert!(!shown.contains(name), "{name}: {shown}");
    }
}

#[test]
fn a_comparison_ends_with_one_sentence_and_shows_memory_beside_time() {
    let bench = Bench::new();
    let told = bench.ok("run --no-html -r 8 'sleep 0.002' 'sleep 0.05'");
    assert!(!told.stderr.contains("store lies on"), "{}", told.stderr);
    has(
        &told.stdout,
        &[
            "peak memory",
            "times slower [",
            "reference",
            "sleep 0.05 takes ",
            " times the time of sleep 0.002.",
        ],
    );
    assert_eq!(told.stdout.matches("peak memory is at least").count(), 1);
    bench.ok("export last --markdown out.md");
    has(&bench.read("out.md"), &["| change |", "times slower"]);
}
