//! Verdicts from the evidence of several runs.

use rustix::process::Signal;
use serde_json::{Value, json};
use toll_testing::{Bench, has, has_program, lacks, list, python_with_packages, skip};

/// Four blocks decide none of these claims; two runs of four decide three of them.
const CLAIMS: &str = r#"
format = 1
name = "pair"
[workload]
kind = "command"
command = "COMMAND"
shell = "sh"
[metrics.told]
pattern = 'told=([0-9.]+)'
[[factor]]
name = "n"
levels = ["1", "3"]
[[derived]]
id = "spread"
text = "how far they lie apart"
kind = "spread"
factor = "n"
metric = "told"
[[claim]]
id = "pair.more"
text = "three is more than one"
metric = "told"
of = { n = "3" }
to = { n = "1" }
direction = "greater"
[[claim]]
id = "pair.half"
text = "three is at most half of one"
metric = "told"
of = { n = "3" }
to = { n = "1" }
direction = "less"
threshold = 0.5
[[claim]]
id = "pair.about"
text = "three is two to four times one"
metric = "told"
of = { n = "3" }
to = { n = "1" }
between = [2, 4]
[[claim]]
id = "pair.spread"
text = "they lie close together"
derived = "spread"
between = [1, 2]
"#;

const RUN: &str = "run -q --no-html -r 4 pair.toml";

fn bench(command: &str) -> Bench {
    let bench = Bench::new();
    bench.write("pair.toml", &CLAIMS.replace("COMMAND", command));
    bench
}

fn over_runs(bench: &Bench) -> Value {
    bench.json("show pair --all-runs --json")
}

/// Returns the blocks, the outcome and the number of runs of a claim.
fn claim(over: &Value, id: &str) -> (u64, String, u64) {
    let found = list(&over["claims"]).iter().find(|one| one["id"] == id);
    let found = found.expect("the claim is in the document");
    (
        found["e_values"]["blocks"].as_u64().unwrap_or_default(),
        found["outcome"].as_str().unwrap().to_owned(),
        found["runs"].as_u64().unwrap(),
    )
}

/// Imports the first run again with another identity and a change.
fn import_changed(bench: &Bench, uid: u64, change: impl Fn(&mut Value)) {
    let mut document = bench.document("1");
    document["run"]["uid"] = json!(format!("{uid:016x}"));
    change(&mut document);
    bench.write("run.json", &document.to_string());
    bench.ok("import run.json");
}

#[test]
fn a_second_run_decides_what_each_alone_leaves_open() {
    let bench = bench("echo told={n}");
    let first = bench.ok(RUN).stdout;
    has(&first, &["4 undecided; 4 blocks, run 1"]);
    lacks(&first, &["over", "not multiplied"]);
    let second = bench.ok(RUN).stdout;
    has(
        &second,
        &[
            "4 undecided; 4 blocks, run 2",
            "pair.more: ✔✔ over 2 runs (evidence 135, at least 20 decides)",
            "pair.half: ✘✘ over 2 runs (evidence 135, at least 20 decides)",
            "pair.about: ✔✔ over 2 runs (evidence 135, at least 20 decides)",
        ],
    );
    lacks(&second, &["pair.spread:"]);
    let shown = bench.ok("show pair --all-runs").stdout;
    has(
        &shown,
        &[
            "✔✔ pair.more     ?         2   8 of 8 for it       135       20",
            "✘✘ pair.half     ?         2  8 of 8 against       135       20",
            "the quantity does not have a value in each block",
            "over runs 1, 2: 2 supported (2 ✔✔), 1 refuted (1 ✘✘), 1 without evidence",
        ],
    );
    for line in second.lines().chain(shown.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(bench.json("show --all-runs --json"), over_runs(&bench));
}

#[test]
fn the_page_and_the_tables_have_the_evidence_of_all_runs() {
    let bench = bench("echo told={n}");
    let decided = "✔✔ over 2 runs (evidence 135, at least 20 decides)";
    bench.ok(RUN);
    bench.ok("report last --html page.html");
    lacks(&bench.read("page.html"), &["over 2 runs", "over runs"]);
    bench.ok("run -q -r 4 --html page.html pair.toml");
    has(&bench.read("page.html"), &[decided, "verdicts over runs"]);
    bench.ok("report 1 --html page.html");
    has(&bench.read("page.html"), &[decided, "verdicts over runs"]);
    if !has_program("python3") {
        return skip("DuckDB needs python3");
    }
    bench.ok("export --parquet tables last");
    let query = "SELECT claim, runs_multiplied, outcome_over_runs, needed_over_runs, \
                 round(log10_support_over_runs - 2 * log10_support, 6) \
                 FROM 'tables/verdicts/**/*.parquet' WHERE claim = 'pair.more'";
    bench.write(
        "query.py",
        &format!("import duckdb\nprint(duckdb.sql(\"\"\"{query}\"\"\").fetchall())"),
    );
    let output = bench.shell(&format!("{} query.py", python_with_packages()));
    has(
        &output.stdout,
        &["('pair.more', 2, 'supported', 20.0, 0.0)"],
    );
}

#[test]
fn several_experiments_count_what_earlier_runs_add_apart_and_conditions_do_not() {
    let bench = bench("echo told={n}");
    let other = CLAIMS.replace("COMMAND", "echo told={n}");
    bench.write("other.toml", &other.replace("\"pair", "\"other"));
    bench.ok(&format!("{RUN} other.toml"));
    let again = bench.ok(&format!("{RUN} other.toml --fail-on refuted"));
    has(
        &again.stdout,
        &[
            "2 runs: 8 undecided",
            "further verdicts with earlier runs: 4 supported (4 ✔✔), 2 refuted (2 ✘✘)",
            "other.half: ✘✘ over 2 runs",
        ],
    );
}

#[test]
fn runs_of_other_machines_kernels_and_workloads_are_named_and_not_multiplied() {
    let bench = bench("echo told={n}");
    bench.ok(RUN);
    for uid in [1, 2] {
        import_changed(&bench, uid, |it| {
            it["run"]["machine"]["kernel_release"] = json!("1.2.3");
        });
    }
    import_changed(&bench, 3, |it| {
        it["run"]["machine"]["hostname"] = json!("elsewhere");
    });
    bench.write("pair.toml", &CLAIMS.replace("COMMAND", "echo  told={n}"));
    let out = bench.ok(RUN).stdout;
    lacks(&out, &["decides"]);
    let output = "evidence not multiplied: 1 run, as the host differs; 2 runs, as the kernel release \
                differs; 1 run, as the workload (command) differs";
    has(&out.replace('\n', " "), &[output]);
    let over = over_runs(&bench);
    assert_eq!(over["runs"], json!([5]));
    let excluded = list(&over["excluded"]);
    assert_eq!(
        excluded[1],
        json!({ "reason": "the kernel release differs", "runs": [2, 3] })
    );
    assert_eq!(claim(&over, "pair.more"), (4, "undecided".into(), 1));
    // A run from another store of the same machine counts.
    bench.ok(&format!("{RUN} --store other.sqlite"));
    bench.ok("export last --json there.json --store other.sqlite");
    bench.ok("import there.json");
    let over = bench.json("show 5 --all-runs --json");
    assert_eq!(over["runs"], json!([5, 6]));
    assert_eq!(claim(&over, "pair.more"), (8, "supported".into(), 2));
}

#[test]
fn an_interrupted_run_has_the_evidence_of_its_trials_and_is_still_one_when_it_went_on() {
    let bench = bench("[ ! -e wait ] || sleep 0.1; echo told={n}");
    bench.ok(RUN);
    bench.write("wait", "");
    let mut running = bench.start(&RUN.replace("-r 4", "-r 40"));
    running.until("the second run has more than 6 trials", || {
        bench.json("list --json")["runs"].as_array().map(Vec::len) == Some(2)
            && bench.trials().len() > 6
    });
    running.send(Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    let over = over_runs(&bench);
    assert_eq!(over["runs"], json!([1, 2]));
    let (blocks, outcome, runs) = claim(&over, "pair.more");
    assert!((6..44).contains(&blocks), "{blocks}");
    assert_eq!((outcome.as_str(), runs), ("supported", 2));
    std::fs::remove_file(bench.path("wait")).unwrap();
    bench.ok("run -q --no-html --resume 2");
    let over = over_runs(&bench);
    assert_eq!(over["runs"], json!([1, 2]));
    assert_eq!(claim(&over, "pair.more"), (44, "supported".into(), 2));
}

#[test]
fn runs_without_claims_and_unknown_names_are_refused() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 1 true false -i");
    let errors = bench.fails(2, "show --all-runs");
    has(
        &errors,
        &["cannot show claims over all runs: ", " has none"],
    );
    let errors = bench.fails(1, "show nothing --all-runs");
    has(&errors, &["cannot find run nothing"]);
    bench.fails(2, "show --all-runs --kernel-log");
}
