//! Terminals, readers and files that vanish or take no output while `toll` prints, and commands
//! that want the terminal.

use toll_testing::{Bench, Running, has_program, list, skip, wait_until};

use crate::settings::Settings;

/// Runs a shell line in which `toll` is the program under test.
fn shell(bench: &Bench, line: &str) -> toll_testing::Ran {
    let ran = bench.shell(line);
    assert!(!ran.stderr.contains("panicked"), "{line}: {ran:#?}");
    ran
}

/// Starts a shell line on a terminal that ends when the returned process is killed.
fn on_a_terminal(bench: &Bench, line: &str) -> Option<Running> {
    if !has_program("script") {
        skip("script(1) is missing; install the package bsdutils");
        return None;
    }
    bench.write("line.sh", line);
    let mut command = bench.spawnable_program("script", &["-qec", "sh ./line.sh", "/dev/null"]);
    Some(Running(command.spawn().unwrap()))
}

/// Returns the status that a line has written to a file at its end.
#[track_caller]
fn status(bench: &Bench) -> String {
    let text = || std::fs::read_to_string(bench.path("status")).unwrap_or_default();
    wait_until("the line has ended", || text().ends_with('\n'));
    text().trim().to_owned()
}

#[test]
fn a_run_whose_terminal_vanishes_ends_as_on_a_hang_up() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    // The kernel sends SIGHUP to the session leader, as a shell does to its jobs.
    let line = "exec toll run --html page.html -r 2000 'sleep 0.02'\n";
    let Some(mut terminal) = on_a_terminal(&bench, line) else {
        return;
    };
    terminal.until("the store has a trial", || !bench.trials().is_empty());
    terminal.kill();
    settings.are_back();
    let shown = bench.document("last");
    assert_eq!(shown["run"]["status"], "unfinished");
    assert!(!list(&shown["trials"]).is_empty());
    // The run ended in the regular way.
    assert!(bench.path("page.html").exists());
}

#[test]
fn a_run_that_ignores_hang_ups_goes_on_without_its_terminal() {
    let bench = Bench::new();
    let settings = Settings::before(&bench);
    let line = "trap '' HUP; toll run -r 30 --no-html 'sleep 0.02' >out; echo $? >status\n";
    let Some(mut terminal) = on_a_terminal(&bench, line) else {
        return;
    };
    terminal.until("the store has a trial", || !bench.trials().is_empty());
    terminal.kill();
    assert_eq!(status(&bench), "0");
    settings.are_back();
    assert_eq!(bench.document("last")["run"]["status"], "complete");
    assert!(bench.read("out").contains("sleep"));
}

#[test]
fn a_full_or_closed_standard_error_keeps_nothing_from_being_measured() {
    let bench = Bench::new();
    for redirection in ["2>/dev/full", "2>&-", "2>&1 >out | :", "2>/dev/full <&-"] {
        let line =
            format!("toll run -r 2 --no-html true {redirection}; echo ${{PIPESTATUS[0]}} >>status");
        shell(&bench, &line);
    }
    assert_eq!(bench.read("status"), "0\n".repeat(4));
    // This includes errors: of a command line, of a file, of a run.
    for (line, code) in [
        ("toll run --nonsense 2>/dev/full", 2),
        ("toll show 99 2>/dev/full", 1),
        ("toll run -q --no-html -r 3 false 2>/dev/full", 1),
    ] {
        assert_eq!(shell(&bench, line).code, Some(code), "{line}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_and_kept() {
    let bench = Bench::new();
    bench.ok("run -q -r 2 --no-html true");
    let ran = shell(&bench, "toll run -q -r 2 --no-html true >/dev/full");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("cannot write the result"), "{ran:#?}");
    assert_eq!(bench.document("last")["run"]["status"], "complete");
    for verb in [
        "list",
        "show",
        "show --json",
        "compare 1 last",
        "export last --json -",
        "export last --csv -",
        "report last --output -",
        "doctor --no-noise",
        "kernel list",
        "baseline list",
        "man",
        "completions bash",
    ] {
        let ran = shell(&bench, &format!("toll {verb} >/dev/full"));
        assert!([Some(1), Some(2)].contains(&ran.code), "{verb}: {ran:#?}");
    }
}

#[test]
fn a_run_is_quiet_towards_readers_that_have_seen_enough() {
    let bench = Bench::new();
    for (line, expected) in [
        ("run -q --no-html -r 2 true | head -n 1", "0"),
        ("run -r 2 true 2>&1 | head -c 1", "0"),
        ("run --json -q --no-html -r 2 true | head -c 1", "0"),
        ("show | head -n 1", "0"),
        ("list | head -c 1", "0"),
        ("show --json | head -c 1", "0"),
        ("man | head -c 1", "0"),
        ("completions bash | head -c 1", "0"),
        ("export last --json - | head -c 1", "0"),
        ("report last --html - | head -c 1", "0"),
        ("run --nonsense 2>&1 | head -c 0", "2"),
        ("--help | head -n 1", "0"),
    ] {
        let line = format!("toll {line} >/dev/null; echo \"${{PIPESTATUS[0]}}\"");
        let ran = shell(&bench, &line);
        assert_eq!(ran.stdout.trim(), expected, "{line}: {ran:#?}");
        let noise = ran.stderr.lines().find(|line| !line.starts_with("note: "));
        assert_eq!(noise, None, "{line}");
    }
}

#[test]
fn a_command_that_wants_the_terminal_fails_at_once_and_leaves_it_as_it_was() {
    let bench = Bench::new();
    // A background process group of the terminal's session would be stopped.
    let line = "stty -g >before; toll run -q --no-html -r 3 'stty -echo raw </dev/tty' 2>errors
                toll run -q --no-html -r 3 'read word </dev/tty' 2>>errors
                stty -g >after; echo $? >status\n";
    let Some(_terminal) = on_a_terminal(&bench, line) else {
        return;
    };
    assert_eq!(status(&bench), "0");
    assert_eq!(bench.read("before"), bench.read("after"));
    let errors = bench.read("errors");
    for command in ["stty -echo raw", "read word"] {
        let given_up = format!(
            "toll: cannot continue: every treatment failed: given up after \
                                3 failures: cannot measure {command} </dev/tty"
        );
        assert!(errors.contains(&given_up), "{errors}");
    }
    assert!(errors.contains("No such device"), "{errors}");
    assert!(!errors.contains("--trial-timeout"), "{errors}");
}
