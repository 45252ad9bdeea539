//! A kernel that refuses, interrupts or does less than requested, simulated by `strace`.

use std::process::{Command, Stdio};

use crate::common::{Files, MEOW, assert_same, content, pipe_of, run, skip};

/// The calls that move bytes without a buffer of the program's own, and those that only
/// speed that up.
const FAST_CALLS: &str = "copy_file_range,sendfile,splice,tee,vmsplice,io_uring_setup,\
                          io_uring_enter,io_uring_register";

fn strace(rules: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null"]);
    for rule in rules {
        command.args(["-e", &format!("inject={rule}")]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Whether `strace` may change the results of calls; prints the reason if not.
fn can_inject() -> bool {
    let mut command = strace(&["close:error=EIO:when=65535"]);
    command.arg("true").stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        skip("strace is missing or may not trace");
    }
    can
}

/// The program under `strace` with injection rules. If `on` names a file of the
/// directory, they apply only to calls on that file.
fn meow_with(files: &Files, rules: &[&str], on: Option<&str>) -> Command {
    let mut command = strace(rules);
    if let Some(name) = on {
        command.arg("-P").arg(files.path(name));
    }
    command.arg(MEOW).env("LC_ALL", "C");
    command.current_dir(files.directory());
    command
}

/// Moves bytes from file and pipe to file and pipe under the given rules. The bytes have
/// no two blank lines in a row, so that squeezing changes nothing.
#[track_caller]
fn check_everywhere(rules: &[&str]) {
    let bytes = content(300_000);
    let files = Files::new();
    files.file("in", &bytes);
    for option in ["-u", "--copy", "-s"] {
        for is_piped in [false, true] {
            let command = || {
                let mut command = meow_with(&files, rules, None);
                command.arg(option);
                if is_piped {
                    command.stdin(pipe_of(&bytes))
                } else {
                    command.arg("in")
                };
                command
            };
            let what = format!("{rules:?} {option} {is_piped}");
            assert_same(&run(command()).succeeded(), &bytes, &what);
            let mut to_file = command();
            to_file.stdout(files.sink("out"));
            run(to_file).succeeded();
            assert_same(&files.content("out"), &bytes, &what);
        }
    }
}

#[test]
fn what_the_kernel_refuses_is_done_without_at_once_and_in_the_middle() {
    if can_inject() {
        for when in [
            "ENOSYS",
            "EINVAL",
            "EPERM",
            "EINVAL:when=2+",
            "ENOSYS:when=2+",
        ] {
            check_everywhere(&[&format!("{FAST_CALLS}:error={when}")]);
        }
        check_everywhere(&["copy_file_range:error=EXDEV"]);
        check_everywhere(&["pipe,pipe2:error=EMFILE"]);
        // The user's limit on pipe memory is reached.
        check_everywhere(&["fcntl:error=EPERM"]);
        check_everywhere(&["fadvise64:error=EINVAL", "ioctl:error=ENOTTY"]);
    }
}

#[test]
fn interrupted_calls_are_made_again() {
    if can_inject() {
        check_everywhere(&[&format!("{FAST_CALLS},read,write:error=EINTR:when=1+2")]);
    }
}

#[test]
fn a_short_write_is_followed_by_the_rest() {
    if !can_inject() {
        return;
    }
    // The injected result only claims that one byte was written, so exactly those bytes
    // are missing.
    let files = Files::new();
    let refused = format!("{FAST_CALLS}:error=ENOSYS");
    for option in ["-u", "--copy", "-s"] {
        let mut command = meow_with(&files, &[&refused, "write:retval=1:when=1..5"], None);
        command.arg(option).stdout(files.sink("out"));
        command.stdin(pipe_of(b"abcdefg\n"));
        run(command).succeeded();
        assert_eq!(files.content("out"), b"fg\n", "{option}");
    }
    // A claim of one byte that was not moved must at least not end the run.
    let mut command = meow_with(&files, &["splice:retval=1:when=1..5"], None);
    command.stdin(pipe_of(b"abcdefg\n"));
    let output = run(command).output;
    assert!(output.starts_with(b"ab"), "{}", output.escape_ascii());
}

#[test]
fn a_failing_device_is_told_by_the_name_of_the_file_and_the_next_one_printed() {
    if !can_inject() {
        return;
    }
    let files = Files::new();
    files.file("bad", &content(300_000));
    files.file("good", b"good\n");
    let rule = format!("read,pread64,readv,preadv,{FAST_CALLS}:error=EIO");
    for option in ["-u", "--copy", "-n"] {
        let mut command = meow_with(&files, &[&rule], Some("bad"));
        command.args([option, "bad", "good"]);
        let output = run(command).failed(&["meow: bad: Input/output error"]);
        assert!(output.ends_with(b"good\n"), "{option}");
    }
}

#[test]
fn an_output_that_fails_when_written_or_closed_is_told_and_not_the_input() {
    if !can_inject() {
        return;
    }
    let written = format!("write,pwrite64,writev,{FAST_CALLS}:error=EDQUOT");
    let files = Files::new();
    files.file("in", b"in\n");
    for rule in [&written, "close:error=EDQUOT"] {
        for option in ["-u", "--copy", "-n"] {
            let out = files.sink("out");
            let mut command = meow_with(&files, &[rule], Some("out"));
            command.args([option, "in"]).stdout(out);
            run(command).failed(&["meow: write error: Disk quota exceeded"]);
        }
    }
}

#[test]
fn a_kernel_that_fails_for_ever_ends_no_method_by_a_crash() {
    if !can_inject() {
        return;
    }
    let files = Files::new();
    let bytes = content(1 << 20);
    files.file("in", &bytes);
    let mut unmapping = meow_with(&files, &["munmap:error=ENOMEM"], None);
    unmapping.args(["--method", "mmap", "in"]);
    assert_same(&run(unmapping).succeeded(), &bytes, "mmap");
    for when in ["1+", "2+"] {
        let rule = format!("io_uring_enter:error=EIO:when={when}");
        let mut failing = meow_with(&files, &[&rule], None);
        failing
            .args(["--method", "io-uring", "in"])
            .stderr(Stdio::piped());
        let ended = run(failing);
        assert_eq!(ended.status.code(), Some(1), "{when}: {}", ended.errors);
    }
}

#[test]
fn a_source_larger_than_the_memory_allowed_is_moved() {
    let files = Files::in_memory();
    files.sink("large").set_len(96 << 20).unwrap();
    for option in ["-u", "--copy", "-s"] {
        let script = r#"ulimit -v 65536; exec "$0" "$@" >/dev/null"#;
        files.shell(script, &[option, "large"]).succeeded();
    }
}
