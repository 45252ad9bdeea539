//! `toll list`: lists stored runs and built-in experiments.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use toll_driver::baseline;
use toll_driver::stores;
use toll_host::store::{Baseline, RunRecord, RunStatus};
use toll_system::output;

use crate::spec::builtin;

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
    let experiments = builtin::with_names()
        .map(|builtin| ListedExperiment {
            name: builtin.name.to_owned(),
            title: builtin.title().unwrap_or_default(),
        })
        .collect();
    let (runs, baselines) = match stores::read_if_any(store)? {
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
    if arguments.json {
        output::json(&listing)?
    } else {
        output::listing(&lines(&listing))?
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(listing: &Listing) -> Vec<String> {
    let mut lines = vec!["Built-in experiments (toll run NAME):".to_owned()];
    let experiments = listing.experiments.iter();
    lines.extend(experiments.map(|one| format!("  {:<8} {}", one.name, one.title)));
    let mut section = |title: &str| lines.extend([String::new(), title.to_owned()]);
    if listing.runs.is_empty() {
        section("No runs yet: `toll run` makes some.");
        return lines;
    }
    section("Runs (toll show RUN):");
    lines.push(format!(
        "  {:>4}  {:<16}  {:<16}  {:<8}  {:>7}  {:<10}  {}",
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
        lines.push(line.trim_end().to_owned());
    }
    if !listing.baselines.is_empty() {
        lines.extend(["", "Baselines (toll run --baseline NAME):"].map(str::to_owned));
        lines.extend(baseline::lines(&listing.baselines));
    }
    lines
}
