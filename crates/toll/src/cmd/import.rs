//! `toll import`

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;

use super::{Failure, output};
use crate::store::Store;
use crate::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};

#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// Files that `toll export --json` wrote; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &ImportArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let mut store = Store::open(store)?;
    for path in &arguments.files {
        let text = read(path)?;
        let stored = RunDocument::parse(&text)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        let id = store.import(&stored)?;
        let run = &stored.run;
        output::result(&output::line(&format!(
            "run {id}: {} of {} on {}",
            run.experiment, run.created_at, run.machine.hostname
        )))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let wrong = |error: std::io::Error| anyhow!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    let count = if path.as_os_str() == "-" {
        std::io::stdin()
            .take(DOCUMENT_BYTES_MAX + 1)
            .read_to_string(&mut text)
    } else {
        File::open(path)
            .map_err(wrong)?
            .take(DOCUMENT_BYTES_MAX + 1)
            .read_to_string(&mut text)
    };
    match count.map_err(wrong)? as u64 {
        count if count > DOCUMENT_BYTES_MAX => Err(Failure::Usage(format!(
            "cannot read {}: it is over the limit of {} MiB",
            path.display(),
            DOCUMENT_BYTES_MAX >> 20
        ))
        .into()),
        _ => Ok(text),
    }
}
