//! Starting other programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command that is not started yet.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this package that starts processes"
)]
pub fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Finds an executable file in `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| {
            std::fs::metadata(candidate)
                .is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
        })
}

/// Runs a command to its end and yields its output.
///
/// # Errors
/// If it cannot be started or fails, with the last line it complained with.
pub fn output(command: &mut Command) -> Result<String, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_output_or_why_it_failed() {
        let cat = find("cat").expect("coreutils has it");
        let told = output(command(&cat).arg("/proc/sys/kernel/ostype"));
        assert_eq!(told.as_deref(), Ok("Linux"));
        let failing = output(command(&cat).arg("/no/such/file")).expect_err("it fails");
        assert!(failing.contains("/no/such/file"), "{failing}");
        assert!(find("no-such-program").is_none());
    }
}
