//! Tests the output of `tools/build-quietly`, which builds for `make run`.

use toll_testing::{Bench, Ran, make_executable, source_tree};

/// A `cargo` that builds two of two crates, one of them in two parts, and exits with `STATUS`.
const CARGO: &str = r#"#!/bin/sh
case $1 in
tree) printf 'one v1\ntwo v1 (*)\ntwo v1\n' ;;
build)
    for part in 'artifact one' 'artifact one' 'script two' 'artifact two'; do
        set -- $part
        echo "{\"reason\":\"compiler-$1\",\"package_id\":\"$2\",\"fresh\":true}"
    done
    printf 'error: first\nerror: last\n' >&2
    exit STATUS ;;
esac
"#;

fn build(status: u8) -> Ran {
    let bench = Bench::new();
    let cargo = bench.write("cargo", &CARGO.replace("STATUS", &status.to_string()));
    make_executable(&cargo);
    let script = source_tree().join("tools/build-quietly");
    let line = format!("CARGO={} {} a b", cargo.display(), script.display());
    bench.shell(&line)
}

#[test]
fn a_build_is_one_line_where_there_is_no_terminal() {
    let ran = build(0);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.starts_with("built a b in 0:"), "{ran:#?}");
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:#?}");
    assert!(!ran.stdout.trim_end().contains(char::is_control));
}

#[test]
fn a_build_that_fails_shows_all_errors_and_keeps_the_status() {
    let ran = build(101);
    assert_eq!(ran.code, Some(101), "{ran:#?}");
    assert_eq!(ran.stderr, "error: first\nerror: last\n");
    assert_eq!(ran.stdout, "");
}
