//! Output on different kinds of terminals.

use toll_testing::{Bench, has, has_program, skip};

/// The first byte of an escape sequence.
const ESCAPE: char = '\u{1b}';

#[test]
fn text_that_is_not_for_a_terminal_has_no_escape_codes() {
    let bench = Bench::new();
    bench.ok("run -q --no-html -r 2 true");
    let ran = bench.ok("run -r 6 true");
    assert!(
        !ran.stdout.contains(ESCAPE) && !ran.stderr.contains(ESCAPE),
        "{ran:#?}"
    );
    for arguments in [
        &["show"][..],
        &["list"],
        &["compare", "1", "2"],
        &["doctor", "--no-noise"],
    ] {
        let ran = bench.ok(arguments);
        assert!(!ran.stdout.contains(ESCAPE), "{ran:#?}");
        assert!(!ran.stdout.is_empty());
    }
    assert!(bench.ok("show").stdout.contains('±') || bench.ok("show").stdout.contains('['));
}

/// Prepares a bench with two kinds of runs, a claim and a baseline.
fn bench_with_runs() -> Bench {
    let bench = Bench::new();
    let text = "format = 1\nname = 'pair'\n[workload]\nkind = 'command'\ncommand = 'sleep {s}'\n\
                [[factor]]\nname = 's'\nlevels = ['0.001', '0.002']\n[[claim]]\n\
                id = 'pair.longer'\ntext = 'the longer one takes longer'\nof = { s = '0.002' }\n\
                to = { s = '0.001' }\ndirection = 'greater'\n";
    bench.write("pair.toml", text);
    let quiet = ["run", "-q", "--no-html", "-r", "6"];
    bench.ok(&[&quiet[..], &["pair.toml", "--save-baseline", "main"]].concat());
    bench.ok(&[&quiet[..], &["true", "sleep 0.001"]].concat());
    for _ in 0..5 {
        bench.ok(&[&quiet[..], &["pair.toml"]].concat());
    }
    bench
}

/// Every verb that lays out text.
const LAID_OUT: &[&[&str]] = &[
    &["list"],
    &["show", "1"],
    &["show", "2"],
    &["show", "3", "--baseline", "main"],
    &["compare", "1", "2"],
    &["compare", "--baseline", "main", "3"],
    &["compare", "1,3,4", "5-7"],
    &["baseline", "list"],
    &["doctor", "--no-noise"],
    &["kernel", "list"],
    &["run", "--dry-run", "pair.toml"],
    &["run", "--dry-run", "cat", "--profile", "quick"],
    &["run", "-q", "--no-html", "-r", "2", "pair.toml"],
];

#[test]
fn narrow_and_ascii_terminals_get_lines_that_fit() {
    let bench = bench_with_runs();
    for arguments in LAID_OUT {
        for width in [20, 30, 40, 60, 120] {
            for term in ["xterm", "dumb"] {
                let mut command = bench.toll(*arguments);
                command.env("COLUMNS", width.to_string()).env("TERM", term);
                let output = command.output().unwrap();
                assert!(output.status.success(), "{arguments:?}: {output:?}");
                let text = String::from_utf8(output.stdout).unwrap();
                for line in text.lines() {
                    let columns = line.chars().count();
                    assert!(
                        columns <= width,
                        "{arguments:?}: {columns} columns of {width}: {line:?}\n{text}"
                    );
                }
                let is_plain = text.is_ascii() && output.stderr.is_ascii();
                assert!(term != "dumb" || is_plain, "{arguments:?}: {text}");
            }
        }
    }
}

#[test]
fn listings_in_a_pipe_keep_one_line_for_each_entry() {
    let bench = bench_with_runs();
    let text = bench.ok("doctor --no-noise").stdout;
    assert!(!text.lines().any(|line| line.starts_with(' ')), "{text}");
    let text = bench.ok("list").stdout;
    let runs = text.lines().filter(|line| line.contains("complete"));
    assert_eq!(runs.count(), 7, "{text}");
}

/// Runs a line on a terminal of its own (script(1)), and returns what it drew.
fn on_a_terminal(bench: &Bench, environment: &str, line: &str) -> Option<String> {
    drawn_at(bench, 100, environment, line)
}

/// Does the same on a terminal with this many columns.
fn drawn_at(bench: &Bench, columns: usize, environment: &str, line: &str) -> Option<String> {
    if !has_program("script") {
        skip("script(1) is missing; install the package bsdutils");
        return None;
    }
    let line = format!("stty cols {columns} rows 30; {environment} {line}");
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
    has(&drawn, &["0:00 of 10:00, block 0 of 12 · sleep 0.02"]);
    assert!(drawn.contains(ESCAPE), "{drawn:?}");
    // After the bar was cleared for the last time, only the result follows.
    let result = drawn.rsplit("\u{1b}[2K").next().unwrap_or_default();
    assert!(!result.contains("block 1"), "{result:?}");
    assert!(result.contains("sleep"), "{result:?}");
}

#[test]
fn progress_shows_which_claims_are_decided() {
    let bench = bench_with_runs();
    // The stopping rule looks after 10 blocks, and never finds intervals this narrow.
    let line = "toll run --no-html --target-ci 0.001% -M 40 pair.toml";
    let Some(drawn) = drawn_at(&bench, 80, "", line) else {
        return;
    };
    assert!(drawn.contains(" ✘ of 1 claim"), "{drawn:?}");
}

#[test]
fn a_narrow_terminal_gets_progress_on_one_line() {
    let bench = Bench::new();
    let line = "toll run --no-html -r 4 \"sleep 0.02\"";
    for (columns, environment) in [(20, ""), (80, ""), (40, "LC_ALL=C")] {
        let Some(drawn) = drawn_at(&bench, columns, environment, line) else {
            return;
        };
        assert!(drawn.contains("commands"), "{drawn:?}");
        // Progress that wraps would have to be cleared by moving up.
        let goes_up = |code: &str| {
            code.trim_start_matches(['[', '1', '2', '3'])
                .starts_with('A')
        };
        assert!(
            !drawn.split(ESCAPE).skip(1).any(goes_up),
            "at {columns}: {drawn:?}"
        );
        assert!(environment.is_empty() || drawn.is_ascii(), "{drawn:?}");
    }
}

#[test]
fn names_and_output_of_commands_give_a_terminal_no_command() {
    let bench = Bench::new();
    let title = "\\033]0;title\\007\\033[2J\\302\\233";
    bench.write(
        "cry.sh",
        &format!("printf '{title}' >&2; printf '{title}'; exit 1"),
    );
    let text = format!(
        "name=$(printf '{title}'); for run in 'run --no-html -r 3' 'run -r 3 -q'; do
           toll $run -n \"$name\" -n b --output pipe 'bash cry.sh' true; done
         toll show; toll compare 1 2; toll list; toll run -n; toll \"$name\"; toll show \"$name\""
    );
    bench.write("all.sh", &text);
    let Some(drawn) = on_a_terminal(&bench, "", "bash all.sh || true") else {
        return;
    };
    for command in ["\u{1b}]", "\u{7}", "\u{9b}", "\u{1b}[2J"] {
        assert!(!drawn.contains(command), "{command:?}: {drawn:?}");
    }
    assert!(drawn.matches("\u{fffd}]0;title").count() > 8, "{drawn:?}");
    assert!(
        drawn.contains("\u{1b}[31m") || drawn.contains("\u{1b}[1m"),
        "{drawn:?}"
    );
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
    assert!(drawn.contains(ESCAPE), "a terminal gets colours: {drawn:?}");
    let Some(plain) = on_a_terminal(&bench, "NO_COLOR=1", "toll show") else {
        return;
    };
    assert!(!plain.contains(ESCAPE), "{plain:?}");
}
