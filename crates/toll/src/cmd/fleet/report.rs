//! `toll fleet report`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::DIRECTORY;
use crate::cmd::output;
use crate::fleet;
use crate::fleet::submission::FleetDirectory;
use crate::report::{fleet as page, terminal};

#[derive(Debug, Args)]
pub(in crate::cmd) struct ReportArguments {
    /// Directory of a submission whose runs were fetched, or of `toll export --parquet`
    #[arg(value_name = "DIR", default_value = DIRECTORY)]
    directory: PathBuf,
    /// Write a page with a picture of claims and machines to this file, `-` for standard
    /// output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let tables = match FleetDirectory::at(&arguments.directory) {
        Ok(submitted) if submitted.has_submission() => submitted.tables(),
        _ => arguments.directory.clone(),
    };
    let machines = fleet::read(&tables)?;
    let report = toll_core::fleet::report(&machines);
    if let Some(path) = &arguments.html {
        output::write_file(path, page::page(&report)?.as_bytes())?;
        if path.as_os_str() == "-" {
            return Ok(ExitCode::SUCCESS);
        }
    }
    match arguments.json {
        true => output::json(&report)?,
        false => output::result(&terminal::fleet(&report, output::style()))?,
    }
    Ok(ExitCode::SUCCESS)
}
