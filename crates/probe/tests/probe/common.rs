//! Asking a probe, as `toll` would.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use toll_wire::{
    FailureKind, Outcome, Request, Response, TrialData, Workload, decode_response, encode,
};

/// The probe under test.
pub const PROBE: &str = env!("CARGO_BIN_EXE_toll-probe");

/// A directory on the file system of the build, which is more likely than
/// `/tmp` to be on a disk.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory takes files")
}

/// Gives a command a line on standard input and waits for its end.
pub fn feed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that ends without reading is judged by its output.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    child
        .wait_with_output()
        .expect("the program can be waited for")
}

/// The answer to a request, which must come with exit status 0.
pub fn answer_of(command: &mut Command, input: &[u8]) -> Outcome {
    let output = feed(command, input);
    let text = String::from_utf8(output.stdout).expect("the response is UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}{errors}", output.status);
    assert_eq!(text.matches('\n').count(), 1, "one line: {text:?}");
    let response: Response = decode_response(text.trim_end()).expect("a response");
    response.outcome
}

/// The answer to one iteration of a workload.
pub fn ask(workload: &Workload) -> Outcome {
    answer_request(&Request::new(workload.clone()))
}

/// The answer to a request.
pub fn answer_request(request: &Request) -> Outcome {
    answer_of(
        &mut Command::new(PROBE),
        format!("{}\n", encode(request)).as_bytes(),
    )
}

/// The data of an outcome that must have completed.
pub fn completed(outcome: Outcome, what: &str) -> TrialData {
    match outcome {
        Outcome::Completed(data) => *data,
        Outcome::Failed(failure) => panic!("{what}: {failure:?}"),
    }
}

/// The message of an outcome that must have failed in a certain way.
pub fn failed(outcome: Outcome, kind: FailureKind, what: &str) -> String {
    match outcome {
        Outcome::Failed(failure) if failure.kind == kind => failure.message,
        other => panic!("{what}: {other:?} instead of {kind:?}"),
    }
}

/// Files that probes made in a directory and left there.
pub fn scratch_files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".toll-probe-"))
        .collect()
}

/// Bytes without a pattern that a wrong offset would keep.
pub fn content(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(length)
    .collect()
}

/// Tells why a test did not run.
#[expect(clippy::print_stderr, reason = "a skip tells its reason")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
