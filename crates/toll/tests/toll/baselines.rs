//! Baselines, and runs compared with them.

use serde_json::json;
use toll_testing::{Bench, Ran, has, lacks, list};

/// A command that prints a fixed duration, so ratios do not depend on how busy the machine is.
const TOLD: &str = "format = 1\nname = 'told'\nmetric = 'told_ns'\n[workload]\nkind = 'command'\n\
                    command = 'cat {n}'\n[metrics.told_ns]\npattern = 'took ([0-9]+) ns'\n\
                    unit = 'ns'\nbetter = 'lower'\n[[factor]]\nname = 'n'\nlevels = ['a', 'b']\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write(
        "told.toml",
        &TOLD.replace("{n}", &bench.path("{n}").display().to_string()),
    );
    bench
}

/// Measures a run in which `a` and `b` report these durations, in nanoseconds.
fn measure(bench: &Bench, [a, b]: [u32; 2], options: &str) -> Ran {
    bench.write("a", &format!("took {a} ns\n"));
    bench.write("b", &format!("took {b} ns\n"));
    bench.run(&format!("run -q --no-html -r 8 told.toml {options}"))
}

#[test]
fn a_run_is_compared_with_the_saved_one_treatment_by_treatment() {
    let bench = bench();
    let saved = measure(&bench, [100, 200], "--save-baseline main");
    assert_eq!(saved.code, Some(0), "{saved:#?}");
    has(&saved.stderr, &["baseline main of told: run 1"]);
    let gate = "--baseline main --fail-on regression=5%";
    let same = measure(&bench, [101, 150], gate);
    assert_eq!(same.code, Some(0), "{same:#?}");
    has(&same.stdout, &["Ratio of run 2 to baseline main, run 1"]);
    has(
        &same.stdout,
        &[
            "1.33× faster [1.33, 1.33]  ",
            "b in run 2 takes 0.750 [0.750, 0.750] of the told of run 1 (25 % less).",
        ],
    );
    let worse = measure(&bench, [107, 200], gate);
    assert_eq!(worse.code, Some(3), "{worse:#?}");
    let found = "regression: a in run 3 over run 1: told_ns: 7.00 % slower [7.00, 7.00]";
    assert!(worse.stderr.contains(found), "{worse:#?}");
    assert!(!worse.stderr.contains("regression: b"), "{worse:#?}");
    // Stored runs are judged in the same way.
    let shown = bench.run(&format!("show 3 {gate}"));
    assert_eq!(shown.code, Some(3), "{shown:#?}");
    has(&shown.stdout, &["Ratio of run 3 to baseline main"]);
    let compared = bench.run(&format!("compare {gate}"));
    assert_eq!(compared.code, Some(3), "{compared:#?}");
    bench.ok("compare 2 --baseline main --fail-on regression=5%");
    bench.fails(3, "compare 2 3 --fail-on regression=5%");
    let document = bench.json("compare 1 3 --json");
    assert_eq!(document["comparisons"][0]["ratios"][0]["relation"], "worse");
    let both = measure(&bench, [100, 200], "--baseline main --json").json();
    assert_eq!(both["comparisons"][0]["old_runs"], json!([1]));
}

#[test]
fn several_runs_a_side_are_compared_by_run() {
    let bench = bench();
    for [a, b] in [[100, 200], [103, 200], [97, 200]] {
        measure(&bench, [a, b], "");
    }
    // With one run per side, no interval contains the shift between sessions.
    measure(&bench, [108, 260], "");
    let gate = "--fail-on regression=2%";
    let one = bench.run(&format!("compare 1 4 {gate}"));
    assert_eq!(one.code, Some(3), "{one:#?}");
    has(
        &one.stderr,
        &[
            "regression: b in run 4 over run 1",
            "a shift between sessions of up to",
        ],
    );
    lacks(&one.stderr, &["regression: a in"]);
    for [a, b] in [[105, 260], [102, 260]] {
        measure(&bench, [a, b], "");
    }
    let several = bench.run(&format!("compare 1-3 4,5,6 {gate}"));
    assert_eq!(several.code, Some(3), "{several:#?}");
    has(
        &several.stdout,
        &[
            "Ratio of runs 4-6 to runs 1-3",
            "compared by run",
            "(97, 103)",
        ],
    );
    has(
        &several.stderr,
        &["regression: b in runs 4-6 over runs 1-3: told_ns: 1.30× slower"],
    );
    lacks(&several.stderr, &["regression: a in", "not excluded"]);
    let document = bench.json("compare 1-3 4-6 --json");
    assert_eq!(document["sides"], json!([[1, 2, 3], [4, 5, 6]]));
    let compared = &document["comparisons"][0];
    assert_eq!(compared["new_runs"], json!([4, 5, 6]));
    assert_eq!(compared["replicates"], "sessions");
    assert_eq!(compared["ratios"][0]["counts"], json!([3, 3]));
    assert_eq!(compared["ratios"][0]["relation"], "undecided");
    // Runs of another experiment are not sessions of it.
    bench.ok("run -q --no-html -r 2 true");
    let errors = bench.fails(2, "compare 1,2,7 4,5,6");
    has(
        &errors,
        &["cannot take runs 1 and 7 as sessions of the same work: the experiment differs"],
    );
}

#[test]
fn a_baseline_is_replaced_only_by_a_run_that_passes() {
    let bench = bench();
    let ratchet = "--baseline main --save-baseline main --fail-on regression=5%";
    measure(&bench, [100, 200], "--save-baseline main");
    let worse = measure(&bench, [150, 200], ratchet);
    assert_eq!(worse.code, Some(3), "{worse:#?}");
    has(&worse.stderr, &["baseline is not saved"]);
    let saved = |bench: &Bench| bench.json("baseline list --json")["baselines"][0].clone();
    assert_eq!(saved(&bench)["run_id"], 1);
    let better = measure(&bench, [90, 200], ratchet);
    assert_eq!(better.code, Some(0), "{better:#?}");
    has(&better.stderr, &["run 3, instead of run 1"]);
    assert_eq!(saved(&bench)["run_id"], 3);
}

#[test]
fn baselines_are_saved_listed_and_forgotten_while_their_runs_stay() {
    let bench = bench();
    let none = bench.ok("baseline list").stdout;
    has(&none, &["--save-baseline"]);
    assert!(!bench.path("data").exists(), "listing creates no store");
    measure(&bench, [100, 200], "");
    bench.ok("run -q --no-html -r 2 true");
    bench.ok("baseline save main 1");
    bench.ok("baseline save main");
    bench.ok("baseline save v1.0 1");
    let listed = bench.ok("baseline list").stdout;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let heading = "Baselines (toll run --baseline NAME)";
    has(&bench.ok("list").stdout, &[heading]);
    let names = |bench: &Bench| -> Vec<String> {
        let document = bench.json("list --json");
        let baselines = list(&document["baselines"]).iter();
        let name = |one: &serde_json::Value| format!("{} {}", one["name"], one["experiment"]);
        baselines.map(|one| name(one).replace('"', "")).collect()
    };
    assert_eq!(names(&bench), ["main commands", "main told", "v1.0 told"]);
    bench.ok("baseline remove main --experiment commands");
    assert_eq!(names(&bench), ["main told", "v1.0 told"]);
    bench.ok("baseline remove main");
    let errors = bench.fails(2, "baseline remove main");
    has(&errors, &["the store has v1.0"]);
    assert_eq!(bench.document("1")["run"]["id"], json!(1));
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_runs() {
    let bench = bench();
    let errors = bench.fails(1, "run true --baseline main");
    has(&errors, &["no store yet"]);
    measure(&bench, [100, 200], "--save-baseline main");
    bench.ok("run -q --no-html -r 2 true --save-baseline other");
    let runs = |bench: &Bench| list(&bench.json("list --json")["runs"]).len();
    let before = runs(&bench);
    for (line, needle) in [
        ("run told.toml --baseline mian", "the store has main, other"),
        (
            "run told.toml --baseline other",
            "the store has other of commands",
        ),
        (
            "run false --baseline other",
            "none of these treatments; it has true",
        ),
        ("run true --baseline 'a b'", "letters"),
        ("run true --save-baseline ../x", "letters"),
        ("compare 1", "--baseline"),
        (
            "compare 1 2 --fail-on regression=5%",
            "no treatment is in both",
        ),
        ("compare 1 --baseline nope", "cannot find baseline nope"),
        ("compare 1 --baseline main", "it is on two sides"),
        ("show 1 --baseline main", "it is the same run"),
        ("compare 1,1 2", "named twice on one side"),
        ("compare 1 2,1", "it is on two sides"),
        ("compare 1, 2", "a run is missing next to a comma"),
        ("compare 2-1 1", "from a smaller number to a larger one"),
        ("compare 1-999999 1", "at most 100 runs"),
        ("compare 1-2 1", "it is on two sides"),
        ("baseline save -x", "-x"),
    ] {
        has(&bench.fails(2, line), &[needle]);
    }
    assert_eq!(runs(&bench), before);
}

#[test]
fn a_run_that_is_not_complete_becomes_no_baseline() {
    let bench = bench();
    measure(&bench, [100, 200], "");
    let mut document = bench.document("1");
    document["run"]["uid"] = json!("00000000deadbeef");
    document["run"]["status"] = json!("unfinished");
    bench.write("run.json", &document.to_string());
    bench.ok("import run.json");
    let errors = bench.fails(2, "baseline save main 2");
    has(&errors, &["unfinished"]);
    // A run of another machine is accepted.
    document["run"]["uid"] = json!("00000000deadbee0");
    document["run"]["status"] = json!("complete");
    bench.write("run.json", &document.to_string());
    bench.ok("import run.json");
    bench.ok("baseline save main 3");
    let ran = measure(&bench, [100, 200], "--baseline main");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn runs_that_did_not_do_the_same_are_not_gated_unless_that_is_allowed() {
    let bench = Bench::new();
    let run = |options: &str| bench.run(&format!("run -q --no-html -r 8 {options}"));
    let saved = run("-n zip 'cat /dev/null' --save-baseline main");
    assert_eq!(saved.code, Some(0), "{saved:#?}");
    let gate = "--baseline main --fail-on regression=5%";
    for (options, difference) in [
        (
            "-n zip 'cat /dev/zero'",
            "command: `cat /dev/null` against `cat /dev/zero`",
        ),
        (
            "-n zip 'cat /dev/null' --output pipe",
            "output: `null` against `pipe`",
        ),
        (
            "-n zip 'cat /dev/null' --env A=1",
            "variables: `none` against `A=1`",
        ),
        (
            "-n zip 'cat /dev/null' -p true",
            "prepare: `none` against `true`",
        ),
        (
            "-n zip 'cat /dev/null' --shell sh",
            "shell: `sh where needed` against `sh`",
        ),
    ] {
        let refused = run(&format!("{options} {gate}"));
        assert_eq!(refused.code, Some(2), "{options}: {refused:#?}");
        has(
            &refused.stderr,
            &["did different work", difference, "--allow-different-work"],
        );
    }
    assert_eq!(
        list(&bench.json("list --json")["runs"]).len(),
        1,
        "nothing ran"
    );
    // Allowed differences are judged, and shown before the ratios.
    let work = "-n zip 'cat /dev/null' --output pipe";
    let allowed = run(&format!("{work} {gate} --allow-different-work"));
    assert!([Some(0), Some(3)].contains(&allowed.code), "{allowed:#?}");
    let compared = bench.ok("compare 1 2").stdout;
    for text in [&allowed.stdout, &compared] {
        has(
            text,
            &["The runs did different work", "output", "null", "pipe"],
        );
        let place = |needle: &str| text.find(needle).expect("the output contains it");
        assert!(
            place("did different work") < place("change in time"),
            "{text}"
        );
    }
    lacks(&compared, &["nothing that was recorded"]);
    let errors = bench.fails(2, "compare 1 2 --fail-on regression=5%");
    has(&errors, &["output: `null` against `pipe`"]);
    let errors = bench.fails(2, &format!("show 2 {gate}"));
    has(&errors, &["did different work"]);
    let document = bench.json("compare 1 2 --json");
    assert_eq!(document["work_differences"][0]["what"], "output");
    // A command that only one of the runs has is not compared.
    let more = run(&format!("-n zip -n other 'cat /dev/null' true {gate}"));
    assert!([Some(0), Some(3)].contains(&more.code), "{more:#?}");
}
