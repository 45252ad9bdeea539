//! Programs run for their effect, such as `mkfs.ext4`.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Runs a program to its end and gives its standard output.
///
/// # Errors
/// If it cannot be started or ends in failure, with its last words.
pub(super) fn run(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!(
        "{program} failed: {}",
        last.unwrap_or("without a word").trim()
    ))
}

/// Starts a program that stays in the foreground, its output dropped.
pub(super) fn start(program: &str, arguments: &[&OsStr]) -> Result<Child, String> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))
}

/// The path of a program, looked for in `PATH` and where Debian keeps those
/// for root, which an ordinary user's `PATH` leaves out.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}
