//! A command that continues in the background once it is ready, such as a mount.
//!
//! The command starts itself again instead of forking, because a new process begins
//! with one thread and no locks. The standard output of the new process is a pipe, to
//! which it writes [`READY`]. Before that, its messages and questions go to the
//! terminal.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment is one of two places that start processes"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The line that the background process prints when it is ready.
pub const READY: &str = "ready";

/// Starts this program with the given arguments. Waits until the new process is ready
/// or has ended.
pub fn start(arguments: &[OsString]) -> io::Result<ExitCode> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim_end() == READY {
        return Ok(ExitCode::SUCCESS);
    }
    // It has already reported the reason on standard error.
    let code = child
        .wait()?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Files that a process needs to leave the terminal. They are opened early, while an
/// error can still be reported on the terminal.
pub struct Departure {
    log: File,
    nothing: File,
}

impl Departure {
    /// Opens what [`leave`](Self::leave) needs; later messages go to the file `log`.
    pub fn prepare(log: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).append(true).mode(0o600);
        let log = options.custom_flags(libc::O_NOFOLLOW).open(log)?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        Ok(Self { log, nothing })
    }

    /// Leaves the terminal after [`READY`] was printed. The process gets its own
    /// session, and its current directory becomes `/`.
    pub fn leave(self) -> io::Result<()> {
        // This fails for a process group leader, which already has what it needs.
        let _ = rustix::process::setsid();
        std::env::set_current_dir("/")?;
        rustix::stdio::dup2_stdin(&self.nothing)?;
        rustix::stdio::dup2_stdout(&self.nothing)?;
        rustix::stdio::dup2_stderr(&self.log)?;
        Ok(())
    }
}
