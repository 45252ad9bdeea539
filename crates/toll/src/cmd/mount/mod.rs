//! `toll mount`

mod kept;
mod options;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use super::{Failure, output};
use crate::environment::background;
use anyhow::Context;

pub(super) use options::MountArguments;

/// How this program is told that it is the one in the background.
const IN_BACKGROUND: &str = "--in-background";

pub(super) fn run(arguments: &MountArguments) -> anyhow::Result<ExitCode> {
    if arguments.lists_kept() {
        return kept::list(&arguments.copies()?);
    }
    let settings = arguments.settings()?;
    if arguments.is_foreground() {
        return serve::serve(&settings, arguments.is_in_background());
    }
    let mut same: Vec<OsString> = std::env::args_os().skip(1).collect();
    same.push(IN_BACKGROUND.into());
    background::start(&same).context("cannot go to the background")
}

fn note(message: &str) {
    output::note(&format!("toll mount: {message}"));
}
