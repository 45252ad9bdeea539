//! `toll show`

use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use super::output::Analysed;
use super::{Failure, output};
use crate::report::terminal;
use crate::store::Store;
use crate::store::exchange::RunDocument;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Run: its number, the start of its identity, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Print one JSON document, every sample included
    #[arg(long)]
    json: bool,
    /// Print what the kernels of the run's guests logged, boot by boot
    #[arg(long, conflicts_with = "json")]
    kernel_log: bool,
}

pub(super) fn run(arguments: &ShowArguments, store: &Path) -> Result<ExitCode, Failure> {
    let store = Store::open_existing(store)?;
    let analysed = Analysed::load(&store, &arguments.run)?;
    if arguments.kernel_log {
        if analysed.stored.boots.is_empty() {
            return Err(Failure::Usage(format!(
                "cannot show a kernel's log: run {} booted no guest",
                analysed.stored.run.id
            )));
        }
        output::result(&terminal::kernel_logs(&analysed.stored.boots))?;
    } else if arguments.json {
        output::json(&RunDocument::new(analysed.stored, analysed.analysis))?;
    } else {
        output::result(&terminal::summary(&analysed.reported(), output::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}
