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
}

pub(super) fn run(arguments: &ShowArguments, store: &Path) -> Result<ExitCode, Failure> {
    let store = Store::open_existing(store)?;
    let analysed = Analysed::load(&store, &arguments.run)?;
    if arguments.json {
        output::json(&RunDocument::new(analysed.stored, analysed.analysis))?;
    } else {
        output::result(&terminal::summary(&analysed.reported(), output::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}
