//! Read-only stores: they can be read, and commands that would write say why they cannot.

use toll_testing::isolated;
use toll_testing::{Bench, Ran, has, has_program, in_a_namespace, make_executable, skip};

use crate::settings::Settings;

/// Shell scripts with commands that read a store and with commands that would write to it. They
/// print the outputs and the statuses.
const READ: &str = "for line in list 'show 1' 'export 1 --csv -' 'export 1 --json -' \
                    'report 1 --html -' 'compare 1 2' 'baseline list' 'show 2 --baseline main'; do
    echo \"== $line\"; toll $line --store ro/runs.sqlite || echo \"status $?\"
done";
const WRITE: &str = "for line in 'run -q --no-html -r 1 true' 'run --resume 1 -r 9' \
                     'import run.json' 'baseline save x 1' 'baseline remove main'; do
    echo \"== $line\"; toll $line --store ro/runs.sqlite || echo \"status $?\"
done";

/// Prepares a store of two runs, another run to import, and a script for each kind of command.
fn prepared() -> Bench {
    let bench = Bench::new();
    let store = ["--store", "ro/runs.sqlite"];
    for _ in 0..2 {
        bench.ok(&[&["run", "-q", "--no-html", "-r", "6", "true"][..], &store].concat());
    }
    bench.ok(&[&["baseline", "save", "main", "1"][..], &store].concat());
    bench.ok("run -q --no-html -r 1 true");
    bench.ok("export 1 --json run.json");
    bench.write("read", READ);
    bench.write("write", WRITE);
    make_executable(&bench.path("read"));
    make_executable(&bench.path("write"));
    bench
}

#[track_caller]
fn check_reads(ran: &Ran, before: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.stdout, before.stdout, "{}", ran.stderr);
    assert!(!ran.stdout.contains("\nstatus "), "{ran:#?}");
}

#[track_caller]
fn check_writes(ran: &Ran) {
    assert_eq!(ran.stdout.matches("status 1").count(), 5, "{ran:#?}");
    let errors: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("toll: "))
        .collect();
    assert_eq!(errors.len(), 5, "{ran:#?}");
    for error in errors {
        for needle in [
            "cannot write the store",
            "read-only",
            "--store",
            "ro/runs.sqlite",
        ] {
            assert!(error.contains(needle), "{needle}: {error}");
        }
    }
}

const READ_ONLY: &str = "mount --bind ro ro; mount -o remount,bind,ro ro";

#[test]
fn a_store_on_a_read_only_file_system_is_read() {
    let bench = prepared();
    let settings = Settings::before(&bench);
    let before = bench.shell(". ./read");
    let Some(ran) = in_a_namespace(&bench, &format!("{READ_ONLY}; . ./read")) else {
        return;
    };
    check_reads(&ran, &before);
    let ran = in_a_namespace(&bench, &format!("{READ_ONLY}; . ./write")).expect("as before");
    check_writes(&ran);
    settings.are_back();
}

#[test]
fn a_store_with_a_log_on_a_read_only_file_system_is_read_with_what_is_in_the_log() {
    let bench = prepared();
    // An open connection keeps the log from being cleared.
    let open = rusqlite::Connection::open(bench.path("ro/runs.sqlite")).unwrap();
    let count: i64 = open
        .query_row("SELECT count(*) FROM runs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 2);
    bench.ok("run -q --no-html -r 3 true --store ro/runs.sqlite");
    let before = bench.shell(". ./read; toll show 3 --json --store ro/runs.sqlite");
    std::fs::create_dir(bench.path("copy")).unwrap();
    for name in ["runs.sqlite", "runs.sqlite-wal"] {
        std::fs::copy(bench.path("ro").join(name), bench.path("copy").join(name)).unwrap();
    }
    drop(open);
    assert!(
        std::fs::metadata(bench.path("copy/runs.sqlite-wal"))
            .unwrap()
            .len()
            > 0
    );
    let line = format!(
        "rm -r ro; mv copy ro; {READ_ONLY}; . ./read; toll show 3 --json --store ro/runs.sqlite"
    );
    let Some(ran) = in_a_namespace(&bench, &line) else {
        return;
    };
    check_reads(&ran, &before);
}

#[test]
fn a_store_of_another_user_is_read() {
    isolated(|| {
        if !has_program("setpriv") {
            skip("becoming another user needs setpriv(1)");
            return;
        }
        let bench = prepared();
        let before = bench.shell(". ./read");
        for modes in [
            "chmod 555 ro; chmod 444 ro/*",
            "chmod 777 ro; chmod 444 ro/*",
        ] {
            let line = |script: &str| {
                format!(
                "chmod 755 . && {modes}; mkdir -p theirs && chmod 1777 theirs
                 export XDG_STATE_HOME=$PWD/theirs XDG_CACHE_HOME=$PWD/theirs TOLL_RUN_LOCK=$PWD/theirs/lock
                 setpriv --reuid=65534 --regid=65534 --clear-groups bash -c '. ./{script}'"
            )
            };
            let ran = bench.shell(
            "chmod 755 .; setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'toll --version'",
        );
            if ran.code != Some(0) {
                skip("another user cannot read the build directory");
                return;
            }
            check_reads(&bench.shell(&line("read")), &before);
            check_writes(&bench.shell(&line("write")));
        }
    });
}

#[test]
fn a_store_that_may_not_be_read_is_named_with_the_reason() {
    let bench = prepared();
    std::fs::create_dir(bench.path("directory")).unwrap();
    for verb in [&["list"][..], &["show"], &["run", "-r", "1", "true"]] {
        let arguments = [verb, &["--store", "directory"]].concat();
        let errors = bench.fails(1, &arguments);
        has(&errors, &["is a directory", "--store"]);
    }
    bench.write("empty", "");
    let listed = bench.ok("list --store empty");
    assert!(listed.stderr.contains("exists but is empty"), "{listed:#?}");
    assert!(
        bench
            .fails(1, "show --store empty")
            .contains("exists but is empty")
    );
    assert_eq!(bench.read("empty"), "", "reading creates no store");
}
