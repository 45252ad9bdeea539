//! How the programs built from this library use the command line and standard
//! streams.

use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;

use crate::failure::cannot;

const USAGE_ERROR: u8 = 2;

/// What a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<T> {
    Run(T),
    /// Print this text to standard output.
    Print(String),
}

impl<T> Request<T> {
    pub fn version(name: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self::Print(format!("{name} (toll) {version}\n"))
    }
}

/// Carries out the request of a command line. An error is an exit status and a reason; for an error
/// in the command line the status is 2.
pub fn run<T>(
    name: &str,
    request: Result<Request<T>, String>,
    work: impl FnOnce(T) -> Result<(), (u8, String)>,
) -> ExitCode {
    let result = match request {
        Ok(request) => carry_out(request, work),
        Err(complaint) => Err((USAGE_ERROR, complaint)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, complaint)) => {
            complain(name, &complaint);
            ExitCode::from(status)
        }
    }
}

fn carry_out<T>(
    request: Request<T>,
    work: impl FnOnce(T) -> Result<(), (u8, String)>,
) -> Result<(), (u8, String)> {
    // Checked before the work, so that no file is written for a result that
    // nobody can get.
    toll_streams::check_stdout().map_err(|error| (1, cannot_print(&error)))?;
    match request {
        Request::Print(text) => print(&text).map_err(|complaint| (1, complaint))?,
        Request::Run(options) => work(options)?,
    }
    // SAFETY: the program ends here. Rust's own exit writes only what `print` left in the buffer,
    // which is nothing.
    let stdout = unsafe { OwnedFd::from_raw_fd(libc::STDOUT_FILENO) };
    toll_streams::close(stdout).map_err(|error| (1, cannot_print(&error)))
}

/// Prints a result to standard output and flushes it.
pub fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| cannot_print(&error))
}

fn cannot_print(error: &io::Error) -> String {
    cannot("print the result", error, "check standard output")
}

/// Prints a message of `program` to standard error in one `write`, so that
/// another program at the same terminal does not split it.
pub fn complain(program: &str, text: &str) {
    // If standard error is gone, too, there is nowhere left to report to.
    let _ = io::stderr().write_all(format!("{program}: {text}\n").as_bytes());
}
