//! Exports in the formats of other programs.

use std::collections::BTreeMap;

use serde_json::Value;
use toll_testing::{Bench, Ran, has, has_program, list, skip, source_tree};

/// Collects the kind of each value in a document by its path. The elements of a list share one
/// path.
fn shape(value: &Value, path: &str, found: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(members) => {
            for (name, member) in members {
                shape(member, &format!("{path}.{name}"), found);
            }
            "object"
        }
        Value::Array(elements) => {
            for element in elements {
                shape(element, &format!("{path}[]"), found);
            }
            "list"
        }
        Value::Number(number) if path.contains("exit_codes") && number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    found.insert(path.to_owned(), kind);
}

fn shape_of(text: &str) -> BTreeMap<String, &'static str> {
    let document: Value = serde_json::from_str(text).expect("the text is JSON");
    let mut found = BTreeMap::new();
    shape(&document, "", &mut found);
    found
}

/// Returns the document that a version of hyperfine wrote for a command line.
fn by_hyperfine(version: &str, case: &str) -> String {
    let name = format!("crates/toll/tests/toll/samples/hyperfine-{version}-{case}.json");
    std::fs::read_to_string(source_tree().join(name)).expect("the sample can be read")
}

fn by_toll(bench: &Bench, schema: &str, arguments: &[&str]) -> String {
    let common = ["run", "-q", "--no-html", "--export-hyperfine", "ours.json"];
    let schema = ["--hyperfine-schema", schema];
    bench.ok(&[&common[..], &schema, arguments].concat());
    bench.read("ours.json")
}

#[test]
fn hyperfines_own_document_has_the_same_keys_and_types() {
    let bench = Bench::new();
    let plain = &["-r", "2", "sleep 0.001", "sleep 0.002"][..];
    let parameters = &["-r", "2", "-L", "s", "0.001,0.002", "sleep {s}"][..];
    let named = &["-n", "wait {s}", "--env", "A={s}"][..];
    let single = &["-r", "1", "-i", "false"][..];
    for (version, case, arguments) in [
        ("1.15", "plain", plain),
        ("1.15", "parameters", parameters),
        ("1.15", "single", single),
        ("2.0", "plain", plain),
        ("2.0", "parameters", &[named, parameters].concat()),
        ("2.0", "single", single),
    ] {
        let ours = by_toll(&bench, &version[..1], arguments);
        let theirs = by_hyperfine(version, case);
        assert_eq!(shape_of(&ours), shape_of(&theirs), "{version} {case}");
        // The keys are in the same order, for people who read the file.
        let keys = |text: &str| -> Vec<String> {
            let lines = text
                .lines()
                .filter_map(|line| line.trim().split_once("\": "));
            lines.map(|(key, _)| key.to_owned()).collect()
        };
        assert_eq!(keys(&ours), keys(&theirs), "{version} {case}");
    }
    // The newer schema is the default.
    let second = bench.ok("export last --hyperfine -").stdout;
    assert!(second.contains("\"schema_version\": 2"), "{second}");
    bench.fails(2, "export last --hyperfine - --hyperfine-schema 3");
    bench.fails(2, "export last --hyperfine-schema 1");
}

#[test]
fn a_document_of_schema_2_tells_commands_names_and_variables_apart() {
    let bench = Bench::new();
    let line = [
        "-r",
        "3",
        "--counter",
        "page-faults",
        "-L",
        "n",
        "4k,8k",
        "-n",
        "read {n}",
    ];
    let rest = ["--env", "N={n}", "head -c {n} /dev/zero"];
    let text = by_toll(&bench, "2", &[&line[..], &rest].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    let results = list(&document["results"]);
    assert_eq!(results.len(), 2, "{document:#}");
    for (result, n, bytes) in [(&results[0], "4k", "4096"), (&results[1], "8k", "8192")] {
        assert_eq!(result["command"], &*format!("head -c {n} /dev/zero"));
        assert_eq!(result["name"], &*format!("read {n}"));
        assert_eq!(result["environment"]["N"], n);
        assert_eq!(result["parameters"]["n"]["value"], bytes);
        let seconds = |metric: &str| -> Vec<f64> {
            let runs = list(&result["measurements"]).iter();
            runs.filter_map(|run| run[metric]["value"].as_f64())
                .collect()
        };
        let [user, system] = [seconds("time_user"), seconds("time_system")];
        for (cpu, parts) in seconds("time_cpu").iter().zip(user.iter().zip(&system)) {
            assert!((cpu - parts.0 - parts.1).abs() < 1e-12);
        }
        let wall = seconds("time_wall_clock");
        let summary = &result["summary"]["time_wall_clock"];
        assert_eq!(summary["count"], 3);
        let mean = wall.iter().sum::<f64>() / 3.0;
        assert!((summary["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
        assert_eq!(list(&result["measurements"])[0]["exit_code"], 0);
    }
}

#[test]
fn what_scripts_compute_from_a_hyperfine_document_is_right() {
    let bench = Bench::new();
    let arguments = [
        "-r",
        "5",
        "-L",
        "n",
        "4k,8k",
        "-i",
        "head -c {n} /dev/zero; exit 3",
    ];
    let document: Value = serde_json::from_str(&by_toll(&bench, "1", &arguments)).unwrap();
    let results = list(&document["results"]);
    assert_eq!(results.len(), 2, "the A/A twin is left out: {document:#}");
    for (result, bytes) in results.iter().zip(["4096", "8192"]) {
        // plot_parametrized (of hyperfine's scripts) reads the parameter as a number.
        assert_eq!(result["parameters"]["n"], bytes);
        let times: Vec<f64> = list(&result["times"])
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        assert_eq!(times.len(), 5);
        assert!(
            times.iter().all(|time| (1e-5..60.0).contains(time)),
            "seconds: {times:?}"
        );
        let mean = times.iter().sum::<f64>() / 5.0;
        assert!((result["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        let stddev = (squares / 4.0).sqrt();
        assert!((result["stddev"].as_f64().unwrap() - stddev).abs() < 1e-9);
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(result["median"], sorted[2]);
        assert_eq!(result["min"], sorted[0]);
        assert_eq!(result["max"], sorted[4]);
        assert_eq!(list(&result["exit_codes"]), [3; 5]);
    }
    assert_eq!(results[0]["command"], "head -c 4k /dev/zero; exit 3");
}

#[test]
fn benchstat_text_has_a_line_a_trial_and_configuration_that_two_runs_share() {
    let bench = Bench::new();
    let export = |file: &str| {
        let options = ["-r", "4", "sleep 0.001", "sleep 0.002"];
        let common = ["run", "-q", "--no-html", "--export-benchstat", file];
        bench.ok(&[&common[..], &options].concat());
        bench.read(file)
    };
    let (first, second) = (export("a.txt"), export("b.txt"));
    let configuration = |text: &str| -> Vec<String> {
        let lines = text.lines().take_while(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(configuration(&first), configuration(&second));
    assert!(first.contains("\npkg: toll/commands\n"), "{first}");
    let results: Vec<&str> = first
        .lines()
        .filter(|line| line.starts_with("Bench"))
        .collect();
    assert_eq!(results.len(), 8, "{first}");
    for line in results {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert!(
            fields[0].starts_with("BenchmarkCommands/sleep_0.00"),
            "{line}"
        );
        let (_, cpus) = fields[0].rsplit_once('-').unwrap();
        assert!(cpus.parse::<u32>().is_ok(), "{line}");
        assert!(fields[1].parse::<u64>().unwrap() >= 1, "{line}");
        assert_eq!(fields[3], "ns/op", "{line}");
        assert!(fields[2].parse::<f64>().unwrap() > 1e6, "{line}");
        for pair in fields[2..].chunks(2) {
            assert!(pair[0].parse::<f64>().is_ok() && pair.len() == 2, "{line}");
        }
    }
}

/// Runs an experiment that has one claim of each outcome that a made-up metric can have.
fn judged(bench: &Bench) -> Ran {
    let mut rest = String::from("[profile.full]\nfactors = { n = ['100', '110', '7'] }\n");
    for (id, direction, of) in [
        ("yes", "greater", "110"),
        ("no", "less", "110"),
        ("never", "less", "7"),
    ] {
        rest.push_str(&format!(
            "[[claim]]\nid = 'told.{id}'\ntext = \"<b>&\\\"' {id} \\u202E\"\nof = {{ n = '{of}' }}\n\
             to = {{ n = '100' }}\ndirection = '{direction}'\n"
        ));
    }
    crate::gate::experiment(bench, "['100', '110']", &rest);
    bench.run("run -q --no-html -r 8 told.toml --export-junit j.xml")
}

#[test]
fn junit_has_a_case_a_claim_and_survives_a_parser() {
    let bench = Bench::new();
    let ran = judged(&bench);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let text = bench.read("j.xml");
    has(
        &text,
        &["tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""],
    );
    assert!(text.contains("measured 1.10"), "{text}");
    assert_eq!(bench.ok("export last --junit -").stdout, text);
    if !has_program("python3") {
        skip("python3 is missing; install the package python3");
        return;
    }
    let script = "import xml.etree.ElementTree as tree\n\
                  for case in tree.parse('j.xml').getroot().iter('testcase'):\n\
                  \x20   print(case.get('name'), [part.tag for part in case], \
                  case.find('system-out').text[:8])\n";
    bench.write("read.py", script);
    let read = bench.shell("python3 read.py");
    let expected = "told.yes ['system-out'] <b>&\"' y\n\
                    told.no ['failure', 'system-out'] <b>&\"' n\n\
                    told.never ['skipped', 'system-out'] <b>&\"' n\n";
    assert_eq!(read.stdout, expected, "{}", read.stderr);
}

#[test]
fn a_format_that_does_not_apply_says_so_and_keeps_no_other_from_being_written() {
    let bench = Bench::new();
    let errors = bench.fails(2, "run true --export-junit j.xml");
    assert!(errors.contains("no claim"), "{errors}");
    assert!(!bench.store().exists(), "nothing ran");
    bench.ok("run -q --no-html -r 2 true");
    let files = [
        "--junit",
        "j.xml",
        "--csv",
        "c.csv",
        "--hyperfine",
        "h.json",
    ];
    let errors = bench.fails(2, &[&["export", "last"][..], &files].concat());
    has(
        &errors,
        &["JUnit's XML: it has no claims and no comparisons"],
    );
    assert!(bench.path("c.csv").exists() && bench.path("h.json").exists());
    assert!(!bench.path("j.xml").exists());
    // A run whose trials all failed has no times.
    let ran = bench.run("run -q --no-html -r 2 \"sh -c 'exit 9'\"");
    assert!(ran.code.is_some(), "{ran:#?}");
    for format in ["--hyperfine", "--benchstat"] {
        let errors = bench.fails(2, &["export", "last", format, "-"]);
        assert!(errors.contains("none of its trials has"), "{errors}");
    }
}

#[test]
fn tables_are_written_in_three_languages() {
    let bench = Bench::new();
    let files = "--export-markdown t.md --export-asciidoc t.adoc --export-orgmode t.org";
    bench.ok(&format!(
        "run -q --no-html -r 6 'sleep 0.001' 'cat /dev/null | sort' {files}"
    ));
    let [markdown, asciidoc, org] = ["t.md", "t.adoc", "t.org"].map(|name| bench.read(name));
    for (text, title, head, row) in [
        (&markdown, "## sleep", "| treatment |", "| `sleep 0.001` |"),
        (
            &asciidoc,
            "== sleep",
            "|===\n| treatment |",
            "| `cat /dev/null &#124; sort`\n",
        ),
        (&org, "* sleep", "| treatment |", "| ~sleep 0.001~ |"),
    ] {
        for needle in [title, head, row] {
            assert!(text.contains(needle), "{needle}: {text}");
        }
    }
    assert_eq!(bench.ok("export last --orgmode -").stdout, org);
}
