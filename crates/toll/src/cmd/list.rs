//! `toll list`

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::{baseline, output};
use crate::spec::builtin::BUILTINS;
use crate::store::{Baseline, RunRecord, RunStatus};

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Listing {
    experiments: Vec<ListedExperiment>,
    runs: Vec<ListedRun>,
    baselines: Vec<Baseline>,
}

#[derive(Debug, Serialize)]
struct ListedExperiment {
    name: String,
    title: String,
}

#[derive(Debug, Serialize)]
struct ListedRun {
    #[serde(flatten)]
    run: RunRecord,
    trials: usize,
}

pub(super) fn run(arguments: &ListArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let experiments = BUILTINS
        .iter()
        .map(|builtin| ListedExperiment {
            name: builtin.name.to_owned(),
            title: builtin.title().unwrap_or_default(),
        })
        .collect();
    let (runs, baselines) = match output::read_if_any(store)? {
        Some(store) => (store.runs()?, store.baselines()?),
        None => (Vec::new(), Vec::new()),
    };
    let listing = Listing {
        experiments,
        runs: runs
            .into_iter()
            .map(|(run, trials)| ListedRun { run, trials })
            .collect(),
        baselines,
    };
    match arguments.json {
        true => output::json(&listing)?,
        false => output::listing(&text(&listing))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(listing: &Listing) -> String {
    let mut text = String::from("Built-in experiments (toll run NAME):\n");
    for experiment in &listing.experiments {
        text.push_str(&format!("  {:<8} {}\n", experiment.name, experiment.title));
    }
    if listing.runs.is_empty() {
        text.push_str("\nNo runs yet: `toll run` makes some.\n");
        return text;
    }
    text.push_str("\nRuns (toll show RUN):\n");
    text.push_str(&format!(
        "  {:>4}  {:<16}  {:<16}  {:<8}  {:>7}  {:<10}  {}\n",
        "run", "date (UTC)", "experiment", "profile", "trials", "state", "machine"
    ));
    for ListedRun { run, trials } in &listing.runs {
        let state = match (run.imported, run.status) {
            (true, _) => "imported",
            (_, RunStatus::Unfinished) => "unfinished",
            (_, RunStatus::Complete) => "complete",
        };
        let date = run
            .created_at
            .get(..16)
            .unwrap_or(&run.created_at)
            .replace('T', " ");
        let line = format!(
            "  {:>4}  {date:<16}  {:<16}  {:<8}  {trials:>7}  {state:<10}  {}",
            run.id, run.experiment, run.profile, run.machine.hostname
        );
        text.push_str(&output::line(line.trim_end()));
    }
    if !listing.baselines.is_empty() {
        text.push_str("\nBaselines (toll run --baseline NAME):\n");
        text.push_str(&baseline::text(&listing.baselines));
    }
    text
}
