//! Tests which arguments are recognized as options, and which options they are.

use std::process::Stdio;

use crate::common::{Ended, Files, run, run_meow};

const TRY: &str = "Try 'meow --help' for more information.";

/// A file with something for each option to show.
const TEXT: &[u8] = b"\ta\x01\r\n\n\n\xffb\n";

/// Returns the output for a file that contains `TEXT`, with these options.
#[track_caller]
fn shown(options: &[&str]) -> String {
    let files = Files::new();
    files.file("text", TEXT);
    let output = files.run(&[options, &["text"]].concat()).succeeded();
    output.escape_ascii().to_string()
}

#[test]
fn every_option_does_what_it_is_for() {
    for (options, expected) in [
        ("-u", TEXT),
        (
            "-n",
            b"     1\t\ta\x01\r\n     2\t\n     3\t\n     4\t\xffb\n",
        ),
        ("-b", b"     1\t\ta\x01\r\n\n\n     2\t\xffb\n"),
        ("-s", b"\ta\x01\r\n\n\xffb\n"),
        ("-E", b"\ta\x01^M$\n$\n$\n\xffb$\n"),
        ("-T", b"^Ia\x01\r\n\n\n\xffb\n"),
        ("-v", b"\ta^A^M\n\n\nM-^?b\n"),
        ("-A", b"^Ia^A^M$\n$\n$\nM-^?b$\n"),
    ] {
        assert_eq!(
            shown(&[options]),
            expected.escape_ascii().to_string(),
            "{options}"
        );
    }
}

#[test]
fn options_that_are_written_otherwise_are_the_same() {
    for (one, other) in [
        ("--number", "-n"),
        ("--number-nonblank", "-b"),
        ("--squeeze-blank", "-s"),
        ("--show-ends", "-E"),
        ("--show-tabs", "-T"),
        ("--show-nonprinting", "-v"),
        ("--show-all", "-A"),
        // Combined options are their parts.
        ("-A", "-v -E -T"),
        ("-e", "-vE"),
        ("-t", "-vT"),
        ("-nE", "-n -E"),
        ("-sbeT", "-AsT -b"),
        // Numbering nonblank lines overrides numbering all.
        ("-b -n", "-b"),
        ("-nb", "-b"),
        ("--number --number-n", "-b"),
        // Repeated options count once.
        ("-nn --number", "-n"),
        ("-EE", "-E"),
        ("-nu", "-n"),
        // A long option may be abbreviated while it is unambiguous.
        ("--number-", "-b"),
        ("--sq", "-s"),
        ("--show-e", "-E"),
        ("--show-t", "-T"),
        ("--show-n", "-v"),
        ("--show-a", "-A"),
    ] {
        let shown = |options: &str| shown(&options.split(' ').collect::<Vec<_>>());
        assert_eq!(shown(one), shown(other), "{one} and {other}");
    }
}

#[test]
fn an_abbreviation_of_several_options_is_rejected_with_all_that_it_may_be() {
    for (option, possible) in [
        (
            "--show",
            "'--show-all' '--show-ends' '--show-nonprinting' '--show-tabs'",
        ),
        (
            "--s",
            "'--show-all' '--show-ends' '--show-nonprinting' '--show-tabs' '--squeeze-blank'",
        ),
        ("--numb", "'--number' '--number-nonblank'"),
        ("--n", "'--number' '--number-nonblank'"),
    ] {
        let found = format!("meow: option '{option}' is ambiguous; possibilities: {possible}");
        assert_eq!(run_meow([option]).failed(&[&found, TRY]), b"");
    }
}

#[test]
fn wrong_options_are_rejected_before_any_file_is_printed() {
    let files = Files::new();
    files.file("a", b"a\n");
    for (option, message) in [
        ("--foo", "unrecognized option '--foo'"),
        ("--foo=bar", "unrecognized option '--foo=bar'"),
        ("--numbers", "unrecognized option '--numbers'"),
        ("-q", "invalid option -- 'q'"),
        ("-nq", "invalid option -- 'q'"),
        ("-n=1", "invalid option -- '='"),
        ("--number=3", "option '--number' doesn't allow an argument"),
        (
            "--show-all=3",
            "option '--show-all' doesn't allow an argument",
        ),
        ("--help=3", "option '--help' doesn't allow an argument"),
        (
            "--version=3",
            "option '--version' doesn't allow an argument",
        ),
        (
            "--sq=3",
            "option '--squeeze-blank' doesn't allow an argument",
        ),
        ("--method", "option '--method' requires an argument"),
    ] {
        let ended = files.run(&["a", option]);
        assert_eq!(ended.failed(&[&format!("meow: {message}"), TRY]), b"");
    }
}

#[test]
fn options_may_follow_operands_unless_posix_is_asked_for() {
    let files = Files::new();
    files.file("a", b"a\n");
    for arguments in [["a", "-n"], ["a", "--number"], ["-n", "a"]] {
        assert_eq!(files.run(&arguments).succeeded(), b"     1\ta\n");
    }
    let posix = |arguments: &[&str]| -> Ended {
        let mut command = files.meow();
        command.args(arguments).env("POSIXLY_CORRECT", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        run(command)
    };
    let output = posix(&["a", "-n"]).failed(&["meow: -n: No such file or directory"]);
    assert_eq!(output, b"a\n");
    assert_eq!(posix(&["-n", "a"]).succeeded(), b"     1\ta\n");
}

#[test]
fn two_dashes_end_the_options() {
    let files = Files::new();
    files.file("-n", b"dash\n");
    files.file("--help", b"help\n");
    files.file("a", b"a\n");
    assert_eq!(files.run(&["--", "-n"]).succeeded(), b"dash\n");
    assert_eq!(files.run(&["a", "--", "--help"]).succeeded(), b"a\nhelp\n");
    assert_eq!(files.run(&["-n", "--", "a"]).succeeded(), b"     1\ta\n");
    assert_eq!(files.run(&["./-n"]).succeeded(), b"dash\n");
    let ended = files.run(&["--", "--"]);
    ended.failed(&["meow: --: No such file or directory"]);
}
