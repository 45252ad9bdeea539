//! `toll observe`

mod devices;
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
    /// Tell which processes hold which devices
    ///
    /// Counts are descriptors, mapped files and controlling terminals on devices,
    /// wherever their nodes lie, and what else lies below /dev: shared memory,
    /// directories. With a COMMAND, runs it and tells what it opened, however
    /// shortly: it runs under strace, and each opening is seen.
    Devices(devices::DevicesArguments),
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
        What::Devices(arguments) => devices::run(arguments),
        What::Session(arguments) => session::run(arguments),
    }
}
