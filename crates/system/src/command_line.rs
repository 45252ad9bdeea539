//! The command line of a program that runs as a verb of `toll` or by its own name.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap_complete::Shell;

use crate::{exit_code, manual, output};

/// Option with which the packaging generates files from the command line: `--generate=man`, or
/// the name of a shell for its completions.
const GENERATE: &str = "--generate=";

/// Parses the command line, calls `work`, and prints its error.
pub fn run<P: Parser>(work: impl FnOnce(P) -> anyhow::Result<ExitCode>) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, only] = arguments.as_slice()
        && let Some(what) = only.to_str().and_then(|only| only.strip_prefix(GENERATE))
    {
        return ended(generate::<P>(what));
    }
    match P::try_parse_from(arguments) {
        Ok(arguments) => ended(work(arguments)),
        Err(instead) => output::instead_of_work(&instead),
    }
}

fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        exit_code(&error)
    })
}

fn generate<P: Parser>(what: &str) -> anyhow::Result<ExitCode> {
    let mut command = P::command();
    let mut text = Vec::new();
    if what == "man" {
        command.build();
        manual::render(&command, "", &mut text)?;
    } else {
        let shell: Shell = what
            .parse()
            .map_err(|_| anyhow::anyhow!("cannot generate {what}: name man, bash, zsh or fish"))?;
        let name = command.get_name().to_owned();
        clap_complete::generate(shell, &mut command, name, &mut text);
    }
    output::document(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
