//! `toll fleet report`: reports where claims hold, from the tables of many machines.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use toll_system::output;

use crate::directory::DIRECTORY;
use crate::submission::FleetDirectory;
use crate::{page, report_text};

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Directory of a submission whose runs were fetched, or of `toll export --parquet`
    #[arg(value_name = "DIR", default_value = DIRECTORY)]
    directory: PathBuf,
    /// Write a page with a picture of claims and machines to this file (`-`: standard
    /// output)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let tables = match FleetDirectory::at(&arguments.directory) {
        Ok(submitted) if submitted.has_submission() => submitted.tables(),
        _ => arguments.directory.clone(),
    };
    let machines = toll_tables::read(&tables)?;
    let report = toll_core::fleet::report(&machines);
    if let Some(path) = &arguments.html {
        output::write_file(path, page::page(&report)?.as_bytes())?;
        if path.as_os_str() == "-" {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if arguments.json {
        output::json(&report)?
    } else {
        output::result(&report_text::of_report(&report))?
    }
    Ok(ExitCode::SUCCESS)
}
