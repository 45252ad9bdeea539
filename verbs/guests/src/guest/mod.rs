//! `toll guest`: runs commands and shells in guests.

mod options;
mod run;
mod shell;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use toll_host::environment::guest::Stream;

#[derive(Debug, Args)]
pub struct GuestArguments {
    #[command(subcommand)]
    verb: GuestVerb,
}

#[derive(Debug, Subcommand)]
enum GuestVerb {
    /// Run a command in a guest
    Run(run::RunArguments),
    /// Open a shell in a guest
    Shell(shell::ShellArguments),
}

pub fn run(arguments: &GuestArguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        GuestVerb::Run(arguments) => run::run(arguments),
        GuestVerb::Shell(arguments) => shell::run(arguments),
    }
}

/// Passes on the output of a command in a guest. A closed pipe does not end the
/// command.
pub fn pass_on(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Output => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        Stream::Error => io::stderr().lock().write_all(bytes),
    };
}
