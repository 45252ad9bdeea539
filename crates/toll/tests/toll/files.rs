//! The `files` workload in experiment files.

use toll_testing::{Bench, list};

const HEAD: &str = r#"
format = 1
name = "files"
metric = "duration_per_operation_ns"

[workload]
kind = "files"
"#;

#[test]
fn every_operation_on_files_is_a_treatment() {
    let bench = Bench::new();
    let rest = r#"
size = "64KiB"
small_size = 100
buffer = "4KiB"
count = 30

[[factor]]
name = "operation"
levels = ["read-sequential", "write-sequential", "read-random", "write-random", "create", "stat", "unlink", "open-tree"]
"#;
    bench.write("files.toml", &format!("{HEAD}{rest}"));
    let run = bench.measured("files.toml -r 1");
    let treatments = list(&run["analysis"]["treatments"]);
    assert_eq!(treatments.len(), 9, "includes a twin");
    for treatment in treatments {
        let operation = treatment["levels"]["operation"].as_str().unwrap();
        let median = |metric: &str| treatment["estimates"][metric]["median"]["value"].as_f64();
        let is_of_tree = ["create", "stat", "unlink", "open-tree"].contains(&operation);
        let operations = if is_of_tree { 30.0 } else { 16.0 };
        assert_eq!(median("operations"), Some(operations), "{treatment:#}");
        let moves = !["stat", "unlink"].contains(&operation);
        let rate = median("throughput_bytes_per_s");
        assert_eq!(rate.is_some(), moves, "{operation}");
    }
    assert_eq!(bench.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_files_cannot_be_is_refused() {
    let bench = Bench::new();
    for (line, word) in [
        ("operation = 'rename'", "read-sequential"),
        ("durability = 'o-sync'", "fsync"),
        ("cache = 'tepid'", "cold"),
        ("count = 0", "whole number"),
        ("size = 0", "1 byte"),
        ("small_size = '2MiB'", "1 MiB"),
        ("input = 1", "no such parameter"),
    ] {
        bench.write("files.toml", &format!("{HEAD}{line}\n"));
        let error = bench.fails(2, "run files.toml --dry-run");
        assert!(error.contains(word), "{line}: {error}");
    }
}
