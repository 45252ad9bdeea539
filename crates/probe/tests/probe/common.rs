//! Sends requests to a probe, as `toll` does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toll_wire::{
    CommandRequest, FailureKind, Outcome, Request, Response, Sample, ShellChoice, TrialData,
    Workload, decode_response, encode,
};

pub const PROBE: &str = env!("CARGO_BIN_EXE_toll-probe");

/// A directory on the file system of the build, which is more likely than
/// `/tmp` to be on a disk.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory takes files")
}

fn line(request: &Request) -> String {
    format!("{}\n", encode(request))
}

/// Passes `input` to a command on standard input, and waits for the command to
/// end.
pub fn feed(command: &mut Command, input: &[u8]) -> Output {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().expect("it starts");
    // A program that ends without reading its input is judged by its output.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    child.wait_with_output().expect("it can be waited for")
}

/// Returns the answer to a line, which must come with exit status 0.
pub fn answer_of(command: &mut Command, input: &[u8]) -> Outcome {
    let output = feed(command, input);
    let text = String::from_utf8(output.stdout).expect("the response is UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}{errors}", output.status);
    assert_eq!(text.matches('\n').count(), 1, "one line: {text:?}");
    let response: Response = decode_response(text.trim_end()).expect("a response");
    response.outcome
}

/// Starts a probe with a request, without waiting for its answer.
pub fn start(command: &mut Command, request: &Request) -> Child {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("the probe starts");
    let mut input = child.stdin.take().expect("it is piped");
    let written = input.write_all(line(request).as_bytes());
    written.expect("the probe reads");
    child
}

pub fn answer(probe: Child) -> Outcome {
    let output = probe.wait_with_output().expect("the probe ends");
    let text = String::from_utf8(output.stdout).expect("the response is UTF-8");
    decode_response(text.trim_end())
        .expect("a response")
        .outcome
}

/// Returns the answer to one iteration of a workload.
pub fn ask(workload: &Workload) -> Outcome {
    answer_request(&Request::new(workload.clone()))
}

pub fn answer_request(request: &Request) -> Outcome {
    answer_of(&mut Command::new(PROBE), line(request).as_bytes())
}

/// Returns the answer of a probe for which `strace` changes the results of calls. Prints `skipped`
/// and returns `None` where that is impossible.
pub fn answer_under_strace(arguments: &[&str], request: &Request) -> Option<Outcome> {
    let strace = || {
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-o", "/dev/null"])
            .args(arguments);
        strace
    };
    if !strace()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        skip("strace is missing or may not trace");
        return None;
    }
    let outcome = answer_of(strace().arg(PROBE), line(request).as_bytes());
    Some(outcome)
}

/// Returns the data of an outcome that must have completed.
pub fn completed(outcome: Outcome, what: &str) -> TrialData {
    match outcome {
        Outcome::Completed(data) => *data,
        Outcome::Failed(failure) => panic!("{what}: {failure:?}"),
    }
}

/// Returns an outcome. Prints `skipped` and returns `None` where this machine
/// does not support it.
fn or_skip(outcome: Outcome, what: &str) -> Option<Outcome> {
    match outcome {
        Outcome::Failed(failure) if failure.kind == FailureKind::Unsupported => {
            skip(&format!("{what}: {}", failure.message));
            None
        }
        outcome => Some(outcome),
    }
}

pub fn completed_or_skip(outcome: Outcome, what: &str) -> Option<TrialData> {
    or_skip(outcome, what).map(|outcome| completed(outcome, what))
}

/// Returns the only sample of one iteration.
pub fn sample(workload: &Workload) -> Sample {
    let what = format!("{workload:?}");
    let mut data = completed(ask(workload), &what);
    assert_eq!(data.samples.len(), 1, "{what}");
    data.samples.remove(0)
}

/// Like [`sample`], but prints `skipped` and returns `None` where this machine
/// does not support it.
pub fn sample_or_skip(workload: &Workload) -> Option<Sample> {
    let data = completed_or_skip(ask(workload), &format!("{workload:?}"));
    data.map(|mut data| data.samples.remove(0))
}

pub fn failed(outcome: Outcome, kind: FailureKind, what: &str) -> String {
    match outcome {
        Outcome::Failed(failure) if failure.kind == kind => failure.message,
        other => panic!("{what}: {other:?} instead of {kind:?}"),
    }
}

pub fn failed_or_skip(outcome: Outcome, kind: FailureKind, what: &str) -> Option<String> {
    or_skip(outcome, what).map(|outcome| failed(outcome, kind, what))
}

/// Returns the message of a workload that must fail with this kind of failure.
pub fn refused(workload: &Workload, kind: FailureKind) -> String {
    failed(ask(workload), kind, &format!("{workload:?}"))
}

/// Makes a command with the defaults of a request.
pub fn command(line: &str) -> CommandRequest {
    CommandRequest {
        command: line.to_owned(),
        ..CommandRequest::default()
    }
}

pub fn by_shell(line: &str) -> CommandRequest {
    CommandRequest {
        shell: ShellChoice::Program("/bin/sh".into()),
        ..command(line)
    }
}

/// Returns the answer of a probe that has 1 MiB for files in `mount`, and must
/// leave none behind; `None` where no file system can be mounted.
pub fn ask_on_full_file_system(workload: &Workload, mount: &Path) -> Option<Outcome> {
    // The listing after the probe shows what it left behind.
    let script = "mount -t tmpfs -o size=1m none \"$1\" || exit 77; \"$2\"; \
                  test -z \"$(ls -A \"$1\")\" || exit 78";
    let line = line(&Request::new(workload.clone()));
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(mount)
        .arg(PROBE);
    let probed = feed(&mut command, line.as_bytes());
    if !matches!(probed.status.code(), Some(0 | 78)) {
        let errors = String::from_utf8_lossy(&probed.stderr);
        skip(&format!("cannot mount a tmpfs: {}", errors.trim()));
        return None;
    }
    Some(answer_of(&mut command, line.as_bytes()))
}

/// Returns the files that probes made in a directory and left there.
pub fn scratch_files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".toll-probe-"))
        .collect()
}

/// Returns bytes without a pattern that a wrong offset would preserve.
pub fn content(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Returns the resident memory of a live process (field 2 of /proc/PID/statm),
/// in bytes.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Returns the children of a process's first thread.
pub fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let children = list
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    children.collect()
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[expect(clippy::print_stderr, reason = "a skip prints its reason")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
