//! How the programs that are made of this library speak.

use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;

use crate::failure::cannot;

const USAGE_ERROR: u8 = 2;

/// What a command line asks for.
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

/// Does what a command line asks for. An error is an exit status and a reason; that
/// of the command line is status 2.
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
    // Before the work: no file is written for a result that nobody can get.
    toll_streams::check_stdout().map_err(|error| (1, cannot_print(&error)))?;
    match request {
        Request::Print(text) => print(&text).map_err(|complaint| (1, complaint))?,
        Request::Run(options) => work(options)?,
    }
    // SAFETY: the program ends here. Rust's own end writes only what `print` left in the
    // buffer, which is nothing.
    let stdout = unsafe { OwnedFd::from_raw_fd(libc::STDOUT_FILENO) };
    toll_streams::close(stdout).map_err(|error| (1, cannot_print(&error)))
}

/// Prints a result to standard output, at once.
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

/// Says something on standard error in the name of `program`, in one `write`,
/// which another program at the same terminal does not tear.
pub fn complain(program: &str, text: &str) {
    // Nothing is left to tell if even standard error is gone.
    let _ = io::stderr().write_all(format!("{program}: {text}\n").as_bytes());
}
