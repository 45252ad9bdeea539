//! `toll fleet`: measures on the nodes of a cluster and reports over machines.

mod fetch;
pub mod kubernetes;
pub mod node_state;
mod page;
mod report;
mod report_text;
mod retry;
pub mod script;
pub mod slurm;
mod status;
pub mod submission;
mod submit;
mod work;

use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use serde::Deserialize;
use toll_driver::RunArguments;
use toll_driver::spelling;
use toll_host::store::RunStatus;
use toll_host::store::exchange::DOCUMENT_BYTES_MAX;
use toll_system::Failure;
use toll_system::bounded::open_bounded;

use crate::submission::FleetDirectory;

/// Default directory of a submission.
const DIRECTORY: &str = "toll-fleet";

#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Measure experiments on the nodes of a cluster, with one job for each node
    #[command(after_help = submit::NOTES)]
    Submit(Box<submit::SubmitArguments>),
    /// Show the progress of each node, and why one waits or failed
    Status(status::StatusArguments),
    /// Submit failed nodes again; they continue after their finished trials
    Retry(retry::RetryArguments),
    /// Write the runs of all nodes into tables
    Fetch(fetch::FetchArguments),
    /// Measure a submission on this machine, as a job does
    Work(work::WorkArguments),
    /// Report on which machines each claim holds, the values over all machines, and which
    /// facts about machines explain their differences
    Report(report::ReportArguments),
}

pub fn run(verb: &FleetVerb) -> anyhow::Result<ExitCode> {
    match verb {
        FleetVerb::Submit(arguments) => submit::run(arguments),
        FleetVerb::Status(arguments) => status::run(arguments),
        FleetVerb::Retry(arguments) => retry::run(arguments),
        FleetVerb::Fetch(arguments) => fetch::run(arguments),
        FleetVerb::Work(arguments) => work::run(arguments),
        FleetVerb::Report(arguments) => report::run(arguments),
    }
}

/// The directory of a submission, as an argument.
#[derive(Debug, Args)]
struct Submitted {
    /// Directory of the submission
    #[arg(value_name = "DIR", default_value = DIRECTORY)]
    directory: PathBuf,
}

impl Submitted {
    fn open(&self) -> anyhow::Result<FleetDirectory> {
        FleetDirectory::at(&self.directory)
    }
}

/// The options of `toll run` for the measurements of jobs.
#[derive(Debug, Parser)]
#[command(name = "toll run")]
struct RunOptions {
    #[command(flatten)]
    arguments: RunArguments,
}

/// Parses the options of `toll run` for jobs. Refuses options that a job does not use, such
/// as output files.
fn run_options(options: &[String]) -> anyhow::Result<RunArguments> {
    let words = ["toll", "run"].into_iter().map(OsString::from);
    let words = words.chain(options.iter().map(OsString::from));
    let mut words = spelling::normalise(words);
    words.remove(1);
    let RunOptions { mut arguments } = RunOptions::try_parse_from(words).map_err(|error| {
        let why = error.render().to_string();
        let first = why.lines().next().unwrap_or_default();
        let first = first.trim_start_matches("error: ");
        Failure::Usage(format!("cannot use the options after --: {first}"))
    })?;
    let own = [
        ("--resume", arguments.resume.is_some()),
        ("--dry-run", arguments.dry_run),
        ("--json", arguments.json),
        ("--html", arguments.html.is_some()),
        ("--plots", arguments.plots.is_some()),
        ("--export-FORMAT", !arguments.exports.files().is_empty()),
        ("--save-baseline", arguments.save_baseline.is_some()),
        ("--work-dir", arguments.directories.work_dir.is_some()),
    ];
    if let Some((option, _)) = own.iter().find(|(_, is_set)| *is_set) {
        bail!(Failure::Usage(format!(
            "cannot use {option} after --: a job continues by itself, writes a document for each \
             experiment and uses the --work-dir of toll fleet submit"
        )));
    }
    if let Some(item) = arguments.items.first() {
        bail!(Failure::Usage(format!(
            "cannot use {item} after --: name experiments before it, and put commands into an \
             experiment file"
        )));
    }
    (arguments.quiet, arguments.no_html) = (true, true);
    // Nobody is present to start the job again, so it waits for the measuring lock.
    arguments.wait = true;
    Ok(arguments)
}

/// Whether a document exists and is that of a complete run.
fn is_complete(document: &Path) -> bool {
    #[derive(Deserialize)]
    struct Document {
        run: Run,
    }
    #[derive(Deserialize)]
    struct Run {
        status: RunStatus,
    }
    let Ok(file) = open_bounded(document, DOCUMENT_BYTES_MAX) else {
        return false;
    };
    let read: Result<Document, _> = serde_json::from_reader(BufReader::new(file));
    read.is_ok_and(|document| document.run.status == RunStatus::Complete)
}

fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}
