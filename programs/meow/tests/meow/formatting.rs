//! Formatted output through files, pipes and several operands. The decorator's own tests
//! check what is shown for which bytes.

use crate::common::{Files, assert_same, content};

#[test]
fn a_carriage_return_before_the_end_of_a_line_is_shown_also_from_two_files() {
    let files = Files::new();
    files.file("in", b"a\rb\r\nc\n\r\nd\r");
    files.file("1", b"1\r");
    files.file("2", b"\n2\r\n");
    files.file("3", b"3\r\n");
    files.file("empty", b"");
    let shown = |names: &[&str]| files.run(&[&["-E"], names].concat()).succeeded();
    assert_eq!(shown(&["in"]), b"a\rb^M$\nc$\n^M$\nd\r");
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
    // A missing file in between does not reset the state either.
    let ended = files.run(&["-n", "3", "missing", "1"]);
    let output = ended.failed(&["meow: missing: No such file or directory"]);
    assert_eq!(
        output,
        b"     1\t\n     2\tc\n     3\t\n     4\t\n     5\ta"
    );
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
    let ascii = |byte: u8| match byte {
        32..127 => char::from(byte).to_string(),
        _ => format!("^{}", char::from(byte ^ 64)),
    };
    let shown = |byte: u8| match byte {
        b'\t' | b'\n' => char::from(byte).to_string(),
        0..128 => ascii(byte),
        _ => format!("M-{}", ascii(byte - 128)),
    };
    let expected: String = (0..=255).map(shown).collect();
    let output = files.run(&["-v", "bytes"]).succeeded();
    assert_eq!(String::from_utf8(output).unwrap(), expected);
}

#[test]
fn a_long_input_is_the_same_from_a_file_and_from_a_pipe_in_small_pieces() {
    let files = Files::new();
    let text = content(300_000);
    files.file("in", &text);
    for options in ["-n", "-b", "-s", "-E", "-A", "-bsE"] {
        let from_file = files.run(&[options, "in"]).succeeded();
        let script = r#"dd bs=4093 if=in status=none | "$0" "$@""#;
        let from_pipe = files.shell(script, &[options]).succeeded();
        assert_same(&from_pipe, &from_file, options);
    }
}

#[test]
fn marking_line_ends_changes_nothing_else_of_a_kernel_file() {
    let files = Files::new();
    let plain = files.run(&["/proc/filesystems"]).succeeded();
    let marked = files.run(&["-E", "/proc/filesystems"]).succeeded();
    let unmarked = marked.iter().copied().filter(|&byte| byte != b'$');
    let unmarked: Vec<u8> = unmarked.collect();
    assert!(!plain.is_empty());
    assert_eq!(unmarked, plain);
    assert_ne!(marked, plain);
}

#[test]
fn empty_input_has_no_line_to_number_or_mark() {
    let files = Files::new();
    for options in ["-n", "-b", "-s", "-A"] {
        assert_eq!(files.run(&[options]).succeeded(), b"");
        assert_eq!(files.run_with_pipes(b"", &[options]).succeeded(), b"");
    }
}
