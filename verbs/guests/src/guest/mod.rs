//! `toll guest`: runs commands and shells in guests.

mod options;
mod output;
mod run;
mod shell;
mod terminal;

use std::process::ExitCode;

use clap::{Args, Subcommand};

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
