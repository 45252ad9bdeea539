//! `toll why`: explains why two treatments differ; also for `toll run --why`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use toll_document::Document;
use toll_driver::stores;
use toll_driver::{WorkDirectories, most_different, profile, trees_of};
use toll_driver::{consent, measuring_lock};
use toll_host::store::Store;
use toll_report::terminal;
use toll_system::{Failure, exit_code_of, output};

use crate::claim::Run;

#[derive(Debug, Args)]
pub(super) struct WhyArguments {
    /// Run to explain: its number, the start of its identity, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Label of the treatment to explain, as in `toll show` [default: the one that
    /// differs most from its reference]
    #[arg(long, value_name = "LABEL")]
    treatment: Option<String>,
    /// Label of the treatment to compare with [default: the run's reference]
    #[arg(long, value_name = "LABEL")]
    reference: Option<String>,
    /// Show stored explanations, and run nothing
    #[arg(long, conflicts_with_all = ["treatment", "reference", "run_foreign_commands", "work_dir", "foreign_dir"])]
    stored: bool,
    /// Start the programs of a run even if you did not start that run on this machine;
    /// without this option, its programs are only listed
    #[arg(long)]
    run_foreign_commands: bool,
    #[command(flatten)]
    directories: WorkDirectories,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

pub(super) fn run(arguments: &WhyArguments, path: &Path) -> anyhow::Result<ExitCode> {
    if arguments.stored {
        let store = Store::read(path)?;
        let run = stores::load_run(&store, &arguments.run)?;
        if run.analysis.explanations.is_empty() {
            bail!(Failure::Usage(format!(
                "cannot show why: run {} was not profiled; leave out --stored",
                run.stored.run.id
            )));
        }
        show(
            arguments,
            &run,
            &(0..run.analysis.explanations.len()).collect::<Vec<_>>(),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = measuring_lock::take()?;
    let mut store = Store::open_existing(path)?;
    let run = stores::load_run(&store, &arguments.run)?;
    consent::of_run(&mut store, &run.stored, arguments.run_foreign_commands)?;
    let _trees = trees_of(&run.stored)?;
    let (id, pair) = (run.stored.run.id, pair(arguments, &run)?);
    let interrupted = profile(
        &mut store,
        run.stored,
        pair,
        &arguments.directories,
        arguments.quiet,
    )?;
    if let Some(signal) = interrupted {
        output::note("interrupted; no part of the profile is kept");
        return Ok(exit_code_of(signal));
    }
    let run = stores::load_run(&store, &id.to_string())?;
    let is_of_pair = |index: &usize| {
        let one = &run.analysis.explanations[*index];
        pair.contains(&one.slower) && pair.contains(&one.faster)
    };
    let shown: Vec<usize> = (0..run.analysis.explanations.len())
        .filter(is_of_pair)
        .collect();
    show(arguments, &run, &shown)?;
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &WhyArguments, run: &Run, shown: &[usize]) -> anyhow::Result<()> {
    let explanations: Vec<_> = shown
        .iter()
        .map(|index| &run.analysis.explanations[*index])
        .collect();
    if arguments.json {
        output::json(&serde_json::json!({ "run": run.stored.run.id, "explanations": explanations }))
    } else {
        let texts = explanations.into_iter().map(terminal::explanation);
        output::result(&Document::sections(texts))
    }
}

/// Finds the two treatments to explain: the named ones, or the pair that differs most.
fn pair(arguments: &WhyArguments, run: &Run) -> anyhow::Result<[usize; 2]> {
    let found = |label: &str| match run.stored.treatments.iter().find(|one| one.label == label) {
        Some(treatment) => Ok(treatment.index),
        None => {
            let labels: Vec<&str> = run
                .stored
                .treatments
                .iter()
                .map(|one| one.label.as_str())
                .collect();
            bail!(Failure::Usage(format!(
                "cannot explain {label}: no treatment of the run has that label; labels are {}",
                labels.join(", ")
            )))
        }
    };
    let treatment = arguments.treatment.as_deref().map(found).transpose()?;
    let reference = arguments.reference.as_deref().map(found).transpose()?;
    let pair = match (treatment, reference) {
        (Some(treatment), Some(reference)) => [treatment, reference],
        (treatment, reference) => {
            let fits = |[one, other]: &[usize; 2]| {
                treatment.is_none_or(|wanted| wanted == *one)
                    && reference.is_none_or(|wanted| wanted == *other)
            };
            most_different(run, fits)?
        }
    };
    if pair[0] == pair[1] {
        bail!(Failure::Usage(
            "cannot compare a treatment with itself; name two different ones".into()
        ));
    }
    Ok(pair)
}
