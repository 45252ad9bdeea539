//! How arguments are told to be options, and which.

use std::process::Stdio;

use crate::common::{Ended, Files, run, run_meow};

const TRY: &str = "Try 'meow --help' for more information.";

/// A file with something for each option to show.
const TEXT: &[u8] = b"\ta\x01\r\n\n\n\xffb\n";

/// What comes out of `TEXT` in a file with these options.
#[track_caller]
fn shown(options: &[&str]) -> String {
    let files = Files::new();
    files.file("text", TEXT);
    let output = files.run(&[options, &["text"]].concat()).succeeded();
    output.escape_ascii().to_string()
}

#[track_caller]
fn same(options: &[&str], others: &[&str]) {
    assert_eq!(shown(options), shown(others), "{options:?} and {others:?}");
}

#[test]
fn every_option_does_what_it_is_for() {
    let shows = |options, expected: &[u8]| {
        assert_eq!(
            shown(options),
            expected.escape_ascii().to_string(),
            "{options:?}"
        );
    };
    shows(&[], TEXT);
    shows(
        &["-n"],
        b"     1\t\ta\x01\r\n     2\t\n     3\t\n     4\t\xffb\n",
    );
    shows(&["-b"], b"     1\t\ta\x01\r\n\n\n     2\t\xffb\n");
    shows(&["-s"], b"\ta\x01\r\n\n\xffb\n");
    shows(&["-E"], b"\ta\x01^M$\n$\n$\n\xffb$\n");
    shows(&["-T"], b"^Ia\x01\r\n\n\n\xffb\n");
    shows(&["-v"], b"\ta^A^M\n\n\nM-^?b\n");
    shows(&["-A"], b"^Ia^A^M$\n$\n$\nM-^?b$\n");
}

#[test]
fn long_options_are_the_short_ones() {
    same(&["--number"], &["-n"]);
    same(&["--number-nonblank"], &["-b"]);
    same(&["--squeeze-blank"], &["-s"]);
    same(&["--show-ends"], &["-E"]);
    same(&["--show-tabs"], &["-T"]);
    same(&["--show-nonprinting"], &["-v"]);
    same(&["--show-all"], &["-A"]);
}

#[test]
fn combined_options_are_their_parts() {
    same(&["-A"], &["-v", "-E", "-T"]);
    same(&["-e"], &["-vE"]);
    same(&["-t"], &["-vT"]);
    same(&["-nE"], &["-n", "-E"]);
    same(&["-sbeT"], &["-AsT", "-b"]);
}

#[test]
fn the_option_for_unbuffered_output_changes_nothing() {
    same(&["-u"], &[]);
    same(&["-nu"], &["-n"]);
}

#[test]
fn numbering_nonblank_lines_overrides_numbering_all() {
    same(&["-b", "-n"], &["-b"]);
    same(&["-nb"], &["-b"]);
}

#[test]
fn repeated_options_count_once() {
    same(&["-nn", "--number"], &["-n"]);
    same(&["-EE"], &["-E"]);
}

#[test]
fn a_long_option_may_be_abbreviated_as_long_as_it_is_clear() {
    same(&["--number-"], &["-b"]);
    same(&["--sq"], &["-s"]);
    same(&["--show-e"], &["-E"]);
    same(&["--show-t"], &["-T"]);
    same(&["--show-n"], &["-v"]);
    same(&["--show-a"], &["-A"]);
}

#[test]
fn the_full_name_of_an_option_is_not_an_abbreviation_of_a_longer_one() {
    same(&["--number"], &["-n"]);
}

#[test]
fn an_abbreviation_of_several_options_is_rejected() {
    for option in ["--show", "--s", "--numb", "--n"] {
        let ended = run_meow([option]);
        let told = format!("meow: option '{option}' is ambiguous; possibilities: '--");
        assert!(ended.errors.starts_with(&told), "{}", ended.errors);
        assert!(
            ended.errors.ends_with(&format!("\n{TRY}\n")),
            "{}",
            ended.errors
        );
        assert_eq!(ended.status.code(), Some(1));
        assert_eq!(ended.output, b"");
    }
}

#[test]
fn the_message_on_an_ambiguous_option_names_all_that_it_may_be() {
    let errors = run_meow(["--show"]).errors;
    for option in ["show-all", "show-ends", "show-nonprinting", "show-tabs"] {
        assert!(errors.contains(&format!("'--{option}'")), "{errors}");
    }
}

#[test]
fn unknown_options_are_rejected() {
    run_meow(["--foo"]).failed(&["meow: unrecognized option '--foo'", TRY]);
    run_meow(["--foo=bar"]).failed(&["meow: unrecognized option '--foo=bar'", TRY]);
    run_meow(["--numbers"]).failed(&["meow: unrecognized option '--numbers'", TRY]);
    run_meow(["-q"]).failed(&["meow: invalid option -- 'q'", TRY]);
    run_meow(["-nq"]).failed(&["meow: invalid option -- 'q'", TRY]);
    run_meow(["-n=1"]).failed(&["meow: invalid option -- '='", TRY]);
}

#[test]
fn a_rejected_option_keeps_files_from_being_printed() {
    let files = Files::new();
    files.file("a", b"a\n");
    let output = files
        .run(&["a", "-q"])
        .failed(&["meow: invalid option -- 'q'", TRY]);
    assert_eq!(output, b"");
}

#[test]
fn long_options_take_no_argument() {
    for option in ["number", "show-all", "help", "version"] {
        let message = format!("meow: option '--{option}' doesn't allow an argument");
        run_meow([format!("--{option}=3")]).failed(&[&message, TRY]);
    }
    run_meow(["--sq=3"]).failed(&[
        "meow: option '--squeeze-blank' doesn't allow an argument",
        TRY,
    ]);
}

#[test]
fn options_may_follow_operands() {
    let files = Files::new();
    files.file("a", b"a\n");
    assert_eq!(files.run(&["a", "-n"]).succeeded(), b"     1\ta\n");
    assert_eq!(files.run(&["a", "--number"]).succeeded(), b"     1\ta\n");
}

#[test]
fn posix_order_ends_the_options_at_the_first_operand() {
    let files = Files::new();
    files.file("a", b"a\n");
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
    files
        .run(&["--", "--"])
        .failed(&["meow: --: No such file or directory"]);
}
