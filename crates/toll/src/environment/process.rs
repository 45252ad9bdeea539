//! Programs run for their effect, such as `mkfs.ext4`.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs a program to its end and gives its standard output.
///
/// # Errors
/// If it cannot be started or ends in failure, with its last words.
pub(super) fn run(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    run_on(Stdio::null(), program, arguments)
}

/// Runs a program as [`run`] does, with a standard input.
pub(super) fn run_on(stdin: Stdio, program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let path = find(program).unwrap_or_else(|| PathBuf::from(program));
    let output = Command::new(path)
        .args(arguments)
        .stdin(stdin)
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

/// Starts a program that stays in the foreground, its output dropped. It gets
/// killed when this program dies, however that happens.
pub(super) fn start(program: &Path, arguments: &[&OsStr]) -> Result<Child, String> {
    start_with(program, arguments, Stdio::null())
}

/// The same with what it says on standard error kept in a file.
pub(super) fn start_logged(
    program: &Path,
    arguments: &[&OsStr],
    log: &Path,
) -> Result<Child, String> {
    let log = std::fs::File::create(log)
        .map_err(|error| format!("cannot make {}: {error}", log.display()))?;
    start_with(program, arguments, log.into())
}

fn start_with(program: &Path, arguments: &[&OsStr], errors: Stdio) -> Result<Child, String> {
    // setpriv is in util-linux, which Debian always has; without it the server
    // is ended by the next start.
    let mut command = match find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))
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
