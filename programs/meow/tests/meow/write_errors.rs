//! Sinks that accept no more bytes.

use std::io::{PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::common::{EXEC, Ended, Files, Running, WAYS, collect, content, join, run};

/// The options under which a write error must be reported at once.
const OPTIONS: [&str; 4] = ["-u", "--copy", "-n", "-A"];

fn files() -> Files {
    let files = Files::new();
    files.file("a", b"a\n");
    files.file("long", &content(300_000));
    files.file("empty", b"");
    files
}

/// A sink that nothing can be written to.
const FULL: &str = r#"exec "$0" "$@" >/dev/full"#;
const NO_SPACE: &str = "meow: write error: No space left on device";
const BROKEN_PIPE: &str = "meow: write error: Broken pipe";
const EXEC_WITHOUT_SIGPIPE: &str = r#"trap '' PIPE; exec "$0" "$@""#;

#[test]
fn a_full_device_is_told_once_and_ends_the_run() {
    let files = files();
    for option in OPTIONS {
        for names in [["a", "a"], ["long", "a"], ["/dev/zero", "missing"]] {
            let arguments = [&[option][..], &names].concat();
            files.shell(FULL, &arguments).failed(&[NO_SPACE]);
        }
        for script in [
            r#"exec "$0" "$@" <long >/dev/full"#,
            r#"printf a | "$0" "$@" >/dev/full"#,
        ] {
            files.shell(script, &[option]).failed(&[NO_SPACE]);
        }
        // Writing nothing to /dev/full succeeds, as with any other device.
        files
            .shell(FULL, &[option, "empty", "-", "empty"])
            .succeeded();
    }
}

#[test]
fn a_held_carriage_return_is_told_of_at_the_end() {
    let files = files();
    files.file("held", b"\r");
    files.shell(FULL, &["-E", "held"]).failed(&[NO_SPACE]);
}

#[test]
fn the_limit_on_file_sizes_is_told_and_filled_or_ends_by_its_signal() {
    let files = files();
    for option in ["-u", "--copy"] {
        let script = r#"trap '' XFSZ; ulimit -f 8; exec "$0" "$@" >out"#;
        for from in ["long", "-"] {
            let mut command = files.meow_under(script);
            command.args([option, from]).stdin(files.open("long"));
            run(command).failed(&["meow: write error: File too large"]);
            let made = files.content("out");
            // The shell counts in blocks of 512 or 1024 bytes.
            assert!([4096, 8192].contains(&made.len()), "{} bytes", made.len());
            assert_eq!(made, content(300_000)[..made.len()]);
        }
    }
    let script = r#"ulimit -c 0; ulimit -f 8; exec "$0" "$@" >out"#;
    files.shell(script, &["long"]).was_ended_by(Signal::XFSZ);
}

/// Starts meow with a pipe, reads `length` bytes from it, and closes it.
fn into_broken_pipe(script: &str, arguments: &[&str], length: usize) -> Ended {
    let files = files();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = files.meow_under(script);
    command.args(arguments).stdout(writer);
    command.stderr(Stdio::piped());
    let mut running = Running::start(command);
    let errors = collect(running.0.stderr.take().unwrap());
    let mut output = vec![0; length];
    reader.read_exact(&mut output).unwrap();
    drop(reader);
    Ended {
        status: running.end(),
        output,
        errors: String::from_utf8(join(errors)).unwrap(),
    }
}

#[test]
fn a_pipe_without_a_reader_ends_the_run_by_signal_or_is_told_where_that_is_ignored() {
    for option in OPTIONS {
        let arguments = [option, "/dev/zero"];
        into_broken_pipe(EXEC, &arguments, 1 << 20).was_ended_by(Signal::PIPE);
        into_broken_pipe(EXEC, &[option, "a"], 0);
        let ended = into_broken_pipe(EXEC_WITHOUT_SIGPIPE, &arguments, 1 << 20);
        ended.failed(&[BROKEN_PIPE]);
    }
}

fn broken_pipe() -> PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_pipe_closed_before_the_start_is_told_of_files_and_pipes_but_not_without_output() {
    let files = files();
    for way in WAYS {
        for from in ["a", "long", "-"] {
            let script = r#"trap '' PIPE; printf in 2>/dev/null | "$0" "$@""#;
            let mut command = files.meow_under(script);
            command.args(way).arg(from).stdout(broken_pipe());
            run(command).failed(&[BROKEN_PIPE]);
        }
        let arguments = [way, &["empty"]].concat();
        files
            .run_between(Stdio::null(), &arguments, broken_pipe())
            .succeeded();
    }
}

#[test]
fn a_socket_without_a_reader_ends_the_run_by_signal_or_is_told_where_that_is_ignored() {
    let files = files();
    for way in WAYS {
        let into_broken_socket = |script: &str, name| {
            let (near, _) = UnixStream::pair().unwrap();
            let mut command = files.meow_under(script);
            command.args(way).arg(name).stdout(OwnedFd::from(near));
            run(command)
        };
        into_broken_socket(EXEC, "/dev/zero").was_ended_by(Signal::PIPE);
        for name in ["/dev/zero", "long"] {
            into_broken_socket(EXEC_WITHOUT_SIGPIPE, name).failed(&[BROKEN_PIPE]);
        }
    }
}
