//! `toll-probe`: the measured program.
//!
//! It reads one trial request from standard input, runs the trial, and writes one response to
//! standard output. Both are a line of JSON. A failed trial is an answer like any other, so the
//! exit status is 0 whenever there is an answer.
//!
//! As process 1 of a guest it is the guest's init, which starts a fresh copy of
//! itself for each trial. With `--count-primes` it is a process that the primes
//! workload measures from outside.

use std::ffi::OsString;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

use toll_probe::failure::OrFail;
use toll_probe::workloads::crossing::process::END_FLAG;
use toll_probe::workloads::primes::process;
use toll_probe::{failure, guest, lifetime, workloads};
use toll_wire::{MESSAGE_BYTES_MAX, Outcome, Response, WIRE_VERSION};

const USAGE: &str = "usage: toll-probe [--version]\n\
    reads one trial request as a line of JSON from standard input and writes one response\n";

fn main() -> ExitCode {
    // Checked before the arguments: the kernel passes boot parameters that it
    // does not know to process 1 as arguments.
    if guest::is_init() {
        guest::run();
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => answer(),
        [flag] if flag == "--version" => print_version(),
        [flag] if flag.as_encoded_bytes() == END_FLAG.to_bytes() => ExitCode::SUCCESS,
        [flag, rest @ ..] if flag == process::FLAG => count_primes(rest),
        _ => {
            // If standard error is gone, too, there is nowhere left to report
            // to.
            let _ = std::io::stderr().write_all(USAGE.as_bytes());
            ExitCode::from(2)
        }
    }
}

fn print_version() -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    print(&format!(
        "toll-probe {version} (wire version {WIRE_VERSION})\n"
    ))
}

fn count_primes(arguments: &[OsString]) -> ExitCode {
    match process::main(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let line = format!("{}\n", failure.message);
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn answer() -> ExitCode {
    lifetime::end_with_parent(std::io::stdout());
    let outcome = match read_request() {
        Ok(request) => match workloads::run(&request) {
            Ok(data) => Outcome::Completed(Box::new(data)),
            Err(failure) => Outcome::Failed(failure),
        },
        Err(failure) => Outcome::Failed(failure),
    };
    let mut line = toll_wire::encode(&Response::new(outcome));
    line.push('\n');
    print(&line)
}

fn read_request() -> Result<toll_wire::Request, toll_wire::Failure> {
    const ADVICE: &str = "start the probe through toll";
    toll_streams::check_stdin().instrument_by("read the trial request", ADVICE)?;
    let mut line = Vec::new();
    // One byte over the limit lets the decoder detect and report the excess.
    let limit = MESSAGE_BYTES_MAX as u64 + 1;
    std::io::stdin()
        .lock()
        .take(limit)
        .read_until(b'\n', &mut line)
        .instrument_by("read the trial request", ADVICE)?;
    let text = std::str::from_utf8(&line).map_err(|error| {
        failure::instrument(format!(
            "cannot read the trial request: {error}; send JSON in UTF-8"
        ))
    })?;
    toll_wire::decode_request(text.trim_end_matches('\n'))
        .map_err(|error| failure::instrument(error.to_string()))
}

/// Prints an answer. If that fails, only the exit status can show it.
fn print(line: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let printed = toll_streams::check_stdout()
        .and_then(|()| stdout.write_all(line.as_bytes()))
        .and_then(|()| stdout.flush());
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
