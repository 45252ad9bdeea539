//! Tables of runs for query engines, and reports over machines.

use toll_testing::{Bench, has, has_program, lacks, list, python_with_packages, skip, source_tree};

pub const CLOCKS: &str = "
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
    has(&said, &["name one run; only --parquet takes several"]);
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

/// The code blocks of a language in the documentation of fleets.
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
    if !has_program("python3") || !has_program("java") {
        return skip("DuckDB, Polars and Spark need python3 and java");
    }
    let python = python_with_packages();
    let bench = bench();
    let run = |script: &str| {
        bench.write("query.py", script);
        let ran = bench.shell(&format!("{} query.py", python));
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

/// Tables of twelve machines. Half of them have xfs, and there a call to the vDSO takes 30
/// times as long.
fn fleet_of_twelve() -> Bench {
    fleet_of(CLOCKS)
}

fn fleet_of(clocks: &str) -> Bench {
    let bench = Bench::new();
    bench.write("clocks.toml", clocks);
    bench.ok("run -q --no-html -r 12 clocks.toml");
    let measured = bench.document("last");
    let vdso = list(&measured["treatments"])
        .iter()
        .find(|one| one["label"] == "vdso");
    let vdso = vdso.unwrap()["index"].clone();
    for number in 0..12 {
        let mut run = measured.clone();
        let has_xfs = number >= 6;
        run["run"]["uid"] = format!("{number:016x}").into();
        run["run"]["machine"]["hostname"] = format!("node{number}").into();
        run["run"]["machine"]["kernel_release"] = format!("6.{}.0", number % 2).into();
        run["run"]["machine"]["work_file_system"]["kind"] =
            (if has_xfs { "xfs" } else { "ext4" }).into();
        for trial in run["trials"].as_array_mut().unwrap() {
            if has_xfs && trial["treatment"] == vdso {
                let samples = trial["samples"]["duration_per_call_ns"].as_array_mut();
                for sample in samples.unwrap() {
                    *sample = (30.0 * sample.as_f64().unwrap()).into();
                }
            }
        }
        bench.write("node.json", &run.to_string());
        bench.ok("import node.json --store fleet.sqlite");
    }
    bench.ok("export --parquet tables --store fleet.sqlite");
    bench
}

#[test]
fn an_unfinished_run_does_not_stand_for_a_complete_one() {
    let bench = Bench::new();
    bench.write("clocks.toml", CLOCKS);
    bench.ok("run -q --no-html -r 12 clocks.toml");
    let mut newer = bench.document("last");
    newer["run"]["uid"] = "00000000000000ff".into();
    newer["run"]["created_at"] = "2999-01-01T00:00:00Z".into();
    newer["run"]["status"] = "unfinished".into();
    newer["trials"].as_array_mut().unwrap().truncate(3);
    bench.write("newer.json", &newer.to_string());
    bench.ok("import newer.json");
    bench.ok("export --parquet tables");
    assert_eq!(files(&bench, "runs").len(), 2);
    let report = bench.json("fleet report tables --json");
    assert_eq!(report["claims"][0]["counts"]["supported"], 1, "{report:#}");
}

#[test]
fn a_report_tells_where_a_claim_holds_and_by_what_machines_differ() {
    let bench = fleet_of_twelve();
    let report = bench.json("fleet report tables --json --html page.html");
    assert_eq!(list(&report["machines"]).len(), 12);
    let [claim] = list(&report["claims"]) else {
        panic!("there is one claim: {report:#}");
    };
    assert_eq!(claim["counts"]["supported"], 6, "{claim:#}");
    assert_eq!(claim["counts"]["refuted"], 6, "{claim:#}");
    let role = |name: &str| {
        let mut facts = list(&claim["facts"]).iter();
        facts.find(|one| one["name"] == name).unwrap()["role"].clone()
    };
    assert_eq!(role("file system"), "explains");
    assert_eq!(role("kernel"), "no-difference");
    assert_eq!(role("CPU family"), "not-tested");
    let shown = bench.ok("fleet report tables").stdout;
    has(
        &shown,
        &[
            "clocks.vdso",
            "6 of 12",
            "differs by file system, not by kernel",
        ],
    );
    let page = bench.read("page.html");
    has(
        &page,
        &[
            "node0-",
            "clocks.vdso",
            "differs by file system, not by kernel",
        ],
    );
    assert_eq!(page.matches("<rect").count(), 12);
    lacks(&page, &["<script", "<?xml", "http:"]);
}

#[test]
fn of_several_runs_on_a_machine_the_newest_counts() {
    let bench = fleet_of_twelve();
    let mut run = bench.json("export 1 --json - --store fleet.sqlite");
    run["run"]["uid"] = "00000000000000ff".into();
    run["run"]["created_at"] = "2099-01-01T00:00:00Z".into();
    run["experiment"]["claims"][0]["threshold"] = 1e-6.into();
    bench.write("newer.json", &run.to_string());
    bench.ok("import newer.json --store fleet.sqlite");
    bench.ok("export --parquet tables last --store fleet.sqlite");
    let report = bench.json("fleet report tables --json");
    assert_eq!(report["claims"][0]["counts"]["supported"], 5);
    assert_eq!(list(&report["claims"][0]["machines"]).len(), 12);
}

#[test]
fn what_is_wrong_with_tables_is_told_with_the_file() {
    let bench = fleet_of_twelve();
    let said = bench.fails(1, "fleet report nowhere");
    has(
        &said,
        &[
            "cannot read nowhere/runs",
            "name a directory written by toll export --parquet",
        ],
    );
    let file = files(&bench, "verdicts")[0].clone();
    let bytes = std::fs::read(bench.path(&file)).unwrap();
    std::fs::write(bench.path(&file), &bytes[..bytes.len() / 2]).unwrap();
    let said = bench.fails(1, "fleet report tables");
    has(
        &said,
        &[&file, "export its run again, or remove the run's files"],
    );
    std::fs::remove_file(bench.path(&file)).unwrap();
    has(&bench.fails(1, "fleet report tables"), &[&file]);
    // An interrupted export lacks the file of `runs`, which is written last.
    let name = file.rsplit('/').next().unwrap();
    bench.shell(&format!("rm tables/runs/*/*/{name}"));
    let report = bench.json("fleet report tables --json");
    assert_eq!(list(&report["machines"]).len(), 11);
}

/// Claims on how machines differ, and two published platforms.
const OVER_MACHINES: &str = "
[[claim]]
id = 'clocks.fs'
text = 'file systems differ'
of = { operation = 'vdso' }
to = { operation = 'clock-syscall' }
differ_by = 'file system'
threshold = 3
[[claim]]
id = 'clocks.kernel'
text = 'older kernels are slower'
of = { operation = 'vdso' }
to = { operation = 'clock-syscall' }
differ_by = 'kernel'
direction = 'greater'
threshold = 3
[[platform]]
name = 'old server'
report = 'paper'
facts = { kernel = '2.6', 'file system' = 'ext4' }
concluded = { 'clocks.fs' = 'the faster one' }
[[platform]]
name = 'new server'
report = 'paper'
facts = { kernel = '5.15', 'file system' = 'zfs' }
concluded = { 'clocks.fs' = 'the slower one' }
";

#[test]
fn a_claim_on_how_machines_differ_is_answered_by_all_of_them() {
    let bench = fleet_of(&format!("{CLOCKS}{OVER_MACHINES}"));
    let of_one = bench.document("last");
    let of_one = &of_one["analysis"]["verdicts"][1];
    assert_eq!(of_one["outcome"], "not-testable", "{of_one:#}");
    assert!(of_one["measured"]["value"].is_number(), "{of_one:#}");
    let report = bench.json("fleet report tables --json --html page.html");
    let [fs, kernel, vdso] = list(&report["claims"]) else {
        panic!("there are three claims: {report:#}");
    };
    let outcomes = [fs, kernel].map(|claim| &claim["difference"]["outcome"]);
    assert_eq!(outcomes, ["supported", "refuted"], "{report:#}");
    assert_eq!(fs["difference"]["levels"]["of"], "xfs");
    assert_eq!(kernel["difference"]["alike_in"][0], "file system");
    assert!(vdso["difference"].is_null());
    // Published platforms do not count as machines.
    assert_eq!(list(&report["published_platforms"]).len(), 2);
    assert_eq!(list(&report["machines"]).len(), 12);
    assert_eq!(list(&fs["machines"]).len(), 12);
    let shown = bench.ok("fleet report tables").stdout;
    has(
        &shown,
        &[
            "supported: xfs over ext4 is 30.0 [30.0, 30.0], beyond the claimed 3",
            "refuted: among machines alike in file system, 6.0 over 6.1 is 1.00",
            "published: old server: the faster one",
        ],
    );
    let page = bench.read("page.html");
    has(
        &page,
        &[
            "none of these machines was measured",
            "file system cannot be told from kernel",
            "clocks.fs, new server, published by paper: the slower one",
        ],
    );
    assert_eq!(page.matches("<rect class=\"published\"").count(), 2);
    lacks(&page, &["<script", "<?xml", "http:"]);
}
