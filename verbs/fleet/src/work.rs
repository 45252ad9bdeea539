//! `toll fleet work`: measures the experiments of a submission on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Args;
use toll_core::claim::Run;
use toll_core::run::StoredRun;
use toll_core::spec::Experiment;
use toll_driver::RunArguments;
use toll_driver::failure;
use toll_driver::stores;
use toll_host::store::RunStatus;
use toll_host::store::exchange::RunDocument;
use toll_system::{Failure, output};

use crate::directory::make_directory;
use crate::run_options::run_options;
use crate::submission::{FleetDirectory, PlannedExperiment};

#[derive(Debug, Args)]
pub struct WorkArguments {
    /// Directory of the submission
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of this machine; runs that were started under this name are continued
    #[arg(long, value_name = "NAME")]
    node: String,
}

pub fn run(arguments: &WorkArguments) -> anyhow::Result<ExitCode> {
    let directory = FleetDirectory::at(&arguments.directory)?;
    let submission = directory.submission()?;
    let node = arguments.node.as_str();
    ensure!(
        !node.is_empty() && !node.starts_with('.') && !node.contains('/'),
        Failure::Usage(format!(
            "cannot measure as {node:?}: that is not a valid directory name; name the host"
        ))
    );
    let options = run_options(&submission.run_options)?;
    make_directory(&directory.nodes().join(node))?;
    let mut first_failure = None;
    for planned in &submission.experiments {
        match measure(&directory, node, planned, &options) {
            Ok(ExitCode::SUCCESS) => {}
            // A signal ended the run.
            Ok(code) => return Ok(code),
            Err(error) if failure::signal(&error).is_some() => return Err(error),
            Err(error) => {
                output::note(&format!("{}: {error:#}", planned.name));
                first_failure.get_or_insert(planned.name.as_str());
            }
        }
    }
    match first_failure {
        None => Ok(ExitCode::SUCCESS),
        Some(name) => bail!("cannot measure {name} on {node}; see the error above"),
    }
}

/// Starts or continues the run of an experiment, then writes the document of its state.
fn measure(
    directory: &FleetDirectory,
    node: &str,
    planned: &PlannedExperiment,
    options: &RunArguments,
) -> anyhow::Result<ExitCode> {
    let path = directory.store(node, &planned.name);
    let mut arguments = options.clone();
    let file = planned.file.as_ref();
    let file = file.map(|file| directory.experiments().join(file));
    let item = file.map_or_else(
        || planned.name.clone(),
        |file| file.to_string_lossy().into_owned(),
    );
    arguments.new.items = vec![item];
    let measured = match last_run(&path)? {
        Some(run) if is_done(&run, &arguments) => Ok(ExitCode::SUCCESS),
        Some(run) => {
            arguments.resuming.run_foreign_commands = is_submitted(&run, &arguments)?;
            arguments.resuming.resume = Some(run.run.id.to_string());
            toll_driver::run(&arguments, &path)
        }
        None => toll_driver::run(&arguments, &path),
    };
    if let Some(stored) = last_run(&path)? {
        let Run {
            stored, analysis, ..
        } = stored.into();
        let text = output::json_text(&RunDocument::new(stored, analysis))?;
        output::write_file(&directory.document(node, &planned.name), text.as_bytes())?;
    }
    measured
}

/// Whether a run is complete and, with `--why`, explained.
fn is_done(stored: &StoredRun, arguments: &RunArguments) -> bool {
    let is_explained = !stored.profiles.is_empty() || !arguments.explaining.why;
    stored.run.status == RunStatus::Complete && is_explained
}

/// Whether a run has the submitted experiment. If so, it runs only commands of the submission.
fn is_submitted(run: &StoredRun, arguments: &RunArguments) -> anyhow::Result<bool> {
    let submitted = toll_driver::select(arguments)?;
    Ok(submitted.first().is_some_and(|submitted| {
        let stored = Experiment {
            // The share of a time budget depends on when the experiment began.
            run: submitted.run,
            ..run.experiment.clone()
        };
        stored == *submitted
    }))
}

fn last_run(store: &Path) -> anyhow::Result<Option<StoredRun>> {
    let Some(store) = stores::read_if_any(store)? else {
        return Ok(None);
    };
    match store.runs()?.last() {
        Some((run, _)) => Ok(Some(store.load(run.id)?)),
        None => Ok(None),
    }
}
