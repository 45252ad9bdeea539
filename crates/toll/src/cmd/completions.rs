//! `toll completions`: prints completions for a shell.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use toll_system::output;

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// Shell that reads the completions
    shell: Shell,
}

/// Prints the completions of a command line.
pub(super) fn run(
    arguments: &CompletionsArguments,
    mut command: Command,
) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "toll", &mut script);
    output::document(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
