//! `toll baseline`: names of runs that other runs are compared with.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;
use toll_driver::baseline::{lines, missing, parse_name, save};
use toll_driver::stores;
use toll_host::store::{Baseline, Store};
use toll_system::output;

#[derive(Debug, Args)]
pub(super) struct BaselineVerb {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the baselines
    List(ListArguments),
    /// Give a run a name, by which other runs of its experiment are compared with it
    Save(SaveArguments),
    /// Remove a baseline; its runs stay
    Remove(RemoveArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SaveArguments {
    /// Name of the baseline
    #[arg(value_parser = parse_name)]
    name: String,
    /// Run: its number, the start of its identity, or `last`
    #[arg(default_value = "last")]
    run: String,
}

#[derive(Debug, Args)]
struct RemoveArguments {
    /// Name of the baseline
    #[arg(value_parser = parse_name)]
    name: String,
    /// Remove it only for this experiment
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
}

pub(super) fn run(arguments: &BaselineVerb, store: &Path) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::List(arguments) => list(arguments, store)?,
        Action::Save(arguments) => {
            let mut store = Store::open_existing(store)?;
            let id = store.find_run(&arguments.run)?;
            output::line(&save(&mut store, &arguments.name, id)?)?;
        }
        Action::Remove(arguments) => remove(arguments, store)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(arguments: &ListArguments, store: &Path) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Listing {
        baselines: Vec<Baseline>,
    }
    let baselines = match stores::read_if_any(store)? {
        Some(store) => store.baselines()?,
        None => Vec::new(),
    };
    if arguments.json {
        return output::json(&Listing { baselines });
    }
    output::listing(&if baselines.is_empty() {
        vec![
            "No baselines yet: `toll run --save-baseline NAME` or `toll baseline save NAME` makes \
             one."
                .to_owned(),
        ]
    } else {
        lines(&baselines)
    })
}

fn remove(arguments: &RemoveArguments, store: &Path) -> anyhow::Result<()> {
    let mut store = Store::open_existing(store)?;
    let experiment = arguments.experiment.as_deref();
    if store.remove_baseline(&arguments.name, experiment)? == 0 {
        return Err(missing(&store, &arguments.name, experiment)?);
    }
    output::line(&format!("removed baseline {}", arguments.name))
}
