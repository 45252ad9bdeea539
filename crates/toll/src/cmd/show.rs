//! `toll show`: shows a stored run.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_driver::baseline::{Against, BaselineArguments};
use toll_driver::gate::GateArguments;
use toll_driver::over_runs::over_runs;
use toll_host::store::exchange::RunDocument;
use toll_host::store::{Store, StoreError};
use toll_report::terminal;
use toll_system::{Failure, output};

use crate::claim::Run;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Run to show: its number, the start of its identity, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Show this metric instead of the experiment's; several may be given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metric: Vec<String>,
    /// Print one JSON document, including every sample
    #[arg(long)]
    json: bool,
    /// Print the kernel logs of the run's guests, boot by boot
    #[arg(long, conflicts_with_all = ["json", "metric"])]
    kernel_log: bool,
    /// Instead, judge each claim over all comparable runs of the experiment, on the same machine,
    /// kernel and workload; their evidence is multiplied. Conditions of --fail-on still apply to
    /// the single run. RUN may also be the name of an experiment, for its newest run
    #[arg(long, conflicts_with = "kernel_log")]
    all_runs: bool,
    #[command(flatten)]
    against: BaselineArguments,
    #[command(flatten)]
    gate: GateArguments,
}

pub(super) fn run(arguments: &ShowArguments, store: &Path) -> anyhow::Result<ExitCode> {
    let path = store;
    let store = Store::read(path)?;
    let run = load(arguments, &store)?;
    let run = run.in_metrics(&arguments.metric).map_err(Failure::Usage)?;
    let experiment = &run.stored.experiment;
    let against = Against::find(&arguments.against, path, &[experiment])?;
    against.check_other(&run.stored.run)?;
    let gate = &arguments.gate;
    gate.check(&[experiment], &[against.why_no_ratio(experiment)])?;
    against.check_work(gate, path, &[experiment])?;
    let runs = [run];
    let compared = against.compare(path, &runs)?;
    let [run] = &runs;
    show(arguments, &store, run)?;
    for text in &compared.texts {
        if arguments.json {
            output::write_aside(None, &text.show(output::error_style()))?
        } else {
            output::further_result(text)?
        }
    }
    gate.judge(&[&run.analysis], &compared.ratios)?;
    Ok(ExitCode::SUCCESS)
}

fn load(arguments: &ShowArguments, store: &Store) -> anyhow::Result<Run> {
    match store.find_run(&arguments.run) {
        Err(StoreError::NoSuchRun(name)) if arguments.all_runs => {
            let newest = store.newest_of(&name)?;
            let newest = newest.ok_or(StoreError::NoSuchRun(name))?;
            Ok(store.load(newest)?.into())
        }
        found => Ok(store.load(found?)?.into()),
    }
}

fn show(arguments: &ShowArguments, store: &Store, run: &Run) -> anyhow::Result<()> {
    if arguments.all_runs {
        if run.analysis.verdicts.is_empty() {
            bail!(Failure::Usage(format!(
                "cannot show claims over all runs: {} has none",
                run.stored.run.experiment
            )));
        }
        let over = over_runs(store, &run.stored)?;
        if arguments.json {
            output::json(&over)?
        } else {
            output::result(&terminal::over_runs(run, &over))?
        }
    } else if arguments.kernel_log {
        if run.stored.boots.is_empty() {
            bail!(Failure::Usage(format!(
                "cannot show kernel logs: run {} booted no guest",
                run.stored.run.id
            )));
        }
        output::result(&terminal::kernel_logs(&run.stored.boots))?;
    } else if arguments.json {
        output::json(&RunDocument::new(run.stored.clone(), run.analysis.clone()))?;
    } else {
        output::result(&terminal::summary(run))?;
    }
    Ok(())
}
