//! Moving runs between machines: documents, tables, comparisons.

use serde_json::{Value, json};
use toll_core::fleet::model::FleetReport;
use toll_grade::grading::model::GradeReport;
use toll_host::store::exchange::RunDocument;
use toll_testing::{Bench, has, list, source_tree};

const SCHEMA: &str = "docs/schema/run.schema.json";
const FLEET_SCHEMA: &str = "docs/schema/fleet.schema.json";
const GRADE_SCHEMA: &str = "docs/schema/grade.schema.json";

/// Prepares a bench with one run of two commands and a claim about them.
fn bench_with_run() -> Bench {
    let bench = Bench::new();
    bench.write(
        "pair.toml",
        "format = 1\nname = 'pair'\n[workload]\nkind = 'command'\ncommand = 'sleep {s}'\n\
         [[factor]]\nname = 's'\nlevels = ['0.001', '0.004']\n[[claim]]\nid = 'pair.longer'\n\
         text = 'longer'\nof = { s = '0.004' }\nto = { s = '0.001' }\ndirection = 'greater'\n\
         [run]\niterations = 2\n",
    );
    bench.ok("run -q --no-html -r 6 pair.toml");
    bench
}

fn exported(bench: &Bench) -> Value {
    bench.json("export last --json -")
}

#[test]
fn published_schemas_are_those_of_the_code() {
    let schemas = [
        (SCHEMA, schemars::schema_for!(RunDocument)),
        (FLEET_SCHEMA, schemars::schema_for!(FleetReport)),
        (GRADE_SCHEMA, schemars::schema_for!(GradeReport)),
    ];
    for (name, schema) in schemas {
        let schema = serde_json::to_value(schema).unwrap();
        let schema = format!("{schema:#}\n");
        let path = source_tree().join(name);
        if std::env::var_os("TOLL_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == schema,
            "{name} is not up to date; run: make bless"
        );
    }
}

#[test]
fn a_run_is_judged_the_same_elsewhere() {
    for options in ["-r 1 true \"sh -c 'exit 3'\"", "-r 6 true 'sleep 0.001'"] {
        let bench = Bench::new();
        // In one of the two runs a command fails.
        bench.run(&format!("run -q --no-html {options}"));
        let here = exported(&bench);
        bench.write("run.json", &here.to_string());
        let output = bench.ok("import run.json --store other.sqlite").stdout;
        assert!(output.starts_with("run 1: commands of "), "{output}");
        let there = bench.json("show 1 --json --store other.sqlite");
        for part in ["analysis", "trials", "treatments"] {
            assert_eq!(there[part], here[part]);
        }
        assert_eq!(there["run"]["uid"], here["run"]["uid"]);
        assert_eq!(there["run"]["imported"], true);
        let errors = bench.fails(1, "import run.json --store other.sqlite");
        has(&errors, &["it already exists, as run 1"]);
        has(&bench.ok("list --store other.sqlite").stdout, &["imported"]);
    }
}

#[test]
fn documents_that_do_not_hold_together_are_refused() {
    let bench = bench_with_run();
    let good = exported(&bench);
    type Damage = fn(&mut Value);
    let damages: &[(&str, Damage)] = &[
        ("format", |d| d["format"] = json!("other")),
        ("version", |d| d["version"] = json!(2)),
        ("version", |d| d["version"] = json!(0)),
        ("uid", |d| d["run"]["uid"] = json!("../../../etc/x")),
        ("invalid digit", |d| d["run"]["seed"] = json!("many")),
        ("out of place", |d| d["treatments"][0]["index"] = json!(1)),
        ("out of place", |d| d["treatments"][2]["twin_of"] = json!(2)),
        ("not exist", |d| d["trials"][0]["treatment"] = json!(99)),
        ("twice", |d| {
            let first = d["trials"][0].clone();
            d["trials"].as_array_mut().unwrap().push(first);
        }),
        ("unknown field", |d| d["trials"][0]["surprise"] = json!(1)),
        ("missing field", |d| {
            d["run"].as_object_mut().unwrap().remove("machine");
        }),
        ("invalid", |d| d["trials"][0]["block"] = json!(-1)),
        ("invalid", |d| {
            d["trials"][0]["samples"]["duration_ns"][0] = json!("fast")
        }),
    ];
    for (needle, damage) in damages {
        let mut document = good.clone();
        damage(&mut document);
        bench.write("bad.json", &document.to_string());
        let errors = bench.fails(2, "import bad.json");
        has(&errors, &[needle, "bad.json"]);
    }
    let deep = "[".repeat(100_000);
    for text in ["", "[]", "{", "null", "{\"format\":\"toll-run\"}", &deep] {
        bench.write("bad.json", text);
        bench.fails(2, "import bad.json");
    }
    bench.fails(1, "import missing.json");
    assert_eq!(
        list(&bench.json("list --json")["runs"]).len(),
        1,
        "nothing was imported"
    );
}

#[test]
fn names_in_a_document_cannot_choose_where_plots_are_written() {
    let bench = bench_with_run();
    let mut document = exported(&bench);
    document["run"]["uid"] = json!("00000000deadbeef");
    document["experiment"]["name"] = json!("../../escaped");
    document["run"]["experiment"] = json!("../../escaped");
    bench.write("hostile.json", &document.to_string());
    std::fs::create_dir_all(bench.path("a/b")).unwrap();
    if bench.run("import hostile.json").code == Some(0) {
        bench.run("report 2 --plots a/b/plots");
    }
    let outside: Vec<_> = ["", "a", "a/b"]
        .iter()
        .flat_map(|name| std::fs::read_dir(bench.path(name)).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("escaped"))
        .collect();
    assert_eq!(outside, Vec::<String>::new());
}

#[test]
fn several_exports_are_written_at_once_and_csv_has_a_line_for_every_sample() {
    let bench = bench_with_run();
    let document = exported(&bench);
    let samples: usize = list(&document["trials"])
        .iter()
        .flat_map(|trial| trial["samples"].as_object().unwrap().values())
        .map(|values| list(values).len())
        .sum();
    std::fs::create_dir(bench.path("o")).unwrap();
    bench.ok("export 1 --json o/run.json --csv o/run.csv --markdown o/run.md");
    has(&bench.read("o/run.md"), &["| :-- |", "pair.longer"]);
    assert!(!bench.read("o/run.json").is_empty());
    let csv = bench.ok("export 1 --csv -").stdout;
    assert_eq!(csv, bench.read("o/run.csv"));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + samples);
    let columns: Vec<&str> = lines[0].split(',').collect();
    assert!(
        columns.contains(&"s"),
        "there is one column per factor: {columns:?}"
    );
    for line in &lines {
        assert_eq!(line.split(',').count(), columns.len(), "{line}");
    }
    let durations = lines.iter().filter(|line| line.contains(",duration_ns,"));
    let (blocks, treatments, iterations) = (6, 3, 2);
    assert_eq!(durations.count(), blocks * treatments * iterations);
}

#[test]
fn a_comparison_begins_with_what_differs_in_the_machines() {
    let bench = bench_with_run();
    let mut document = exported(&bench);
    document["run"]["uid"] = json!("00000000deadbeef");
    // Conclusions in an imported document are not trusted.
    let measured = document["analysis"]["verdicts"].clone();
    document["analysis"]["verdicts"][0]["outcome"] = json!("refuted");
    document["run"]["machine"]["cpu_model"] = json!("Imaginary 9000");
    document["run"]["machine"]["kernel_release"] = json!("9.9.9");
    bench.write("other.json", &document.to_string());
    bench.ok("import other.json");
    assert_eq!(exported(&bench)["analysis"]["verdicts"], measured);
    let text = bench.ok("compare 1 2").stdout;
    let place = |needle: &str| {
        text.find(needle)
            .unwrap_or_else(|| panic!("{needle} is missing:\n{text}"))
    };
    assert!(
        place("Imaginary 9000") < place("9.9.9"),
        "the CPU explains more than the kernel"
    );
    assert!(place("9.9.9") < place("pair.longer"), "{text}");
    let comparison = bench.json("compare 1 2 --json");
    let first = &comparison["differences"][0];
    assert_eq!(
        (&first["what"], &first["values"][1]),
        (&json!("cpu model"), &json!("Imaginary 9000"))
    );
    assert_eq!(list(&comparison["runs"]).len(), 2);
}
