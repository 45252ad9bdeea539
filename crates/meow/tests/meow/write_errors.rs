//! Sinks that take no more.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::common::{Files, Running, WAYS, collect, content, join, meow, run};

/// The options under which a write error must be told at once.
const OPTIONS: [&str; 4] = ["-u", "--copy", "-n", "-A"];

fn files() -> Files {
    let files = Files::new();
    files.file("a", b"a\n");
    files.file("long", &content(300_000));
    files.file("empty", b"");
    files
}

#[test]
fn a_full_device_is_told_once_and_ends_the_run() {
    let files = files();
    for option in OPTIONS {
        for names in [["a", "a"], ["long", "a"], ["/dev/zero", "missing"]] {
            let mut command = files.meow_under(r#"exec "$0" "$@" >/dev/full"#);
            command.arg(option).args(names);
            run(command).failed(&["meow: write error: No space left on device"]);
        }
    }
}

#[test]
fn a_full_device_is_told_for_standard_input() {
    let files = files();
    for option in OPTIONS {
        for script in [
            r#"exec "$0" "$@" <long >/dev/full"#,
            r#"printf a | "$0" "$@" >/dev/full"#,
        ] {
            let mut command = files.meow_under(script);
            command.arg(option);
            run(command).failed(&["meow: write error: No space left on device"]);
        }
    }
}

#[test]
fn a_full_device_takes_nothing_as_well_as_any_other() {
    let files = files();
    for option in OPTIONS {
        let mut command = files.meow_under(r#"exec "$0" "$@" >/dev/full"#);
        command.args([option, "empty", "-", "empty"]);
        run(command).succeeded();
    }
}

#[test]
fn a_held_carriage_return_is_told_of_at_the_end() {
    let files = files();
    files.file("held", b"\r");
    let mut command = files.meow_under(r#"exec "$0" "$@" >/dev/full"#);
    command.args(["-E", "held"]);
    run(command).failed(&["meow: write error: No space left on device"]);
}

#[test]
fn the_limit_on_file_sizes_is_told_and_filled() {
    let files = files();
    for option in ["-u", "--copy"] {
        let script = r#"trap '' XFSZ; ulimit -f 8; exec "$0" "$@" >out"#;
        for from in ["long", "-"] {
            let mut command = files.meow_under(script);
            command.args([option, from]);
            command.stdin(File::open(files.path("long")).expect("it is there"));
            run(command).failed(&["meow: write error: File too large"]);
            let made = files.content("out");
            // The shell counts in blocks of 512 or 1024 bytes.
            assert!([4096, 8192].contains(&made.len()), "{} bytes", made.len());
            assert_eq!(made, content(300_000)[..made.len()]);
        }
    }
}

#[test]
fn the_limit_on_file_sizes_ends_by_its_signal_otherwise() {
    let files = files();
    let mut command = files.meow_under(r#"ulimit -c 0; ulimit -f 8; exec "$0" "$@" >out"#);
    command.arg("long");
    run(command).was_ended_by(Signal::XFSZ);
}

/// Starts meow with a pipe that it may write some bytes to before it is
/// closed.
fn into_broken_pipe(script: &str, arguments: &[&str], length: usize) -> crate::common::Ended {
    let files = files();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = files.meow_under(script);
    command
        .args(arguments)
        .stdout(writer)
        .stderr(Stdio::piped());
    let mut running = Running::start(command);
    let errors = collect(running.0.stderr.take().expect("it is piped"));
    let mut output = vec![0; length];
    (&reader).read_exact(&mut output).expect("meow writes");
    drop(reader);
    let status = running.end();
    let errors = String::from_utf8(join(errors)).expect("messages are UTF-8");
    crate::common::Ended {
        status,
        output,
        errors,
    }
}

const EXEC: &str = r#"exec "$0" "$@""#;
const EXEC_WITHOUT_SIGPIPE: &str = r#"trap '' PIPE; exec "$0" "$@""#;

#[test]
fn a_pipe_without_a_reader_ends_the_run_by_signal() {
    for option in OPTIONS {
        let ended = into_broken_pipe(EXEC, &[option, "/dev/zero"], 1 << 20);
        ended.was_ended_by(Signal::PIPE);
        into_broken_pipe(EXEC, &[option, "a"], 0);
    }
}

#[test]
fn a_pipe_without_a_reader_is_told_where_the_signal_is_ignored() {
    for option in OPTIONS {
        let arguments = [option, "/dev/zero"];
        let ended = into_broken_pipe(EXEC_WITHOUT_SIGPIPE, &arguments, 1 << 20);
        ended.failed(&["meow: write error: Broken pipe"]);
    }
}

#[test]
fn a_pipe_closed_before_the_start_is_told_of_files_and_pipes() {
    let files = files();
    for way in WAYS {
        for from in ["a", "long", "-"] {
            let script = r#"trap '' PIPE; printf in 2>/dev/null | "$0" "$@""#;
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let mut command = files.meow_under(script);
            command.args(way).arg(from).stdout(writer);
            run(command).failed(&["meow: write error: Broken pipe"]);
        }
    }
}

#[test]
fn a_pipe_closed_before_the_start_is_no_error_without_output() {
    let files = files();
    for way in WAYS {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = files.meow();
        command
            .args(way)
            .arg("empty")
            .stdin(Stdio::null())
            .stdout(writer);
        run(command).succeeded();
    }
}

#[test]
fn a_socket_without_a_reader_ends_the_run_by_signal() {
    for way in WAYS {
        let (near, far) = UnixStream::pair().expect("sockets");
        drop(far);
        let mut command = meow();
        command.args(way).arg("/dev/zero").stdin(Stdio::null());
        command.stdout(OwnedFd::from(near));
        run(command).was_ended_by(Signal::PIPE);
    }
}

#[test]
fn a_socket_without_a_reader_is_told_where_the_signal_is_ignored() {
    let files = files();
    for way in WAYS {
        for name in ["/dev/zero", "long"] {
            let (near, far) = UnixStream::pair().expect("sockets");
            drop(far);
            let mut command = files.meow_under(EXEC_WITHOUT_SIGPIPE);
            command.args(way).arg(name).stdout(OwnedFd::from(near));
            run(command).failed(&["meow: write error: Broken pipe"]);
        }
    }
}
