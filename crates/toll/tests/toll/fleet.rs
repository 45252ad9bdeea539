//! Runs as tables for query engines.

use std::process::Command;

use crate::common::{Bench, has, has_program, is_root, skip, source_tree};

const CLOCKS: &str = "
format = 1
name = 'clocks'
title = 'Clocks'
metric = 'duration_per_call_ns'
[workload]
kind = 'crossing'
calls = 100
[[factor]]
name = 'operation'
levels = ['vdso', 'clock-syscall']
[[claim]]
id = 'clocks.vdso'
text = 'the vDSO takes less time'
of = { operation = 'vdso' }
to = { operation = 'clock-syscall' }
direction = 'less'
threshold = 1
";

/// A bench with runs of two experiments, exported to `tables`.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("clocks.toml", CLOCKS);
    bench.ok("run -q --no-html -r 12 clocks.toml");
    bench.ok("run -q --no-html -r 3 true false -i");
    let exported = bench.ok("export --parquet tables");
    has(&exported.stderr, &["wrote 2 runs as Parquet below tables"]);
    bench
}

fn files(bench: &Bench, table: &str) -> Vec<String> {
    let pattern = format!("find tables/{table} -name '*.parquet' | sort");
    let found = bench.shell(&pattern).stdout;
    found.lines().map(str::to_owned).collect()
}

#[test]
fn a_run_has_one_file_a_table_and_replaces_its_own() {
    let bench = bench();
    for table in ["runs", "machines", "treatments", "samples", "verdicts"] {
        let found = files(&bench, table);
        assert_eq!(found.len(), 2, "{found:?}");
        let path = &found[0];
        has(path, &["experiment=clocks/machine="]);
    }
    let before = std::fs::read(bench.path(&files(&bench, "samples")[0])).unwrap();
    bench.ok("export --parquet tables 1 last");
    assert_eq!(files(&bench, "samples").len(), 2);
    assert_eq!(
        std::fs::read(bench.path(&files(&bench, "samples")[0])).unwrap(),
        before
    );
    assert_eq!(bench.shell("find tables -name '.toll*'").stdout, "");
}

#[test]
fn several_runs_do_not_fit_into_one_file() {
    let bench = bench();
    let said = bench.fails(2, "export --json all.json");
    has(&said, &["name one run; --parquet alone takes several"]);
    bench.fails(2, "export 1 2 --json all.json");
    has(
        &bench.fails(2, "export last"),
        &["name a file, as with --json FILE"],
    );
    bench.ok("export 1 --json one.json --parquet tables");
    bench.write("file", "");
    let said = bench.fails(1, "export --parquet file");
    has(
        &said,
        &[
            "cannot make file/samples",
            "name a directory that you may write",
        ],
    );
}

/// The fenced texts of a language in the documentation of fleets.
fn queries(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(source_tree().join("docs/FLEET.md")).unwrap();
    let begin = format!("```{language}\n");
    let blocks = text.split(begin.as_str()).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn documented_queries_run_in_the_engines() {
    if !is_root() && !has_program("java") {
        return skip("Spark needs Java, which only root can install");
    }
    if !has_program("python3") || !has_program("java") {
        return skip("DuckDB, Polars and Spark need python3 and java");
    }
    let installed = Command::new(source_tree().join("tools/install-query-engines"))
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let python = String::from_utf8(installed.stdout).unwrap();
    let bench = bench();
    let run = |script: &str| {
        bench.write("query.py", script);
        let ran = bench.shell(&format!("{} query.py", python.trim()));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stdout
    };
    let sql = queries("sql");
    assert_eq!(sql.len(), 2);
    let shown: Vec<String> = sql
        .iter()
        .map(|query| {
            run(&format!(
                "import duckdb\nprint(duckdb.sql('''{query}''').fetchall())"
            ))
        })
        .collect();
    has(&shown[0], &["('clocks.vdso', 1, 1, 0, "]);
    has(&shown[1], &["'true'", "'false'"]);
    let python = queries("python");
    assert_eq!(python.len(), 2);
    has(&run(&python[0]), &["clocks", "vdso", "median_ns"]);
    has(&run(&python[1]), &["|trials|failed|"]);
}
