//! `toll export`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::output::Analysed;
use super::{Failure, output};
use crate::report::{csv, markdown};
use crate::store::Store;
use crate::store::exchange::RunDocument;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Run: its number, the start of its identity, or `last`
    run: String,
    #[command(flatten)]
    files: ExportFiles,
}

/// Files to write; `-` is standard output.
#[derive(Debug, Args, Default)]
#[group(required = true, multiple = true)]
pub(super) struct ExportFiles {
    /// Everything, every sample included, for `toll import` and other programs
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// One line a trial, iteration and metric
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Verdicts and treatments as tables
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub(super) fn run(arguments: &ExportArguments, store: &Path) -> Result<ExitCode, Failure> {
    let store = Store::open_existing(store)?;
    let analysed = Analysed::load(&store, &arguments.run)?;
    let files = &arguments.files;
    write(
        &analysed,
        files.json.as_deref(),
        files.csv.as_deref(),
        files.markdown.as_deref(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a run to the files that are named.
///
/// # Errors
/// If one cannot be written.
pub(super) fn write(
    analysed: &Analysed,
    json: Option<&Path>,
    csv: Option<&Path>,
    markdown: Option<&Path>,
) -> Result<(), Failure> {
    if let Some(path) = json {
        let document = RunDocument::new(analysed.stored.clone(), analysed.analysis.clone());
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Failure::Runtime(format!("cannot write JSON: {error}")))?;
        output::write_file(path, format!("{text}\n").as_bytes())?;
    }
    if let Some(path) = csv {
        let text = csv::csv(&analysed.stored);
        output::write_file(path, text.as_bytes())?;
    }
    if let Some(path) = markdown {
        output::write_file(path, markdown::markdown(&analysed.reported()).as_bytes())?;
    }
    Ok(())
}
