//! Formatted output through files, pipes and several operands. What is shown
//! for which bytes is tested beside the decorator itself.

use std::process::Stdio;

use crate::common::{Files, assert_same, content, run, run_with_pipes};

#[test]
fn a_carriage_return_before_the_end_of_a_line_is_shown() {
    let files = Files::new();
    files.file("in", b"a\rb\r\nc\n\r\nd\r");
    let output = files.run(&["-E", "in"]).succeeded();
    assert_eq!(output, b"a\rb^M$\nc$\n^M$\nd\r");
}

#[test]
fn a_carriage_return_and_its_newline_may_be_in_two_files() {
    let files = Files::new();
    files.file("1", b"1\r");
    files.file("2", b"\n2\r\n");
    files.file("3", b"3\r\n");
    files.file("empty", b"");
    let shown = |names: &[&str]| files.run(&[&["-E"], names].concat()).succeeded();
    assert_eq!(shown(&["1", "2"]), b"1^M$\n2^M$\n");
    assert_eq!(shown(&["1", "empty", "2"]), b"1^M$\n2^M$\n");
    assert_eq!(shown(&["1", "3"]), b"1\r3^M$\n");
    assert_eq!(shown(&["1", "1"]), b"1\r1\r");
}

#[test]
fn numbers_and_blank_lines_go_on_from_file_to_file() {
    let files = Files::new();
    files.file("1", b"\n\na");
    files.file("2", b"b\n\n");
    files.file("3", b"\nc\n");
    let shown = |option| files.run(&[option, "1", "2", "3"]).succeeded();
    assert_eq!(
        shown("-n"),
        b"     1\t\n     2\t\n     3\tab\n     4\t\n     5\t\n     6\tc\n"
    );
    assert_eq!(shown("-b"), b"\n\n     1\tab\n\n\n     2\tc\n");
    assert_eq!(shown("-s"), b"\nab\n\nc\n");
    assert_eq!(shown("-sn"), b"     1\t\n     2\tab\n     3\t\n     4\tc\n");
}

#[test]
fn the_state_goes_on_across_a_file_that_is_missing() {
    let files = Files::new();
    files.file("a", b"a");
    let ended = files.run(&["-n", "a", "missing", "a"]);
    let output = ended.failed(&["meow: missing: No such file or directory"]);
    assert_eq!(output, b"     1\taa");
}

#[test]
fn numbers_grow_beyond_six_digits() {
    let files = Files::new();
    files.file("lines", &vec![b'\n'; 1_000_001]);
    let output = files.run(&["-n", "lines"]).succeeded();
    assert_eq!(&output[..16], b"     1\t\n     2\t\n");
    assert!(output.ends_with(b"\n999999\t\n1000000\t\n1000001\t\n"));
}

#[test]
fn every_byte_is_shown_in_caret_and_meta_notation() {
    let files = Files::new();
    files.file("bytes", &(0..=255).collect::<Vec<u8>>());
    let low = "^@^A^B^C^D^E^F^G^H\t\n^K^L^M^N^O^P^Q^R^S^T^U^V^W^X^Y^Z^[^\\^]^^^_";
    let printable: String = (32..127u8).map(char::from).collect();
    let meta = |shown: &str| -> String {
        let shown = shown.replace('\t', "^I").replace('\n', "^J");
        let mut rest = shown.as_str();
        let mut all = String::new();
        while !rest.is_empty() {
            let length = if rest.starts_with('^') && rest.len() > 1 {
                2
            } else {
                1
            };
            let (one, tail) = rest.split_at(length);
            all += &format!("M-{one}");
            rest = tail;
        }
        all
    };
    let controls = meta(low);
    let printables: String = printable.chars().map(|c| format!("M-{c}")).collect();
    let expected = format!("{low}{printable}^?{controls}{printables}M-^?");
    let output = files.run(&["-v", "bytes"]).succeeded();
    assert_eq!(String::from_utf8(output).expect("it is ASCII"), expected);
}

#[test]
fn a_long_input_is_the_same_from_a_file_and_from_a_pipe_in_small_pieces() {
    let files = Files::new();
    let text = content(300_000);
    files.file("in", &text);
    for options in ["-n", "-b", "-s", "-E", "-A", "-bsE"] {
        let from_file = files.run(&[options, "in"]).succeeded();
        let mut command = files.meow_under(r#"dd bs=4093 if=in status=none | "$0" "$@""#);
        command.arg(options);
        let from_pipe = run(command).succeeded();
        assert_same(&from_pipe, &from_file, options);
    }
}

#[test]
fn marking_line_ends_changes_nothing_else_of_a_kernel_file() {
    let files = Files::new();
    let plain = files.run(&["/proc/filesystems"]).succeeded();
    let marked = files.run(&["-E", "/proc/filesystems"]).succeeded();
    let unmarked: Vec<u8> = marked
        .iter()
        .copied()
        .filter(|&byte| byte != b'$')
        .collect();
    assert!(!plain.is_empty());
    assert_eq!(unmarked, plain);
    assert_ne!(marked, plain);
}

#[test]
fn empty_input_has_no_line_to_number_or_mark() {
    let files = Files::new();
    for options in ["-n", "-b", "-s", "-A"] {
        let mut command = files.meow();
        command
            .arg(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        assert_eq!(run(command).succeeded(), b"");
        let mut command = files.meow();
        command.arg(options);
        assert_eq!(run_with_pipes(command, b"").succeeded(), b"");
    }
}
