//! `toll observe`

mod session;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{Failure, output};

#[derive(Debug, Args)]
pub(super) struct ObserveArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make plain text of a terminal session that `script` recorded
    ///
    /// A model of the terminal reads it: what was typed over, erased, scrolled in a
    /// region or shown on the alternate screen of an editor or pager is not in the
    /// text, nor are colours and titles; a line that the terminal wrapped is one line.
    /// What was cleared from the whole screen stays. The text is UTF-8, and no control
    /// character but the line feed is in it; a byte that is no UTF-8 is shown as \xfe.
    Session(session::SessionArguments),
}

pub(super) fn run(arguments: &ObserveArguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        What::Session(arguments) => session::run(arguments),
    }
}
