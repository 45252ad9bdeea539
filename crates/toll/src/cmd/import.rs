//! `toll import`: adds exported runs to the store.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use toll_driver::stores;
use toll_host::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};
use toll_system::{Failure, output};

#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// Files that `toll export --json` wrote; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &ImportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut store = stores::open_store(store)?;
    for path in &arguments.files {
        let bytes = output::read_file(path, DOCUMENT_BYTES_MAX)?;
        let stored = RunDocument::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        let id = store.import(&stored)?;
        let run = &stored.run;
        output::line(&format!(
            "run {id}: {} of {} on {}",
            run.experiment, run.created_at, run.machine.hostname
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
