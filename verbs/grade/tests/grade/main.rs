//! `toll grade` of honest submissions, of edited ones, and of harmful ones.

use serde_json::{Value, json};
use toll_testing::{Bench, has, lacks, list};

/// An experiment of two sleeps with a claim about them, and `then` as more text.
fn lab(threshold: &str, then: &str) -> String {
    format!(
        "format = 1\nname = 'lab'\n[workload]\nkind = 'command'\ncommand = 'sleep {{s}}'\n\
         [[factor]]\nname = 's'\nlevels = ['0.001', '0.1']\n[[claim]]\nid = 'lab.longer'\n\
         text = 'the longer sleep takes longer'\nof = {{ s = '0.1' }}\nto = {{ s = '0.001' }}\n\
         direction = 'greater'\nthreshold = {threshold}\n[run]\niterations = 2\n{then}"
    )
}

/// A bench whose store has a run of an experiment, exported as `submission.json`.
fn submitted(experiment: &str, blocks: u32) -> (Bench, Value) {
    let bench = Bench::new();
    bench.write("lab.toml", experiment);
    bench.ok(&format!("run -q --no-html -r {blocks} lab.toml"));
    let document = bench.json("export last --json -");
    bench.write("submission.json", &document.to_string());
    (bench, document)
}

/// Runs `toll grade` and returns the first graded file.
fn graded(bench: &Bench, arguments: &str, status: i32) -> Value {
    let ran = bench.run(&format!("grade --json {arguments}"));
    assert_eq!(ran.code, Some(status), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    report["files"][0].clone()
}

/// Standard output of a command that must end with this exit status.
fn shown(bench: &Bench, status: i32, arguments: &str) -> String {
    let ran = bench.run(arguments);
    assert_eq!(ran.code, Some(status), "{ran:?}");
    ran.stdout
}

fn failed_checks(file: &Value) -> Vec<String> {
    let checks = list(&file["grade"]["checks"]).iter();
    let failed = checks.filter(|check| !list(&check["contradictions"]).is_empty());
    failed
        .map(|check| check["id"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn an_honest_submission_holds_here_too() {
    let (bench, _) = submitted(&lab("1.2", ""), 8);
    // The submitted run itself does not count as a run of the grader.
    let alone = graded(&bench, "submission.json", 0);
    assert!(alone["grade"]["here"].is_null(), "{alone}");
    bench.ok("run -q --no-html -r 8 lab.toml");
    let report = bench.json("grade --json submission.json");
    let file = &report["files"][0];
    assert_eq!(file["result"], "holds");
    assert_eq!(file["grade"]["here"]["run"]["id"], 2);
    assert_eq!(failed_checks(file), Vec::<String>::new());
    let unchecked = list(&file["grade"]["checks"]);
    assert!(unchecked.iter().all(|check| check["not_made"].is_null()));
    let text = bench.ok("grade submission.json").stdout;
    has(&text, &["Both support it", "lab.longer", "checks passed"]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn refuted_and_undecided_claims_are_told_apart() {
    let (bench, _) = submitted(&lab("100", ""), 8);
    let text = shown(&bench, 3, "grade submission.json");
    has(&text, &["The submitted data refute it"]);
    let (bench, _) = submitted(&lab("1.2", ""), 2);
    let text = shown(&bench, 4, "grade submission.json");
    has(&text, &["do not decide it", "more blocks would decide it"]);
}

#[test]
fn data_that_were_edited_are_contradicted() {
    let (bench, honest) = submitted(&lab("1.2", ""), 10);
    type Edit = fn(&mut Value);
    let edits: &[(&str, Edit)] = &[
        ("durations", |d| {
            d["trials"][4]["samples"]["duration_ns"] = json!([9e9, 9e9]);
        }),
        ("verdicts", |d| {
            d["analysis"]["verdicts"][0]["outcome"] = json!("refuted");
        }),
        ("verdicts", |d| {
            let samples = &mut d["trials"][4]["samples"]["duration_ns"];
            *samples = json!([1000.0, 1000.0]);
        }),
        ("copies", |d| {
            let trials = d["trials"].as_array_mut().unwrap();
            let of_first: Vec<Value> = trials.iter().filter(|t| t["block"] == 0).cloned().collect();
            for trial in trials.iter_mut().filter(|t| t["block"] == 5) {
                let same = of_first
                    .iter()
                    .find(|t| t["treatment"] == trial["treatment"]);
                trial["samples"] = same.unwrap()["samples"].clone();
            }
        }),
        ("trials", |d| {
            d["trials"].as_array_mut().unwrap().remove(7);
        }),
        ("order", |d| d["run"]["seed"] = json!("7")),
        ("times", |d| d["trials"][3]["run_ns"] = json!(1)),
        ("treatments", |d| {
            d["treatments"].as_array_mut().unwrap().pop();
            let is_there = |t: &Value| t["treatment"] != 2;
            d["trials"].as_array_mut().unwrap().retain(is_there);
        }),
    ];
    for (check, edit) in edits {
        let mut document = honest.clone();
        edit(&mut document);
        bench.write("edited.json", &document.to_string());
        let file = graded(&bench, "edited.json", 3);
        assert_eq!(file["result"], "contradicted", "{check}");
        let failed = failed_checks(&file);
        assert!(failed.iter().any(|one| one == check), "{check}: {failed:?}");
    }
    let text = shown(&bench, 3, "grade edited.json submission.json");
    has(
        &text,
        &["2 submissions", "✘ edited.json", "✔ submission.json"],
    );
}

#[test]
fn honest_runs_that_were_resumed_pass_all_checks() {
    let claim = "[[claim]]\nid = 'lab.same'\ntext = 'same'\nof = { s = '0.001' }\n\
                 to = { s = '0.1' }\ndirection = 'greater'\n";
    let (bench, _) = submitted(&lab("1.2", claim), 7);
    for limits in ["--max-runs 9", "--runs 14", "--max-runs 17"] {
        bench.ok(&format!("run -q --no-html --resume last {limits}"));
        bench.ok("export last --json submission.json");
        let file = graded(&bench, "submission.json", 3);
        assert_eq!(failed_checks(&file), Vec::<String>::new(), "{limits}");
        assert_eq!(file["result"], "refuted");
    }
}

#[test]
fn a_changed_experiment_fails_and_is_judged_by_the_claims_of_the_grader() {
    let (bench, _) = submitted(&lab("1.2", ""), 8);
    bench.write("own.toml", &lab("1.3", ""));
    let file = graded(&bench, "--experiment own.toml submission.json", 3);
    let differences = &file["grade"]["experiment_differences"];
    let expected = json!([{ "what": "claims lab.longer threshold", "values": ["1.3", "1.2"] }]);
    assert_eq!(*differences, expected);
    assert_eq!(file["result"], "changed");
    assert_eq!(file["grade"]["claims"][0]["result"], "holds");
    assert_eq!(file["grade"]["claims"][0]["submitted"]["threshold"], 1.3);
    bench.write("own.toml", &lab("1.2", "").replace("'0.1'", "'0.02'"));
    let text = shown(&bench, 3, "grade --experiment own.toml submission.json");
    has(
        &text,
        &[
            "factors s levels: yours 0.001, 0.02; submitted 0.001, 0.1",
            "no claim is judged",
        ],
    );
    bench.write("own.toml", &lab("1.2", ""));
    bench.ok("grade --experiment own.toml submission.json");
}

#[test]
fn what_is_unfinished_is_not_graded_as_complete() {
    let (bench, mut document) = submitted(&lab("1.2", ""), 8);
    document["run"]["status"] = json!("unfinished");
    document["analysis"] = json!(null);
    bench.write("unfinished.json", &document.to_string());
    let text = shown(&bench, 4, "grade unfinished.json");
    has(
        &text,
        &["7 blocks, unfinished", "`toll run --resume` continues it"],
    );
    has(
        &bench.ok("grade --run 1 submission.json").stdout,
        &["run 1 is the submitted one"],
    );
    document["run"]["uid"] = json!("00112233445566aa");
    bench.write("other.json", &document.to_string());
    bench.ok("import other.json");
    has(
        &bench.fails(2, "grade --run 2 submission.json"),
        &["run 2: it was measured elsewhere"],
    );
}

#[test]
fn no_command_of_a_submission_is_started_unless_that_is_allowed() {
    // Fixed parameters are substituted, too.
    let own = lab("1.2", "").replace("{s}'\n", "{s}; {last}'\nlast = 'true'\n");
    let (bench, mut document) = submitted(&own, 8);
    let touched = bench.path("touched");
    let command = format!("touch {}; sleep {{s}}; {{last}}", touched.display());
    let workload = &mut document["experiment"]["workload"];
    workload["commands"][""] = json!(command);
    for around in ["setup", "prepare", "conclude", "cleanup"] {
        workload[around] = json!(command);
    }
    workload["environment"] = json!({ "LD_PRELOAD": "evil.so" });
    bench.write("hostile.json", &document.to_string());
    bench.write("own.toml", &own);
    for (options, status) in [
        ("", 0),
        ("--run 1", 0),
        ("--measure --time-budget 1s", 2),
        ("--experiment own.toml --measure --time-budget 1s", 3),
    ] {
        let ran = bench.run(&format!("grade {options} hostile.json"));
        assert_eq!(ran.code, Some(status), "{options}: {ran:?}");
        assert!(!touched.exists(), "{options}");
    }
    let output = bench.fails(2, "grade --measure hostile.json");
    for what in ["command", "setup", "prepare", "conclude", "cleanup"] {
        has(&output, &[&format!("  {what}: touch ")]);
    }
    has(
        &output,
        &["variable: LD_PRELOAD=evil.so", "--run-foreign-commands"],
    );
    let allowed = "grade --measure --run-foreign-commands --time-budget 1s hostile.json";
    has(&bench.run(allowed).stderr, &["lab of hostile.json starts"]);
    assert!(touched.exists());
}

#[test]
fn workloads_of_toll_are_measured_without_being_allowed() {
    let copies = |methods: &str| {
        format!(
            "format = 1\nname = 'copies'\n[workload]\nkind = 'copy'\nsize = '64KiB'\n\
             cache = 'warm'\n[[factor]]\nname = 'method'\nlevels = [{methods}]\n[[claim]]\n\
             id = 'copies.faster'\ntext = 'readv is faster'\nof = {{ method = 'readv' }}\n\
             to = {{ method = 'byte' }}\ndirection = 'less'\n[run]\niterations = 1\n"
        )
    };
    let (bench, _) = submitted(&copies("'readv', 'byte', 'system-cat'"), 8);
    has(
        &bench.fails(2, "grade --measure submission.json"),
        &["  programs for method: system-cat"],
    );
    let (bench, mut document) = submitted(&copies("'readv', 'byte'"), 8);
    let ran = bench.run("grade --measure -q --time-budget 1s --json submission.json");
    has(&ran.stderr, &["which starts no program"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(failed_checks(&report["files"][0]), Vec::<String>::new());
    assert_eq!(report["files"][0]["grade"]["here"]["run"]["id"], 2);
    document["trials"][5]["samples"]["throughput_bytes_per_s"] = json!([1e9]);
    document["analysis"] = json!(null);
    bench.write("edited.json", &document.to_string());
    assert_eq!(failed_checks(&graded(&bench, "edited.json", 3)), ["rates"]);
}

#[test]
fn files_that_cannot_be_graded_are_told_in_a_line() {
    let (bench, document) = submitted(&lab("1.2", ""), 8);
    bench.write("bad.json", "{}");
    has(
        &bench.fails(2, "grade bad.json"),
        &["bad.json", "format is not toll-run"],
    );
    let text = shown(&bench, 2, "grade bad.json submission.json");
    has(&text, &["– bad.json: not graded"]);
    let mut other = document;
    other["run"]["machine"]["cpu_model"] = json!("\u{1b}[31mImaginary");
    other["run"]["toll_version"] = json!("9.9.9");
    bench.write("other.json", &other.to_string());
    let text = bench.ok("grade other.json").stdout;
    lacks(&text, &["\u{1b}"]);
    has(&text, &["not checked: order: toll 9.9.9 made the run"]);
}
