//! Stores that come from elsewhere: nothing in them starts a program unless the user allows it.

use std::path::Path;

use rusqlite::Connection;
use toll_testing::{Bench, Ran, has, lacks};

const ALLOWED: &str = "--run-foreign-commands";

/// Prepares an unfinished run of a command that creates a file. It is in the store of another user,
/// who has another key.
fn foreign() -> (Bench, Bench) {
    let (author, bench) = (Bench::new(), Bench::new());
    let command = format!("touch {}", bench.path("started").display());
    author.ok(&["run", "-q", "--no-html", "-r", "3", &command, "true"]);
    std::fs::copy(author.store(), bench.path("theirs.sqlite")).unwrap();
    assert!(bench.path("started").exists());
    std::fs::remove_file(bench.path("started")).unwrap();
    (author, bench)
}

fn is_started(bench: &Bench) -> bool {
    bench.path("started").exists()
}

fn with(bench: &Bench, arguments: &[&str]) -> Ran {
    let mut all = vec![arguments[0], "--store", "theirs.sqlite"];
    all.extend(&arguments[1..]);
    bench.run(&all)
}

#[test]
fn a_run_of_somebody_else_starts_nothing_before_that_is_allowed() {
    let (_author, bench) = foreign();
    for line in [
        ["run", "-q", "--resume", "1", "-r", "4"].as_slice(),
        &["why", "-q"],
    ] {
        let ran = with(&bench, line);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let command = format!("touch {}", bench.path("started").display());
        has(&ran.stderr, &["did not begin it", &command, ALLOWED]);
        assert!(!is_started(&bench), "{line:?}");
    }
    let allowed = [
        "run",
        "-q",
        "--no-html",
        "--resume",
        "1",
        "-r",
        "4",
        ALLOWED,
    ];
    let ran = with(&bench, &allowed);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(is_started(&bench));
    // From then on the run belongs to this user.
    let ran = with(
        &bench,
        &["run", "-q", "--no-html", "--resume", "1", "-r", "5"],
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_run_of_ones_own_goes_on_without_a_question() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 3 true");
    bench.ok("run -q --no-html --resume 1 -r 4");
    bench.ok("doctor --salvage saved.sqlite");
    bench.ok("run -q --no-html --store saved.sqlite --resume 1 -r 5");
}

#[test]
fn a_command_that_was_changed_in_the_store_is_somebody_elses() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 3 -n one true");
    let mark = bench.path("started");
    let changed = format!("touch {}", mark.display());
    let store = Connection::open(bench.store()).unwrap();
    let set = "UPDATE runs SET hash = NULL, experiment = \
               json_set(experiment, '$.workload.commands.one', ?1)";
    assert_eq!(store.execute(set, [&changed]).unwrap(), 1);
    drop(store);
    let error = bench.fails(2, "run -q --no-html --resume 1 -r 4");
    has(&error, &["did not begin it", &changed]);
    assert!(!mark.exists());
}

#[test]
fn levels_that_were_changed_in_the_store_reach_no_command() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 3 -L n=1,2 'true {n}'");
    let mark = bench.path("started");
    let level = format!("1; touch {}", mark.display());
    let store = Connection::open(bench.store()).unwrap();
    let set = "UPDATE runs SET hash = NULL, treatments = \
               json_set(treatments, '$[0].levels.n.text', ?1)";
    assert_eq!(store.execute(set, [&level]).unwrap(), 1);
    drop(store);
    for line in ["run -q --no-html --resume 1 -r 4", "why -q"] {
        let ran = bench.run(line);
        assert_ne!(ran.code, Some(0), "{ran:#?}");
        assert!(!mark.exists(), "{line}");
    }
}

#[test]
fn what_starts_no_program_needs_no_permission() {
    let (author, bench) = (Bench::new(), Bench::new());
    author.ok("run -q --no-html --profile quick -r 2 -L size=4KiB -L fs=work -L method=byte cat");
    std::fs::copy(author.store(), bench.path("theirs.sqlite")).unwrap();
    let ran = with(
        &bench,
        &["run", "-q", "--no-html", "--resume", "1", "-r", "3"],
    );
    lacks(&ran.stderr, &[ALLOWED]);
}

/// Changes the schema of a store, as another program could.
fn define(store: &Path, sql: &str) {
    let connection = Connection::open(store).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn a_store_that_computes_what_is_read_or_written_is_refused() {
    for (sql, name) in [
        (
            "CREATE TRIGGER worm AFTER INSERT ON trials BEGIN DELETE FROM runs; END",
            "worm",
        ),
        ("CREATE VIEW seen AS SELECT * FROM runs", "seen"),
        (
            "ALTER TABLE runs ADD COLUMN twice INTEGER AS (id * 2)",
            "runs",
        ),
        (
            "DROP TABLE boots; CREATE VIEW boots AS SELECT 1 AS id, 1 AS run_id, '{}' AS record",
            "boots",
        ),
    ] {
        let bench = Bench::new();
        bench.ok("run -q --no-html -r 3 true");
        define(&bench.store(), sql);
        for line in ["list", "show", "run -q --no-html -r 3 true"] {
            let error = bench.fails(1, line);
            has(&error, &[name, "is not as toll makes it"]);
        }
    }
}

#[test]
fn reading_a_store_writes_nothing_into_it() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 3 true");
    let store = toll_host::store::Store::read(&bench.store()).unwrap();
    let before = std::fs::read(bench.store()).unwrap();
    let mut store = store;
    let baseline = toll_host::store::Baseline {
        name: "x".into(),
        experiment: "commands".into(),
        run_id: 1,
        saved_at: String::new(),
    };
    assert!(store.save_baseline(&baseline).is_err());
    drop(store);
    assert_eq!(std::fs::read(bench.store()).unwrap(), before);
}
