//! Verbs that are separate programs: `toll mount` starts `toll-mount`.
#![expect(
    clippy::disallowed_methods,
    reason = "this process becomes the program and starts no other"
)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::anyhow;
use clap::Args;
use toll_system::{Failure, products};

#[derive(Debug, Args)]
pub(super) struct ProductArguments {
    /// Options and arguments of the program; --help lists them
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Replaces this process with the program of a verb.
pub(super) fn start(verb: &str, arguments: &ProductArguments) -> anyhow::Result<ExitCode> {
    let program = products::find(verb).map_err(Failure::Prerequisite)?;
    toll_streams::close_what_was_closed();
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(anyhow!("cannot start {}: {error}", program.display()))
}
