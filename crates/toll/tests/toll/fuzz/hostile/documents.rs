//! Runs that were exported on another machine, and experiment files.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toll_host::store::Store;
use toll_host::store::exchange::RunDocument;
use toll_testing::Bench;
use toll_testing::isolated;

use super::checks::{
    check_asciidoc, check_benchstat, check_csv, check_markdown, check_org, check_page, check_plain,
    check_xml, markup,
};
use super::{feed, ok, place, ran};

/// Returns the document of a run with claims, a guest's boot and a failed trial, which contains all
/// kinds of text.
fn document(bench: &Bench) -> Value {
    let file = bench.write(
        "pair.toml",
        "format = 1\nname = 'pair'\nreport = 'paper'\n[workload]\nkind = 'command'\n\
         command = 'sleep {s}'\n[[factor]]\nname = 's'\nlevels = ['0.001', '0.004']\n[[claim]]\n\
         id = 'pair.longer'\ntext = 'longer'\nof = { s = '0.004' }\nto = { s = '0.001' }\n\
         direction = 'greater'\npublished = 2.0\n[[claim]]\nid = 'pair.shorter'\ntext = 'shorter'\n\
         of = { s = '0.004' }\nto = { s = '0.001' }\ndirection = 'less'\n[reference]\ns = '0.001'\n\
         [[figure]]\ntitle = 'a curve'\nkind = 'curve'\nfactor = 's'\n",
    );
    bench.ok(&["run", "-q", "--no-html", "-r", "6", file.to_str().unwrap()]);
    let mut document = bench.json("export last --json -");
    document["run"]["stop_reason"] = json!("enough");
    document["boots"] = json!([{
        "block": 0, "started_at": "2026-01-01T00:00:00Z", "boot_ns": 5, "levels": {"kernel": "toll"},
        "accelerator": "kvm", "facts": {"kernel_release": "6.1"}, "error": "it died",
        "log": "a log\nof two lines\n", "partner": {"facts": {"swap": "0"}, "log": "another"},
    }]);
    let trial = &mut document["trials"][0];
    trial["message"] = json!("it failed");
    trial["state"] = json!("failed");
    trial["notes"] = json!(["a note"]);
    trial["counters_missing"] = json!({"cycles": "none"});
    trial["disturbance"] = json!({"steal_ns": 3.0});
    document["treatments"][2]["skipped"] = json!({"kind": "other", "message": "not here"});
    document["run"]["uid"] = json!("00000000deadbeef");
    document
}

/// Collects the paths of all texts of a document; paths of keys end in `#`.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(format!("{path}#"));
                places(member, &path, found);
            }
        }
        _ => {}
    }
}

/// Puts a text into every place where `accepts` still takes the document. Returns the document and
/// the number of these places. Paths for which `is_kept` holds keep their text.
fn poisoned(
    good: &Value,
    text: &str,
    is_kept: impl Fn(&str) -> bool,
    accepts: impl Fn(&Value) -> bool,
) -> (Value, usize) {
    let mut found = Vec::new();
    places(good, "", &mut found);
    found.retain(|path| !is_kept(path));
    // A key is changed after its members, so that their paths stay valid.
    found.sort_by_key(|path| std::cmp::Reverse(path.len()));
    let mut document = good.clone();
    let mut count = 0;
    for path in found {
        let mut tried = document.clone();
        if put(&mut tried, &path, text).is_some() && accepts(&tried) {
            document = tried;
            count += 1;
        }
    }
    (document, count)
}

/// Puts a text in front of another one, or in front of a key.
fn put(document: &mut Value, path: &str, text: &str) -> Option<()> {
    let Some(path) = path.strip_suffix('#') else {
        let place = document.pointer_mut(path)?;
        *place = json!(format!("{text}{}", place.as_str().unwrap_or_default()));
        return Some(());
    };
    let (parent, key) = path.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    let members = document.pointer_mut(parent)?.as_object_mut()?;
    let member = members.remove(&key)?;
    members.insert(format!("{text}{key}"), member);
    Some(())
}

/// Output of a run.
struct Written {
    page: String,
    fleet: String,
    plots: Vec<String>,
    junit: String,
}

/// Options of `toll export`, which name the files as well.
const FILES: [&str; 8] = [
    "markdown",
    "asciidoc",
    "orgmode",
    "csv",
    "junit",
    "hyperfine",
    "benchstat",
    "json",
];

fn written(bench: &Bench, run: &str) -> Written {
    let directory = format!("out-{run}");
    let file = |name: &str| format!("{directory}/{name}");
    let (page, fleet, tables) = (file("page.html"), file("fleet.html"), file("tables"));
    ok(
        bench,
        &["report", run, "--html", &page, "--plots", &directory],
    );
    let mut arguments = vec!["export".to_owned(), run.to_owned()];
    for name in FILES {
        arguments.extend([format!("--{name}"), file(name)]);
    }
    ok(bench, &arguments);
    ok(bench, &["export", run, "--parquet", &tables]);
    ok(bench, &["fleet", "report", &tables, "--html", &fleet]);
    let mut plots = Vec::new();
    for entry in std::fs::read_dir(bench.path(&directory)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            plots.push(std::fs::read_to_string(path).unwrap());
        }
    }
    assert!(!plots.is_empty(), "run {run}");
    Written {
        page: bench.read(&page),
        fleet: bench.read(&fleet),
        plots,
        junit: bench.read(&file("junit")),
    }
}

/// Prints a run with every verb.
fn check_verbs(bench: &Bench, run: &str) {
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["show", run],
        &["show", run, "--json"],
        &["show", run, "--kernel-log"],
        &["compare", "2", run],
        &["compare", "2", run, "--json"],
        &["baseline", "list"],
    ] {
        ok(bench, words);
    }
    ran(bench, &["baseline", "save", &format!("name{run}"), run]);
    ran(bench, &["show", run, "--baseline", &format!("name{run}")]);
    ran(bench, &["run", "--resume", run]);
    ran(bench, &["grade", "hostile.json"]);
}

/// Returns whether a text is needed to show the run at all, or is covered by another place.
fn is_kept_of_a_run(path: &str) -> bool {
    path.starts_with("/analysis")
        || ["/run/uid", "/format"].contains(&path)
        || path.ends_with("/metric")
        // There are many trials, all alike.
        || path.starts_with("/trials/") && !path.starts_with("/trials/0/")
}

#[test]
fn texts_of_others_stay_texts_in_everything_that_is_shown_or_written() {
    isolated(|| {
        let bench = place();
        let mut good = document(&bench);
        bench.write("good.json", &good.to_string());
        bench.ok("import good.json");
        let benign = written(&bench, "2");
        let (page, fleet) = (markup(&benign.page), markup(&benign.fleet));
        let junit = markup(&benign.junit);
        let plots: BTreeSet<String> = benign.plots.iter().flat_map(|one| markup(one)).collect();
        good["analysis"] = Value::Null;
        feed("document", 10, &bench, |text, case| {
            let accepts = |tried: &Value| RunDocument::parse(&tried.to_string()).is_ok();
            let (mut document, places) = poisoned(&good, text, is_kept_of_a_run, accepts);
            assert!(places > 20, "{places} places");
            document["run"]["uid"] = json!(format!("{:016x}", case.rng.next_u64()));
            bench.write("hostile.json", &document.to_string());
            let output = ok(&bench, "import hostile.json").stdout;
            let number = output
                .strip_prefix("run ")
                .and_then(|rest| rest.split_once(':'));
            let run = number.expect("the number of the run is printed").0;
            check_verbs(&bench, run);
            let hostile = written(&bench, run);
            check_page(&hostile.page, &page);
            check_page(&hostile.fleet, &fleet);
            for plot in &hostile.plots {
                check_page(plot, &plots);
            }
            check_xml(&hostile.junit, &junit);
            let out = |name: &str| bench.read(&format!("out-{run}/{name}"));
            check_markdown(&out("markdown"));
            check_asciidoc(&out("asciidoc"));
            check_org(&out("orgmode"));
            check_csv(&out("csv"));
            check_benchstat(&out("benchstat"));
            for name in ["hyperfine", "json"] {
                check_plain(&out(name), name);
                serde_json::from_str::<Value>(&out(name)).unwrap();
            }
            std::fs::remove_dir_all(bench.path(&format!("out-{run}"))).unwrap();
        });
        let salvaged = bench.ok("doctor --salvage new.sqlite");
        check_plain(&salvaged.stdout, "salvage");
        assert!(Store::survey(&bench.store()).unwrap().is_whole);
    });
}

/// An experiment with every kind of text outside its commands.
const EXPERIMENT: &str = r#"
format = 1
name = 'pair'
title = 'a pair'
report = 'paper'
[workload]
kind = 'command'
commands = { one = 'true', two = 'true' }
[metrics.speed]
pattern = 'speed ([0-9.]+)'
unit = 'B/s'
better = 'higher'
[reference]
command = 'one'
[[claim]]
id = 'pair.longer'
text = 'two takes longer'
of = { command = 'two' }
to = { command = 'one' }
direction = 'greater'
"#;

#[test]
fn texts_of_an_experiment_file_stay_texts() {
    isolated(|| {
        let bench = place();
        let table: toml::Table = EXPERIMENT.parse().unwrap();
        let good = serde_json::to_value(table).unwrap();
        let toml = |value: &Value| toml::to_string(value).unwrap();
        let accepts =
            |value: &Value| toll_core::spec::parse(&toml(value), "hostile.toml", "quick").is_ok();
        assert!(accepts(&good));
        bench.write("good.toml", &toml(&good));
        let run = |file: &'static str, page: &'static str| {
            let words = ["run", "-q", "-r", "2", "--html", page, file];
            [&words[..], &["--plots", "plots"]].concat()
        };
        bench.ok(&run("good.toml", "good.html"));
        let known = markup(&bench.read("good.html"));
        feed("experiment-file", 8, &bench, |text, _| {
            // Commands are meant to be obeyed; their names are not.
            let is_command = |path: &str| path.starts_with("/workload/") && !path.ends_with('#');
            let (hostile, places) = poisoned(&good, text, is_command, accepts);
            assert!(places > 2, "{places} places");
            bench.write("hostile.toml", &toml(&hostile));
            ran(&bench, "run --dry-run hostile.toml");
            ran(&bench, "fleet submit --script --dry-run hostile.toml");
            if ran(&bench, &run("hostile.toml", "hostile.html")).code == Some(0) {
                check_page(&bench.read("hostile.html"), &known);
            }
            // A refused file is reported safely.
            let all = poisoned(&good, text, |_| false, |_| true).0;
            bench.write("wrong.toml", &toml(&all));
            ran(&bench, "run --dry-run wrong.toml");
        });
    });
}
