//! Standard streams that are not open, or open for something else.

use crate::common::{Files, WAYS};

fn files() -> Files {
    let files = Files::new();
    files.file("a", b"a\n");
    files.file("empty", b"");
    files
}

#[test]
fn a_closed_standard_input_is_told_where_it_is_asked_for() {
    let files = files();
    for arguments in [&[][..], &["-"], &["a", "-"], &["-n", "-"]] {
        let ended = files.shell(r#"exec "$0" "$@" <&-"#, arguments);
        let printed = ended.errors.lines().next();
        assert_eq!(printed, Some("meow: -: Bad file descriptor"));
        assert_eq!(ended.status.code(), Some(1));
    }
    for way in WAYS {
        let ended = files.shell(r#"exec "$0" "$@" <&-"#, &[way, &["a", "a"]].concat());
        assert_eq!(ended.succeeded(), b"a\na\n");
    }
}

#[test]
fn a_closed_standard_output_is_an_error_even_for_empty_files() {
    let files = files();
    let message = ["meow: standard output: Bad file descriptor"];
    for arguments in [["a", "-u"], ["empty", "-u"], ["a", "-n"], ["a", "--copy"]] {
        files
            .shell(r#"exec "$0" "$@" >&-"#, &arguments)
            .failed(&message);
    }
    // No opened file takes the place of either stream.
    files
        .shell(r#"exec "$0" "$@" <&- >&-"#, &["a", "a"])
        .failed(&message);
    assert_eq!(files.content("a"), b"a\n");
}

#[test]
fn what_is_open_the_other_way_takes_and_gives_nothing() {
    let files = files();
    for way in WAYS {
        let ended = files.shell(r#"exec "$0" "$@" 1<empty"#, &[way, &["a"]].concat());
        ended.failed(&["meow: write error: Bad file descriptor"]);
        let ended = files.shell(r#"exec "$0" "$@" 0>>empty"#, way);
        ended.failed(&["meow: -: Bad file descriptor"]);
    }
}

#[test]
fn a_message_goes_nowhere_else_with_standard_error_closed() {
    let files = files();
    let script = r#"exec "$0" "$@" 2>&-"#;
    let ended = files.shell(script, &["a", "missing", "a", "missing"]);
    assert_eq!(
        (ended.status.code(), &ended.output[..]),
        (Some(1), &b"a\na\n"[..])
    );
    assert_eq!(files.content("a"), b"a\n");
    let ended = files.shell(script, &["a"]);
    assert_eq!(
        (ended.status.code(), &ended.output[..]),
        (Some(0), &b"a\n"[..])
    );
}
