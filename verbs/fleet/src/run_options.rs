//! The options of `toll run` that jobs take.

use std::ffi::OsString;

use anyhow::bail;
use clap::Parser;
use toll_driver::{RunArguments, spelling};
use toll_system::Failure;

/// The options of `toll run` for the measurements of jobs.
#[derive(Debug, Parser)]
#[command(name = "toll run")]
struct RunOptions {
    #[command(flatten)]
    arguments: RunArguments,
}

/// Parses the options of `toll run` for jobs. Refuses options that a job does not use, such
/// as output files.
pub fn run_options(options: &[String]) -> anyhow::Result<RunArguments> {
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
    // Nobody is present to start the job again, so the job waits for the measuring lock.
    arguments.wait = true;
    Ok(arguments)
}
