//! `toll completions`: prints completions for a shell.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use toll_system::output;

use super::Cli;

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// Shell that reads the completions
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "toll", &mut script);
    output::document(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
