//! Starting other programs, and the namespace they are started in.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// A command that is not started yet.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this package that starts processes"
)]
pub(crate) fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Finds an executable file in `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
}

/// Runs a program of `PATH` to its end and yields its output.
///
/// # Errors
/// If it is missing or fails, with the last line it complained with.
pub(crate) fn run(name: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let program = find(name).ok_or_else(|| format!("{name} is missing"))?;
    let mut command = command(&program);
    output(command.args(arguments))
}

/// Runs a command to its end and yields its output.
///
/// # Errors
/// If it cannot be started or fails, with the last line it complained with.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.trim().lines().last().unwrap_or("no message");
    Err(format!("{name} failed ({}): {last}", output.status))
}

/// Moves this process into a mount namespace of its own. Mounts made there
/// vanish with the last process in it, so that even `kill -9` leaves none
/// behind. Must be called before other threads start: those would stay outside.
///
/// # Errors
/// Without the right to do so (root).
pub fn enter_mount_namespace() -> Result<(), String> {
    let wrong = |error: rustix::io::Errno| format!("cannot make a mount namespace: {error}");
    // SAFETY: of all flags only CLONE_FILES makes descriptors owned elsewhere
    // invalid; NEWNS and the FS it implies share nothing that Rust relies on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(wrong)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_program_is_trimmed() {
        assert_eq!(run("echo", &["a".as_ref()]).as_deref(), Ok("a"));
    }

    #[test]
    fn a_missing_and_a_failing_program_tell_why() {
        let missing = run("no-such-program", &[]).expect_err("it is missing");
        assert_eq!(missing, "no-such-program is missing");
        let failing = run("cat", &["/no/such/file".as_ref()]).expect_err("it fails");
        assert!(failing.contains("/no/such/file"), "{failing}");
    }
}
