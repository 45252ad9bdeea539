//! Showing and writing what came out of some runs.

use std::path::Path;
use std::process::ExitCode;

use super::{RunArguments, exit_code_of, launch};
use crate::claim::Run;
use crate::cmd::baseline::{self, Against, Compared};
use crate::cmd::output::style;
use crate::cmd::{export, output, report};
use crate::report::terminal;
use crate::store::Store;
use crate::store::exchange::RunDocument;
use crate::trial::SessionEnd;

/// How the last of some runs ended.
pub(super) enum Ending {
    Complete,
    Interrupted(i32),
    Failed(anyhow::Error),
}

impl Ending {
    pub fn of(end: anyhow::Result<SessionEnd>) -> Self {
        match end {
            Ok(SessionEnd::Complete(_)) => Self::Complete,
            Ok(SessionEnd::Interrupted(signal)) => Self::Interrupted(signal),
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// Shows and writes what came out, and applies `--fail-on` to it.
pub(super) fn conclude(
    arguments: &RunArguments,
    store: &Path,
    against: &Against,
    runs: &[Run],
    ending: Ending,
) -> anyhow::Result<ExitCode> {
    // All is kept and put back; who asks again wants the end at once.
    launch::listen()?.let_signals_end();
    let has_trials = |run: &&Run| !run.stored.trials.is_empty();
    if !runs.iter().any(|run| has_trials(&run)) {
        return ended(ending);
    }
    let page = match arguments.no_html {
        true => None,
        false => Some(report::write_page(runs, arguments.html.as_deref())?),
    };
    // Told at the end, so that it keeps nothing else from being shown.
    let exported = match runs {
        [only] => export::write(only, &arguments.exports.files()),
        _ => Ok(()),
    };
    let compared = against.compare(store, runs)?;
    show(arguments, runs, &compared)?;
    if let Some(page) = page.filter(|page| page.as_os_str() != "-") {
        let told = format!("report: {}", page.display());
        match arguments.json {
            true => output::note(&told),
            false => output::result(&told)?,
        }
    }
    let code = ended(ending)?;
    exported?;
    if code == ExitCode::SUCCESS {
        judge(arguments, runs, &compared)?;
        save(arguments, store, runs)?;
    } else if arguments.save_baseline.is_some() {
        output::note("the baseline is not saved, since the run is not complete");
    }
    Ok(code)
}

/// Shows the runs, and how they compare with a baseline.
fn show(arguments: &RunArguments, runs: &[Run], compared: &Compared) -> anyhow::Result<()> {
    if let Some(directory) = &arguments.plots {
        let paths = report::write_plots(runs, directory)?;
        match arguments.json {
            true => output::note(&paths),
            false => output::result(&paths)?,
        }
    }
    if arguments.json {
        let documents: Vec<RunDocument> = runs
            .iter()
            .map(|run| RunDocument::new(run.stored.clone(), run.analysis.clone()))
            .collect();
        let mut document = serde_json::json!({ "runs": documents });
        if arguments.against.baseline.is_some() {
            document["comparisons"] = serde_json::json!(compared.comparisons);
        }
        output::json(&document)?;
    } else {
        output::result(&terminal_text(runs))?;
        for text in &compared.texts {
            output::result(&format!("{text}\n"))?;
        }
    }
    Ok(())
}

/// Applies `--fail-on`.
fn judge(arguments: &RunArguments, runs: &[Run], compared: &Compared) -> anyhow::Result<()> {
    let analyses: Vec<_> = runs.iter().map(|run| &run.analysis).collect();
    let judged = arguments.gate.judge(&analyses, &compared.ratios);
    if judged.is_err() && arguments.save_baseline.is_some() {
        // It would hide from the next run what this one was failed for.
        output::note("the baseline is not saved, since a condition of --fail-on is met");
    }
    judged
}

fn save(arguments: &RunArguments, store: &Path, runs: &[Run]) -> anyhow::Result<()> {
    let Some(name) = &arguments.save_baseline else {
        return Ok(());
    };
    let mut store = Store::open_existing(store)?;
    for run in runs {
        output::note(&baseline::save(&mut store, name, run.stored.run.id)?);
    }
    Ok(())
}

fn ended(ending: Ending) -> anyhow::Result<ExitCode> {
    match ending {
        Ending::Complete => Ok(ExitCode::SUCCESS),
        Ending::Failed(failure) => Err(failure),
        Ending::Interrupted(signal) => {
            output::note(
                "interrupted; everything measured so far is kept: `toll run --resume` goes on",
            );
            Ok(exit_code_of(signal))
        }
    }
}

fn terminal_text(runs: &[Run]) -> String {
    let style = style();
    let mut text = String::new();
    for run in runs {
        // A comparison of commands has no claims; its table is the result.
        if run.analysis.verdicts.is_empty() {
            text.push_str(&terminal::brief(run, style));
        } else {
            text.push_str(&terminal::verdict_table(std::slice::from_ref(run), style));
        }
        if let Some(plot) = terminal::small_plot(run, style) {
            text.push('\n');
            text.push_str(&plot);
        }
        if !run.analysis.advice.is_empty() {
            text.push('\n');
            text.push_str(&terminal::advice(run, style));
        }
        text.push('\n');
    }
    text
}
