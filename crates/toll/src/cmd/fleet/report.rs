//! `toll fleet report`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::cmd::output;
use crate::fleet;
use crate::report::{fleet as page, terminal};

#[derive(Debug, Args)]
pub(in crate::cmd) struct ReportArguments {
    /// Directory of `toll export --parquet`, of all machines
    #[arg(value_name = "DIR")]
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
    let machines = fleet::read(&arguments.directory)?;
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
