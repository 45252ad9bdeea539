//! `toll fleet fetch`: writes the runs of all nodes into tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use toll_core::claim::Run;
use toll_core::format;
use toll_host::store::RunStatus;
use toll_host::store::exchange::{DOCUMENT_BYTES_MAX, RunDocument};
use toll_report::words::plural;
use toll_system::{Failure, output};

use crate::directory::Submitted;

#[derive(Debug, Args)]
pub struct FetchArguments {
    #[command(flatten)]
    submitted: Submitted,
    /// Write the tables below this directory, in addition to existing ones [default: DIR/tables]
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

pub fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    let directory = arguments.submitted.open()?;
    let submission = directory.submission()?;
    let tables = match &arguments.parquet {
        Some(tables) => tables.clone(),
        None => {
            // A link that somebody put there could make a table overwrite any file.
            directory
                .check_trusted("--parquet", &[directory.tables()])
                .map_err(Failure::Usage)?;
            directory.tables()
        }
    };
    let (mut runs, mut unfinished, mut bytes, mut unreadable) = (0, 0, 0, 0);
    for node in directory.measured_nodes()? {
        for planned in &submission.experiments {
            let path = directory.document(&node, &planned.name);
            if !path.exists() {
                output::note(&format!(
                    "{node} has not written a document of {} yet",
                    planned.name
                ));
                continue;
            }
            match read(&path) {
                Ok(run) => {
                    bytes += toll_tables::write(&tables, &run, None, output::write_file)?;
                    runs += 1;
                    unfinished += usize::from(run.stored.run.status == RunStatus::Unfinished);
                }
                Err(why) => {
                    output::note(&format!("{why:#}"));
                    unreadable += 1;
                }
            }
        }
    }
    let of_them = match unfinished {
        0 => String::new(),
        some => format!("; {some} unfinished"),
    };
    output::line(&format!(
        "wrote {} as Parquet below {} ({}){of_them}",
        plural(runs, "run"),
        tables.display(),
        format::value(bytes as f64, "bytes")
    ))?;
    if unreadable > 0 {
        bail!(
            "cannot read {}; `toll fleet retry` restores such documents from the nodes' stores",
            plural(unreadable, "document")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Run> {
    let bytes = output::read_file(path, DOCUMENT_BYTES_MAX)?;
    let stored = RunDocument::parse(&String::from_utf8_lossy(&bytes))
        .with_context(|| format!("cannot use {}", path.display()))?;
    Ok(stored.into())
}
