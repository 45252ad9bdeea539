//! Standard streams that are not open.

use crate::common::{Files, WAYS, run};

fn files() -> Files {
    let files = Files::new();
    files.file("a", b"a\n");
    files.file("empty", b"");
    files
}

#[test]
fn a_closed_standard_input_is_told_where_it_is_asked_for() {
    let script = r#"exec "$0" "$@" <&-"#;
    let files = files();
    for arguments in [&[][..], &["-"], &["a", "-"], &["-n", "-"]] {
        let mut command = files.meow_under(script);
        command.args(arguments);
        let ended = run(command);
        let told = ended.errors.lines().next();
        assert_eq!(told, Some("meow: -: Bad file descriptor"));
        assert_eq!(ended.status.code(), Some(1));
    }
}

#[test]
fn files_are_printed_with_a_closed_standard_input() {
    let files = files();
    for way in WAYS {
        let mut command = files.meow_under(r#"exec "$0" "$@" <&-"#);
        command.args(way).args(["a", "a"]);
        assert_eq!(run(command).succeeded(), b"a\na\n");
    }
}

#[test]
fn a_closed_standard_output_is_an_error_even_for_empty_files() {
    let files = files();
    for arguments in [["a", "-u"], ["empty", "-u"], ["a", "-n"], ["a", "--copy"]] {
        let mut command = files.meow_under(r#"exec "$0" "$@" >&-"#);
        command.args(arguments);
        run(command).failed(&["meow: standard output: Bad file descriptor"]);
    }
}

#[test]
fn with_closed_standard_input_and_output_no_file_takes_their_place() {
    let files = files();
    let mut command = files.meow_under(r#"exec "$0" "$@" <&- >&-"#);
    command.args(["a", "a"]);
    run(command).failed(&["meow: standard output: Bad file descriptor"]);
    assert_eq!(files.content("a"), b"a\n");
}

#[test]
fn a_standard_output_that_is_open_for_reading_takes_nothing() {
    let files = files();
    for way in WAYS {
        let mut command = files.meow_under(r#"exec "$0" "$@" 1<empty"#);
        command.args(way).arg("a");
        run(command).failed(&["meow: write error: Bad file descriptor"]);
    }
}

#[test]
fn a_standard_input_that_is_open_for_writing_gives_nothing() {
    let files = files();
    for way in WAYS {
        let mut command = files.meow_under(r#"exec "$0" "$@" 0>>empty"#);
        command.args(way);
        run(command).failed(&["meow: -: Bad file descriptor"]);
    }
}

#[test]
fn a_message_goes_nowhere_else_with_standard_error_closed() {
    let files = files();
    let mut command = files.meow_under(r#"exec "$0" "$@" 2>&-"#);
    command.args(["a", "missing", "a", "missing"]);
    let ended = run(command);
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(ended.output, b"a\na\n");
    assert_eq!(files.content("a"), b"a\n");
}

#[test]
fn a_file_is_printed_with_standard_error_closed() {
    let files = files();
    let mut command = files.meow_under(r#"exec "$0" "$@" 2>&-"#);
    command.arg("a");
    let ended = run(command);
    assert!(ended.status.success());
    assert_eq!(ended.output, b"a\n");
}
