//! `toll history`: keeps measurements of commits and finds changes among them.

mod check;
mod lines;
mod show;

use std::path::Path;
use std::process::ExitCode;

use check::CheckArguments;
use clap::{Args, Subcommand};
use lines::PlaceArguments;
use show::ShowArguments;
use toll_driver::stores;
use toll_host::machine_id;
use toll_host::store::Store;
use toll_report::words::{plural, unit};
use toll_system::{Failure, output};

use crate::series::{Line, Record};

const NOTES: &str = "\
Examples:
  toll run -n sort 'build/sort input' && toll history record
  toll history show
  toll history check --build make '{tree}/build/sort input'

Records are notes of the commits (refs/notes/toll), or lines of a file with --file. A candidate is a
place where a series may have changed. It counts as a change once `check` has built the commits
before and after it and compared them side by side.";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct HistoryVerb {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Keep the results of a run as the record of a commit
    Record(RecordArguments),
    /// Show each benchmark along a branch, and where it may have changed
    Show(ShowArguments),
    /// Measure both sides of each candidate, and keep the results
    Check(CheckArguments),
}

#[derive(Debug, Args)]
struct RecordArguments {
    /// Run to record: its number, the start of its identity, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Commit that was measured [default: HEAD, if no tracked file differs from it]
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
}

pub fn run(verb: &HistoryVerb, store: &Path) -> anyhow::Result<ExitCode> {
    match &verb.action {
        Action::Record(arguments) => record(arguments, store)?,
        Action::Show(arguments) => show::run(arguments)?,
        Action::Check(arguments) => return check::run(arguments, store),
    }
    Ok(ExitCode::SUCCESS)
}

fn record(arguments: &RecordArguments, store: &Path) -> anyhow::Result<()> {
    let place = arguments.place.open()?;
    if arguments.revision.is_none()
        && let changed = place
            .repository
            .changed_files()
            .map_err(anyhow::Error::msg)?
        && let Some(first) = changed.first()
    {
        return Err(Failure::Usage(format!(
            "cannot record HEAD: the work tree differs from it in {} ({first}); commit the \
             changes and measure again, or name the measured commit with --revision",
            plural(changed.len(), "file")
        ))
        .into());
    }
    let revision = arguments.revision.as_deref().unwrap_or("HEAD");
    let commit = place
        .repository
        .find(revision)
        .map_err(Failure::Usage)?
        .hash;
    let run = stores::load_run(&Store::open_existing(store)?, &arguments.run)?;
    let machine = machine_id(&run.stored.run.machine);
    let unit = |metric: &str| unit(&run.analysis.metrics, metric).to_owned();
    let record = Record::new(&run.stored, &commit, machine, unit);
    let id = run.stored.run.id;
    if record.measured.is_empty() {
        return Err(
            Failure::Usage(format!("cannot record run {id}: no trial of it completed")).into(),
        );
    }
    let line = Line::Record(record);
    let short = &commit[..12];
    let known = place.read(&commit)?;
    if known.lines.contains(&line) {
        return output::line(&format!("run {id} is already recorded at {short}"));
    }
    place.append(&line)?;
    output::line(&format!("run {id} is recorded at {short}"))
}
