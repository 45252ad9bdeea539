//! What `toll run` prints about several experiments while they run, and about finished measurements
//! when it is interrupted.

use std::fs::File;

use rustix::process::Signal;
use toll_testing::{Bench, Running, has, list};

/// Maximum number of lines for two experiments: a legend, two lines for each, the summary.
const LINES_MAX: usize = 12;

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

/// Prepares a bench with one experiment, and another whose trials wait for the file `go`.
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

/// Starts both, with their output redirected to files, and waits until the second one runs.
fn start(bench: &Bench) -> Running {
    let mut command = bench.spawnable("run -r 8 first.toml second.toml");
    command.stdout(File::create(bench.path("out")).unwrap());
    command.stderr(File::create(bench.path("err")).unwrap());
    let mut running = Running(command.spawn().unwrap());
    running.until("the second experiment runs", || {
        list(&bench.json("list --json")["runs"]).len() == 2
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
    let counts = " 1 ✔  1 ✘  0 ?  1 –";
    let first = bench.read("out");
    has(&first, &["✔ supported · ✘ refuted", "first: ", counts]);
    has(
        &first,
        &["✘✘ claimed: three is less than one (under 1.00); here 3.00× [3.0"],
    );
    assert!(page(&bench).contains("first.more") && !page(&bench).contains("second.more"));
    bench.write("go", "");
    assert!(running.end().success());
    let out = bench.read("out");
    has(&out, &["second: "]);
    assert!(page(&bench).contains("first.more") && page(&bench).contains("second.more"));
    assert!(out.lines().count() <= LINES_MAX, "{out}");
    has(
        &out,
        &[
            "2 runs: 2 supported (2 ✔✔), 2 refuted (2 ✘✘), 2 not testable here",
            "not testable here: 2: it takes a machine that nobody has",
            "report: ",
            "next: toll show 1",
        ],
    );
    let output = out + &bench.read("err");
    // The paths of this bench may be longer than 80 characters.
    for line in output.lines().filter(|line| !line.contains("/reports/")) {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn of_several_experiments_one_that_has_no_time_for_a_verdict_is_not_gone_on_with() {
    let bench = Bench::new();
    // A busy machine completes one block of the second experiment within its budget, but never ten.
    for (name, command, budget) in [
        ("quick", "echo told={n}", "10min"),
        ("slow", "sleep 0.45; echo told={n}", "4s"),
    ] {
        let text = EXPERIMENT.replace("NAME", name).replace("COMMAND", command);
        let limits = format!(
            "[run]\nmin_blocks = 10\nmax_blocks = 10\ntime_budget = '{budget}'\n[[factor]]"
        );
        let text = text.replacen("[[factor]]", &limits, 1);
        bench.write(&format!("{name}.toml"), &text);
    }
    let both = bench.ok("run quick.toml slow.toml").stdout;
    has(
        &both,
        &[
            "1 supported (1 ✔✔), 1 refuted (1 ✘✘)",
            "2 not started",
            "not started: slow: its budget of 4 s is too short",
        ],
    );
    let shown = bench.json("show 2 --json");
    // The first block shows how long a block takes.
    assert_eq!(shown["analysis"]["blocks"], 1, "{both}");
    let reason = shown["run"]["stop_reason"].as_str().unwrap();
    has(reason, &["too short for any verdict"]);
    // The command that the message names decides it.
    let (_, command) = both
        .split_once("; toll ")
        .expect("the output names a command");
    let (command, _) = command.split_once("min").expect("the command has a budget");
    let words: Vec<&str> = command.split_whitespace().collect();
    let decided = bench.ok(&format!("{}min", words.join(" "))).stdout;
    has(&decided, &["✔✔ slow.more"]);
    // Alone on the command line, it runs as many blocks as fit its budget.
    bench.ok("run --no-html slow.toml");
    let alone = bench.json("show last --json");
    assert!(alone["analysis"]["blocks"].as_u64() > Some(1));
}

#[test]
fn an_interrupted_run_shows_and_keeps_what_was_measured() {
    let bench = bench_of_two();
    let mut running = start(&bench);
    running.send(Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    has(
        &bench.read("out"),
        &[
            "first: ",
            "1 run: 1 supported (1 ✔✔), 1 refuted (1 ✘✘)",
            "report: ",
        ],
    );
    has(&bench.read("err"), &["interrupted; everything"]);
    has(&page(&bench), &["first.more"]);
    has(&bench.ok("show 1").stdout, &["✔✔ first.more"]);
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_is_shown_verdicts_first() {
    let bench = bench_of_two();
    let output = bench.ok("run -q --no-html -r 8 first.toml");
    assert_eq!(output.stderr, "", "only results are printed");
    let memory = "peak memory is at least";
    assert!(!output.stdout.contains(memory), "{output:#?}");
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
    let output = bench.ok("run --no-html -r 8 'sleep 0.002' 'sleep 0.05'");
    assert!(!output.stderr.contains("store is on"), "{}", output.stderr);
    has(
        &output.stdout,
        &[
            "peak memory",
            "× slower [",
            "reference",
            "sleep 0.05 takes ",
            " times the time of sleep 0.002.",
        ],
    );
    assert_eq!(output.stdout.matches("peak memory is at least").count(), 1);
    bench.ok("export last --markdown out.md");
    has(&bench.read("out.md"), &["| change |", "× slower"]);
}
