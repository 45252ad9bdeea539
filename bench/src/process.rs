//! Starts other programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Returns a command that will start a program.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this package that starts processes"
)]
pub fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Returns the path of a program in the same directory as this one.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find {name}: {error}"))?;
    Ok(own.with_file_name(name))
}

/// Ends the program `name`: writes the text to standard output, or the error to standard error.
pub fn finish(name: &str, done: Result<String, String>) -> ExitCode {
    // The reader may have ended, so errors are ignored.
    match done {
        Ok(text) => {
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(reason) => {
            let _ = io::stderr().write_all(format!("{name}: {reason}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// Runs a command to its end and returns its standard output, trimmed.
///
/// # Errors
/// If the command cannot be run or fails. The message has the last line of its standard error.
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
        let cat = Path::new("cat");
        let kernel_name = output(command(cat).arg("/proc/sys/kernel/ostype"));
        assert_eq!(kernel_name.as_deref(), Ok("Linux"));
        let failing = output(command(cat).arg("/no/such/file")).expect_err("it fails");
        assert!(failing.contains("/no/such/file"), "{failing}");
    }
}
