//! The options of `toll run` that jobs take.

use std::ffi::OsString;

use anyhow::bail;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use toll_driver::gate::GateArguments;
use toll_driver::{
    ExplainOptions, GuestOptions, Limits, NewRun, ResultOptions, RunArguments, RunOptions,
    WorkDirectories, spelling, spellings_of,
};
use toll_system::Failure;

/// The options of `toll run` for the measurements of jobs.
#[derive(Debug, Parser)]
#[command(name = "toll run")]
struct JobOptions {
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    guests: GuestOptions,
    #[command(flatten)]
    explaining: ExplainOptions,
    #[command(flatten)]
    directories: WorkDirectories,
    #[command(flatten)]
    gate: GateArguments,
}

/// Parses the options of `toll run` for jobs. Refuses options that a job does not use, such
/// as output files.
pub fn run_options(options: &[String]) -> anyhow::Result<RunArguments> {
    let words = ["toll", "run"].into_iter().map(OsString::from);
    let words = words.chain(options.iter().map(OsString::from));
    let mut words = spelling::normalise(words);
    words.remove(1);
    let job = JobOptions::try_parse_from(words).map_err(|error| refusal(&error))?;
    if job.directories.work_dir.is_some() {
        bail!(not_of_jobs("--work-dir"));
    }
    Ok(RunArguments {
        limits: job.limits,
        new: NewRun {
            options: job.options,
            guests: job.guests,
            ..NewRun::default()
        },
        // Nobody is present to start the job again, so the job waits for the measuring lock.
        wait: true,
        results: ResultOptions {
            quiet: true,
            no_html: true,
            ..ResultOptions::default()
        },
        explaining: job.explaining,
        directories: job.directories,
        gate: job.gate,
        ..RunArguments::default()
    })
}

/// Says why a job cannot take what was given.
fn refusal(error: &clap::Error) -> Failure {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option)))
            if spellings_of::<RunArguments>().contains(option) =>
        {
            not_of_jobs(option)
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option)))
            if option.starts_with('-') =>
        {
            let near = match error.get(ContextKind::SuggestedArg) {
                Some(ContextValue::String(near)) => format!("; did you mean {near}?"),
                _ => "; see toll run --help".to_owned(),
            };
            Failure::Usage(format!(
                "cannot use {option} after --: toll run has no such option{near}"
            ))
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(item))) => Failure::Usage(format!(
            "cannot use {item} after --: name experiments before it, and put commands into an \
             experiment file"
        )),
        _ => {
            let why = error.render().to_string();
            let first = why.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("error: ");
            Failure::Usage(format!("cannot use the options after --: {first}"))
        }
    }
}

fn not_of_jobs(option: &str) -> Failure {
    Failure::Usage(format!(
        "cannot use {option} after --: jobs take options of toll run about measuring; a job waits \
         and continues by itself, compares with no other run, writes a document for each \
         experiment and uses the --work-dir of toll fleet submit"
    ))
}
