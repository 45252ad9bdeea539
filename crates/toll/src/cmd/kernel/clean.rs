//! `toll kernel clean`

use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::environment::kernel::clean;
use crate::format;

const NOTES: &str = "\
Example:
  toll kernel clean --all

Without --all the kernels that guests use stay, and so does what they were fetched from. The build
trees go: the next change of a module or patch compiles the whole kernel again.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct CleanArguments {
    /// Remove all kernels, and the sources and packages too
    #[arg(long)]
    all: bool,
}

pub(super) fn run(arguments: &CleanArguments) -> anyhow::Result<ExitCode> {
    let removed = clean(arguments.all)?;
    let mut text = String::new();
    for removed in &removed {
        let size = format::bytes(removed.bytes as f64);
        text.push_str(&format!("removed {} ({size})\n", removed.path.display()));
    }
    let bytes: u64 = removed.iter().map(|removed| removed.bytes).sum();
    match removed.is_empty() {
        true => text.push_str("nothing to remove\n"),
        false => text.push_str(&format!("freed {}\n", format::bytes(bytes as f64))),
    }
    output::result(&text)?;
    Ok(ExitCode::SUCCESS)
}
