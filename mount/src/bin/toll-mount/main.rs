//! The program `toll mount`, which serves a directory, local or of another host, as a
//! file system.

mod background;
mod kept;
mod options;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use options::MountArguments;
use toll_system::command_line;

/// Option with which this program starts itself again in the background.
const IN_BACKGROUND: &str = "--in-background";

fn main() -> ExitCode {
    command_line::run(|arguments: MountArguments| mount(&arguments))
}

fn mount(arguments: &MountArguments) -> anyhow::Result<ExitCode> {
    if arguments.lists_kept() {
        return kept::list(&arguments.copies()?);
    }
    let settings = arguments.settings()?;
    if arguments.is_foreground() {
        return serve::serve(&settings, arguments.is_in_background());
    }
    // The option comes first, because arguments after `--` are not options.
    let typed = std::env::args_os().skip(1);
    let same: Vec<OsString> = [IN_BACKGROUND.into()].into_iter().chain(typed).collect();
    background::start(&same).context("cannot go to the background")
}
