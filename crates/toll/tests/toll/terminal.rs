//! What is drawn on which kind of terminal.

use crate::common::{Bench, has_program, skip};

/// An escape sequence's first byte.
const ESCAPE: char = '\u{1b}';

#[test]
fn text_that_is_not_for_a_terminal_has_no_escape_codes() {
    let bench = Bench::new();
    let ran = bench.ok(&["run", "-r", "6", "true"]);
    assert!(
        !ran.stdout.contains(ESCAPE) && !ran.stderr.contains(ESCAPE),
        "{ran:#?}"
    );
    for arguments in [
        &["show"][..],
        &["list"],
        &["compare", "1", "1"],
        &["doctor", "--no-noise"],
    ] {
        let ran = bench.ok(arguments);
        assert!(!ran.stdout.contains(ESCAPE), "{ran:#?}");
        assert!(!ran.stdout.is_empty());
    }
    assert!(bench.ok(&["show"]).stdout.contains('±') || bench.ok(&["show"]).stdout.contains('['));
}

#[test]
fn narrow_and_ascii_terminals_get_lines_that_fit() {
    let bench = Bench::new();
    bench.ok(&["run", "-r", "6", "-q", "--no-html", "true", "sleep 0.001"]);
    for width in [30, 40, 60, 120] {
        let mut command = bench.toll(&["show"]);
        command.env("COLUMNS", width.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for line in text.lines() {
            let columns = line.chars().count();
            assert!(
                columns <= width,
                "{columns} columns of {width}: {line:?}\n{text}"
            );
        }
    }
    let mut command = bench.toll(&["show"]);
    command.env("TERM", "dumb");
    let output = command.output().unwrap();
    assert!(
        output.stdout.is_ascii(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Runs a line on a terminal of its own (script(1)) and gives what it drew.
fn on_a_terminal(bench: &Bench, environment: &str, line: &str) -> Option<String> {
    if !has_program("script") {
        skip("script(1) is missing; install the package bsdutils");
        return None;
    }
    let line = format!("stty cols 100 rows 30; {environment} {line}");
    let quoted = line.replace('\'', r"'\''");
    let ran = bench.shell(&format!("script -qec '{quoted}' /dev/null </dev/null"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    Some(ran.stdout)
}

#[test]
fn a_terminal_shows_a_bar_that_leaves_nothing_behind() {
    let bench = Bench::new();
    let line = "toll run --no-html -r 12 \"sleep 0.02\" \"sleep 0.021\"";
    let Some(drawn) = on_a_terminal(&bench, "", line) else {
        return;
    };
    assert!(
        drawn.contains(" blocks, ") && drawn.contains("elapsed"),
        "{drawn:?}"
    );
    assert!(drawn.contains(ESCAPE), "{drawn:?}");
    // What stands after the bar's last clearing is the result alone.
    let result = drawn.rsplit("\u{1b}[2K").next().unwrap_or_default();
    assert!(!result.contains("elapsed"), "{result:?}");
    assert!(result.contains("sleep"), "{result:?}");
}

#[test]
fn a_terminal_without_colour_or_movement_gets_none() {
    let bench = Bench::new();
    let line = "toll run --no-html -r 2 true";
    let Some(dumb) = on_a_terminal(&bench, "TERM=dumb", line) else {
        return;
    };
    assert!(!dumb.contains(ESCAPE), "{dumb:?}");
    let Some(drawn) = on_a_terminal(&bench, "", "toll show") else {
        return;
    };
    assert!(
        drawn.contains(ESCAPE),
        "colours are expected on a terminal: {drawn:?}"
    );
    let Some(plain) = on_a_terminal(&bench, "NO_COLOR=1", "toll show") else {
        return;
    };
    assert!(!plain.contains(ESCAPE), "{plain:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    bench.ok(&["run", "-r", "2", "-q", "--no-html", "true"]);
    for line in [
        "toll list",
        "toll show --json",
        "toll man",
        "toll completions bash",
        "toll export last --json -",
    ] {
        let ran = bench.shell(&format!(
            "set -o pipefail; {line} | head -c 1 >/dev/null; echo \"${{PIPESTATUS[0]}}\""
        ));
        assert_eq!(ran.stderr, "", "{line}");
        assert_eq!(ran.stdout.trim(), "0", "{line}");
    }
}
