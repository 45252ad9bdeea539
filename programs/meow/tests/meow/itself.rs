//! An input that is also the output. This is an error only if every byte read would be
//! written again after the bytes that are still to be read.

use crate::common::{Ended, Files, WAYS, assert_same, content, run};

/// Returns the files `x` and `y`, and more copies of `x` to write to.
fn files() -> Files {
    let files = Files::new();
    for name in ["x", "x1", "x2"] {
        files.file(name, b"x\n");
    }
    files.file("y", b"y\n");
    files
}

/// Runs a script in which `meow` is the program with the options of `way`. Returns how it
/// ended, and the new content of `x1`.
fn run_script(script: &str, way: &[&str]) -> (Ended, Vec<u8>) {
    let files = files();
    let meow = format!(r#"meow() {{ "$program" {} "$@"; }}"#, way.join(" "));
    let ended = run(files.meow_under(&format!("program=$0; {meow}; {script}")));
    (ended, files.content("x1"))
}

#[test]
fn an_output_that_would_feed_itself_is_refused_and_the_others_are_printed() {
    for (script, name, made) in [
        ("meow x1 >>x1", "x1", "x\n"),
        ("meow <x1 >>x1", "-", "x\n"),
        ("meow -n x1 >>x1", "x1", "x\n"),
        // A link to the output is the output.
        ("ln x1 hard; meow hard >>x1", "hard", "x\n"),
        ("ln -s x1 soft; meow soft >>x1", "soft", "x\n"),
        ("meow y x1 y >>x1", "x1", "x\ny\ny\n"),
        // The output is ahead, after other input.
        ("meow x x1 1<>x1", "x1", "x\n"),
        ("meow - x1 <x 1<>x1", "x1", "x\n"),
        ("meow y x1 >x1", "x1", "y\n"),
        // An earlier operand has appended to the file.
        (": >x1; meow y x1 >>x1", "x1", "y\n"),
    ] {
        for way in WAYS {
            let (ended, found) = run_script(script, way);
            ended.failed(&[&format!("meow: {name}: input file is output file")]);
            assert_eq!(found, made.as_bytes(), "{script} {way:?}");
        }
    }
}

#[test]
fn an_output_that_ends_may_be_an_input() {
    let moved = "printf 0123456789 >x1; { dd bs=1 count=4 status=none >&2; meow; } 2>y <x1 1<>x1";
    for (script, made) in [
        // The output was truncated.
        ("meow x1 y >x1", "y\n"),
        // The output is overwritten from the same offset.
        ("meow - y <x1 1<>x1", "x\ny\n"),
        ("meow x1 y 1<>x1", "x\ny\n"),
        // The input is ahead of the output.
        (moved, "4567896789"),
        // The input is at its end.
        ("exec 3<x1 4>>x1; meow <&3 >y; meow <&3 >&4", "x\n"),
        (": >x1; meow x1 >>x1; meow <x1 >>x1", ""),
        ("meow /dev/null </dev/null >/dev/null", "x\n"),
        ("meow </dev/null >/dev/null", "x\n"),
    ] {
        for way in WAYS {
            let (ended, found) = run_script(script, way);
            assert_eq!(ended.succeeded(), b"", "{script} {way:?}");
            assert_eq!(found, made.as_bytes(), "{script} {way:?}");
        }
    }
}

#[test]
fn a_long_file_written_over_itself_stays_as_it_is() {
    let long = content(3 << 20);
    let files = Files::new();
    for way in WAYS {
        files.file("long", &long);
        let arguments = [way, &["long"]].concat();
        files
            .shell(r#"exec "$0" "$@" 1<>long"#, &arguments)
            .succeeded();
        assert_same(&files.content("long"), &long, "the file");
    }
}
