//! An input that is the output too. It is an error only where every byte read
//! would put another one before what is still to be read.

use crate::common::{Ended, Files, WAYS, assert_same, content, run};

/// `x` and `y` in files of their own, and more copies of `x` to write to.
fn files() -> Files {
    let files = Files::new();
    for name in ["x", "x1", "x2"] {
        files.file(name, b"x\n");
    }
    files.file("y", b"y\n");
    files
}

/// Runs a script in which `meow` is the program, in each way, and checks what
/// it made of `x1`.
#[track_caller]
fn check(script: &str, judge: impl Fn(Ended), made: &[u8]) {
    for way in WAYS {
        let files = files();
        let meow = format!(r#"meow() {{ "$program" {} "$@"; }}"#, way.join(" "));
        let command = files.meow_under(&format!("program=$0; {meow}; {script}"));
        judge(run(command));
        assert_eq!(files.content("x1"), made, "{script} {way:?}");
    }
}

fn succeeds(ended: Ended) {
    assert_eq!(ended.succeeded(), b"");
}

fn is_told_of(name: &'static str) -> impl Fn(Ended) {
    move |ended| {
        ended.failed(&[&format!("meow: {name}: input file is output file")]);
    }
}

#[test]
fn appending_a_file_to_itself_is_an_error() {
    check("meow x1 >>x1", is_told_of("x1"), b"x\n");
    check("meow <x1 >>x1", is_told_of("-"), b"x\n");
    check("meow -n x1 >>x1", is_told_of("x1"), b"x\n");
}

#[test]
fn a_link_to_the_output_is_the_output() {
    check("ln x1 hard; meow hard >>x1", is_told_of("hard"), b"x\n");
    check("ln -s x1 soft; meow soft >>x1", is_told_of("soft"), b"x\n");
}

#[test]
fn files_beside_the_output_are_still_printed() {
    check("meow y x1 y >>x1", is_told_of("x1"), b"x\ny\ny\n");
}

#[test]
fn an_output_that_was_emptied_gives_nothing_as_an_input() {
    check("meow x1 y >x1", succeeds, b"y\n");
}

#[test]
fn an_output_behind_other_input_is_an_error() {
    check("meow x x1 1<>x1", is_told_of("x1"), b"x\n");
    check("meow - x1 <x 1<>x1", is_told_of("x1"), b"x\n");
    check("meow y x1 >x1", is_told_of("x1"), b"y\n");
}

#[test]
fn a_file_may_be_written_over_itself_from_the_same_place() {
    check("meow - y <x1 1<>x1", succeeds, b"x\ny\n");
    check("meow x1 y 1<>x1", succeeds, b"x\ny\n");
}

#[test]
fn an_input_ahead_of_the_output_is_moved_to_it() {
    let script = "printf 0123456789 >x1; { dd bs=1 count=4 status=none >&2; meow; } 2>y <x1 1<>x1";
    check(script, succeeds, b"4567896789");
}

#[test]
fn an_input_at_its_end_may_be_the_output_in_append_mode() {
    check(
        "exec 3<x1 4>>x1; meow <&3 >y; meow <&3 >&4",
        succeeds,
        b"x\n",
    );
}

#[test]
fn an_empty_file_may_be_appended_to_itself() {
    check(": >x1; meow x1 >>x1; meow <x1 >>x1", succeeds, b"");
}

#[test]
fn the_null_device_may_be_both() {
    check("meow /dev/null </dev/null >/dev/null", succeeds, b"x\n");
    check("meow </dev/null >/dev/null", succeeds, b"x\n");
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

#[test]
fn an_empty_file_that_an_operand_before_has_appended_to_is_refused() {
    check(": >x1; meow y x1 >>x1", is_told_of("x1"), b"y\n");
}
