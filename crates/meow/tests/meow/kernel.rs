//! A kernel that refuses, interrupts or does less than asked, played by
//! `strace`.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::common::{Files, MEOW, assert_same, content, meow_under, run, run_with_pipes, skip};

/// The calls that move bytes without a buffer of the program's own, and those
/// that only make it faster.
const FAST_CALLS: &str = "copy_file_range,sendfile,splice,tee,vmsplice,io_uring_setup,\
                          io_uring_enter,io_uring_register";

/// Whether `strace` may change what calls answer.
fn can_inject() -> bool {
    let mut command = Command::new("strace");
    command.args([
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=close:error=EIO:when=65535",
        "true",
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The program under `strace` with rules of what is injected.
fn meow_with(files: &Files, rules: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null"]);
    for rule in rules {
        command.args(["-e", &format!("inject={rule}")]);
    }
    command
        .arg(MEOW)
        .env("LC_ALL", "C")
        .current_dir(files.directory());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Moves bytes from file and pipe to file and pipe under some rules. No two blank
/// lines follow each other in them, so that squeezing changes nothing.
#[track_caller]
fn check_everywhere(rules: &[&str]) {
    let bytes = content(300_000);
    let files = Files::new();
    files.file("in", &bytes);
    let what = format!("{rules:?}");
    for option in ["-u", "--copy", "-s"] {
        let mut command = meow_with(&files, rules);
        command.args([option, "in"]);
        assert_same(&run(command).succeeded(), &bytes, &what);
        let mut command = meow_with(&files, rules);
        command.args([option, "in"]).stdout(files.sink("out"));
        run(command).succeeded();
        assert_same(&files.content("out"), &bytes, &what);
        let mut command = meow_with(&files, rules);
        command.arg(option);
        assert_same(&run_with_pipes(command, &bytes).succeeded(), &bytes, &what);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        crate::common::supply(writer, bytes.clone());
        let mut command = meow_with(&files, rules);
        command.arg(option).stdin(reader).stdout(files.sink("out"));
        run(command).succeeded();
        assert_same(&files.content("out"), &bytes, &what);
    }
}

#[test]
fn refused_fast_calls_are_done_without() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    for error in ["ENOSYS", "EINVAL", "EPERM"] {
        check_everywhere(&[&format!("{}:error={error}", FAST_CALLS)]);
    }
    check_everywhere(&["copy_file_range:error=EXDEV"]);
}

#[test]
fn fast_calls_that_stop_working_are_done_without_from_there() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    for error in ["EINVAL", "ENOSYS"] {
        check_everywhere(&[&format!("{}:error={error}:when=2+", FAST_CALLS)]);
    }
}

#[test]
fn without_pipes_of_its_own_it_still_moves() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    check_everywhere(&["pipe,pipe2:error=EMFILE"]);
}

#[test]
fn hints_and_questions_that_fail_are_done_without() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    check_everywhere(&["fadvise64:error=EINVAL", "ioctl:error=ENOTTY"]);
}

#[test]
fn interrupted_calls_are_made_again() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    let calls = format!("{},read,write", FAST_CALLS);
    check_everywhere(&[&format!("{calls}:error=EINTR:when=1+2")]);
}

#[test]
fn a_short_write_is_followed_by_the_rest() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    // What is injected only claims to have written one byte, so that those
    // bytes are missing and no others.
    let files = Files::new();
    let rules = [
        &format!("{}:error=ENOSYS", FAST_CALLS)[..],
        "write:retval=1:when=1..5",
    ];
    for option in ["-u", "--copy", "-s"] {
        let mut command = meow_with(&files, &rules);
        command.arg(option).stdout(files.sink("out"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        crate::common::supply(writer, b"abcdefg\n".to_vec());
        command.stdin(reader);
        run(command).succeeded();
        assert_eq!(files.content("out"), b"fg\n", "{option}");
    }
}

#[test]
fn a_short_splice_is_followed_by_the_rest() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    // A claim of one byte without any moved must at least not end the run.
    let files = Files::new();
    let command = meow_with(&files, &["splice:retval=1:when=1..5"]);
    let ended = run_with_pipes(command, b"abcdefg\n");
    assert!(
        ended.output.starts_with(b"ab"),
        "{}",
        ended.output.escape_ascii()
    );
}

#[test]
fn a_failing_device_is_told_by_the_name_of_the_file_and_the_next_one_printed() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    let files = Files::new();
    files.file("bad", &content(300_000));
    files.file("good", b"good\n");
    let bad = files.path("bad");
    for option in ["-u", "--copy", "-n"] {
        let rule = format!("read,pread64,readv,preadv,{}:error=EIO", FAST_CALLS);
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o", "/dev/null", "-P"])
            .arg(&bad);
        command.args(["-e", &format!("inject={rule}"), MEOW, option]);
        command.args(["bad", "good"]).env("LC_ALL", "C");
        command.current_dir(files.directory());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let ended = run(command);
        let output = ended.failed(&["meow: bad: Input/output error"]);
        assert!(output.ends_with(b"good\n"), "{option}");
    }
}

/// What is told if calls on an output file fail in some way.
#[track_caller]
fn check_output(rule: &str, message: &str) {
    let files = Files::new();
    files.file("in", b"in\n");
    for option in ["-u", "--copy", "-n"] {
        let out = files.sink("out");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o", "/dev/null", "-P"])
            .arg(files.path("out"));
        command.args(["-e", &format!("inject={rule}"), MEOW, option, "in"]);
        command.env("LC_ALL", "C").current_dir(files.directory());
        command.stdin(Stdio::null()).stdout(out);
        run(command).failed(&[message]);
    }
}

#[test]
fn an_output_that_takes_no_more_is_not_blamed_on_the_input() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    let rule = format!("write,pwrite64,writev,{FAST_CALLS}:error=EDQUOT");
    check_output(&rule, "meow: write error: Disk quota exceeded");
}

#[test]
fn an_output_that_fails_only_when_closed_is_told() {
    if !can_inject() {
        return skip("strace is missing or may not trace");
    }
    check_output(
        "close:error=EDQUOT",
        "meow: write error: Disk quota exceeded",
    );
}

#[test]
fn a_source_larger_than_the_memory_allowed_is_moved() {
    let files = Files::in_memory();
    let file = files.sink("large");
    file.set_len(96 << 20).expect("a file can have holes");
    for option in ["-u", "--copy", "-s"] {
        let mut command = meow_under(r#"ulimit -v 65536; exec "$0" "$@""#);
        command
            .arg(option)
            .arg(files.path("large"))
            .stdin(Stdio::null());
        let null = File::options().write(true).open("/dev/null");
        command.stdout(null.expect("it is there"));
        run(command).succeeded();
    }
}
