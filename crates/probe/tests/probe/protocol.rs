//! The probe as a program: its arguments, its messages and its end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use toll_wire::{
    CopyMethod, CopyRequest, FailureKind, Placement, Request, Sink, Source, WIRE_VERSION, Workload,
    WriteRequest, encode,
};

use crate::common::{
    PROBE, answer_of, answer_request, ask, by_shell, completed, directory, failed, feed,
    scratch_files, start, wait_until,
};

fn sleeper(command: &str) -> Workload {
    Workload::Command(by_shell(command))
}

#[test]
fn the_version_tells_that_of_the_messages() {
    let output = Command::new(PROBE).arg("--version").output().unwrap();
    assert!(output.status.success());
    let expected = format!(
        "toll-probe {} (wire version {WIRE_VERSION})\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn any_other_argument_is_a_usage_error() {
    for arguments in [&["--help"][..], &["x"], &["--version", "x"]] {
        let output = Command::new(PROBE).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "));
    }
}

#[test]
fn noise_is_answered_with_an_instrument_failure() {
    let noise: [&[u8]; 6] = [b"", b"\n", b"{}\n", b"\xff\xfe\n", b"[1,2", b"null\nnull\n"];
    for input in noise {
        let outcome = answer_of(&mut Command::new(PROBE), input);
        let message = failed(outcome, FailureKind::Instrument, "noise");
        assert!(
            message.starts_with("cannot read the trial request"),
            "{message}"
        );
    }
}

#[test]
fn a_probe_without_a_standard_input_to_read_says_so() {
    for redirection in ["<&-", "0>/dev/null"] {
        let script = format!("exec \"$0\" {redirection}");
        let outcome = answer_of(Command::new("sh").args(["-c", &script, PROBE]), b"");
        let message = failed(outcome, FailureKind::Instrument, redirection);
        let said = "cannot read the trial request: bad file descriptor";
        assert!(message.starts_with(said), "{message}");
    }
}

#[test]
fn another_version_is_refused() {
    let line = encode(&Request::new(sleeper("true"))).replacen(
        &format!("\"version\":{WIRE_VERSION}"),
        "\"version\":4000000000",
        1,
    );
    let outcome = answer_of(&mut Command::new(PROBE), line.as_bytes());
    assert!(failed(outcome, FailureKind::Instrument, "version").contains("version 4000000000"));
}

#[test]
fn a_trial_has_a_number_of_iterations_within_limits() {
    for iterations in [0, u32::MAX] {
        let mut request = Request::new(sleeper("true"));
        request.iterations = iterations;
        failed(
            answer_request(&request),
            FailureKind::Instrument,
            "iterations",
        );
    }
}

#[test]
fn an_answer_that_nobody_takes_is_an_error() {
    let line = encode(&Request::new(sleeper("true")));
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$1\" >&2", "sh", PROBE]);
    let mut child = command.stdin(Stdio::piped()).stderr(full).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), line.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Makes a byte copy that takes long enough to be killed in the middle.
fn long_copy(directory: &Path) -> Workload {
    Workload::Copy(CopyRequest {
        method: CopyMethod::Byte,
        source: Source::Zero,
        sink: Sink::File,
        size_bytes: 1 << 40,
        directory: directory.to_owned(),
        ..CopyRequest::default()
    })
}

/// Whether a process runs. A zombie does not.
fn is_running(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .trim()
            .starts_with('Z')
    })
}

#[test]
fn the_file_of_a_killed_probe_is_removed_by_the_next() {
    let directory = directory();
    let mut child = start(
        &mut Command::new(PROBE),
        &Request::new(long_copy(directory.path())),
    );
    wait_until("the probe makes its file", || {
        !scratch_files(directory.path()).is_empty()
    });
    let write = Workload::Write(WriteRequest {
        directory: directory.path().to_owned(),
        buffer_bytes: 1,
        input_bytes: 1,
        placement: Placement::Append,
        ..WriteRequest::default()
    });
    completed(ask(&write), "beside a running probe");
    assert_eq!(
        scratch_files(directory.path()).len(),
        1,
        "a file in use was removed"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(scratch_files(directory.path()).len(), 1);
    completed(ask(&write), "after a killed probe");
    assert!(scratch_files(directory.path()).is_empty());
}

#[test]
fn a_probe_ends_with_its_parent() {
    let directory = directory();
    // The shell is the parent; it prints its child's PID and waits.
    let script = "exec 3<&0; \"$1\" <&3 >/dev/null & echo $!; wait";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", PROBE]);
    let mut shell = start(&mut command, &Request::new(long_copy(directory.path())));
    let mut probe = String::new();
    BufReader::new(shell.stdout.take().unwrap())
        .read_line(&mut probe)
        .unwrap();
    wait_until("the probe is at work", || {
        !scratch_files(directory.path()).is_empty()
    });
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("the probe is gone", || !is_running(probe.trim()));
}

#[test]
fn a_measured_command_ends_with_the_parent_of_a_probe_that_leads_a_group() {
    let directory = directory();
    let pid_file = directory.path().join("pid");
    let script = "exec 3<&0; setsid \"$1\" <&3 >/dev/null & wait";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", PROBE]);
    let line = format!("echo $$ > '{}'; exec sleep 1000", pid_file.display());
    let mut shell = start(&mut command, &Request::new(sleeper(&line)));
    let mut process = String::new();
    wait_until("the command is at work", || {
        process = std::fs::read_to_string(&pid_file).unwrap_or_default();
        process.ends_with('\n')
    });
    assert!(is_running(process.trim()));
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("the command is gone", || !is_running(process.trim()));
}

#[test]
fn standard_error_stays_silent() {
    let line = encode(&Request::new(sleeper("echo noise >&2")));
    let output = feed(&mut Command::new(PROBE), line.as_bytes());
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}
