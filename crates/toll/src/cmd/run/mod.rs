//! `toll run`

mod arguments;
mod dry;
mod launch;
mod select;

use std::path::Path;
use std::process::ExitCode;

use super::gate::{JudgedRatio, ratios_within, why_no_ratio};
use super::output::{Analysed, style};
use super::{Failure, export, output, report};
use crate::environment::paths;
use crate::report::{ReportedRun, terminal};
use crate::spec::Experiment;
use crate::store::exchange::RunDocument;
use crate::store::{RunStatus, Store};
use crate::trial::{RunLock, SessionEnd};

pub(super) use arguments::RunArguments;
pub(super) use launch::{Launch, Purpose, launch, random_seed, same_device};

/// Runs what the command line names, and shows what came out.
pub(super) fn run(arguments: &RunArguments, store_path: &Path) -> Result<ExitCode, Failure> {
    arguments.check()?;
    if arguments.resume.is_some() {
        return resume(arguments, store_path);
    }
    let mut experiments = select::experiments(arguments)?;
    let references: Vec<&Experiment> = experiments.iter().collect();
    check_gate(arguments, &references)?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    if arguments.dry_run {
        for experiment in &experiments {
            output::result(&dry::describe(experiment, seed)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    arguments.check_files(experiments.len())?;
    let _lock = RunLock::take(&paths::run_lock()).map_err(Failure::Runtime)?;
    let mut store = Store::open(store_path)?;
    launch::clear_leftovers();
    launch::warn_of_shared_device(store_path, arguments.work_dir.as_deref());
    let mut finished = Vec::new();
    let mut obstacles = Vec::new();
    let mut ending = Ending::Complete;
    let begin = std::time::Instant::now();
    let count = experiments.len();
    for (done, mut experiment) in experiments.drain(..).enumerate() {
        let name = experiment.name.clone();
        let elapsed_s = begin.elapsed().as_secs_f64();
        share_budget(arguments, &mut experiment, elapsed_s, count - done);
        let launched = launch(
            &mut store,
            Launch {
                experiment,
                seed,
                work_dir: arguments.work_dir.clone(),
                command_line: command_line(),
                purpose: arguments.purpose(),
            },
        );
        // What was measured before an error is shown all the same.
        match launched {
            Ok(launched) => {
                finished.push(Analysed::load(&store, &launched.run_id.to_string())?);
                ending = Ending::of(launched.end);
            }
            Err(failure) => ending = Ending::Failed(failure),
        }
        // Of several, one that cannot run here is told and passed over.
        if let (Ending::Failed(Failure::Prerequisite(why)), true) = (&ending, count > 1) {
            output::note(&format!("skipped: {name}: {why}"));
            obstacles.push(std::mem::replace(&mut ending, Ending::Complete));
        }
        if !matches!(ending, Ending::Complete) {
            break;
        }
    }
    if obstacles.len() == count {
        ending = obstacles.swap_remove(0);
    }
    conclude(arguments, &finished, ending)
}

/// How the last of some runs ended.
enum Ending {
    Complete,
    Interrupted(i32),
    Failed(Failure),
}

impl Ending {
    fn of(end: Result<SessionEnd, Failure>) -> Self {
        match end {
            Ok(SessionEnd::Complete(_)) => Self::Complete,
            Ok(SessionEnd::Interrupted(signal)) => Self::Interrupted(signal),
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// A time budget given on the command line is for all experiments together:
/// each gets an equal part of what is left.
fn share_budget(
    arguments: &RunArguments,
    experiment: &mut Experiment,
    elapsed_s: f64,
    experiments_left: usize,
) {
    if let Some(total) = arguments.time_budget {
        let left = (total.as_secs_f64() - elapsed_s).max(0.001);
        experiment.run.time_budget_s = left / experiments_left as f64;
    }
}

fn resume(arguments: &RunArguments, store_path: &Path) -> Result<ExitCode, Failure> {
    let _lock = RunLock::take(&paths::run_lock()).map_err(Failure::Runtime)?;
    let mut store = Store::open(store_path)?;
    let id = match arguments.resume.as_deref() {
        Some(name) if !name.is_empty() => store.find_run(name)?,
        _ => store.last_unfinished()?.ok_or_else(|| {
            Failure::Usage("cannot resume: no run is unfinished; see `toll list`".into())
        })?,
    };
    let mut stored = store.load(id)?;
    if stored.run.imported {
        return Err(Failure::Usage(format!(
            "cannot resume run {id}: it was made on another machine"
        )));
    }
    if stored.run.status == RunStatus::Complete && !arguments.sets_limits() {
        return Err(Failure::Usage(format!(
            "cannot resume run {id}: it is complete ({}); give it more with --time-budget, \
             --max-runs or --target-ci, or start a new one",
            stored.run.stop_reason.unwrap_or_default()
        )));
    }
    arguments.check_files(1)?;
    check_gate(arguments, &[&stored.experiment])?;
    if arguments.sets_limits() {
        arguments.apply_limits(&mut stored.experiment);
        stored.experiment.check().map_err(Failure::Usage)?;
        store.set_experiment(id, &stored.experiment)?;
        store.set_status(id, RunStatus::Unfinished, None)?;
    }
    launch::clear_leftovers();
    let purpose = arguments.purpose();
    let launched = launch::resume(&mut store, stored, arguments.work_dir.as_deref(), purpose)?;
    let finished = vec![Analysed::load(&store, &id.to_string())?];
    conclude(arguments, &finished, Ending::of(launched.end))
}

/// Shows and writes what came out.
fn conclude(
    arguments: &RunArguments,
    runs: &[Analysed],
    ending: Ending,
) -> Result<ExitCode, Failure> {
    let has_trials = |run: &&Analysed| !run.stored.trials.is_empty();
    if !runs.iter().any(|run| has_trials(&run)) {
        return ended(ending);
    }
    let reported: Vec<ReportedRun<'_>> = runs.iter().map(Analysed::reported).collect();
    let page = match arguments.no_html {
        true => None,
        false => Some(report::write_page(&reported, arguments.html.as_deref())?),
    };
    if let [only] = runs {
        export::write(
            only,
            arguments.export_json.as_deref(),
            arguments.export_csv.as_deref(),
            arguments.export_markdown.as_deref(),
        )?;
    }
    if let Some(directory) = &arguments.plots {
        let paths = report::write_plots(&reported, directory)?;
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
        output::json(&serde_json::json!({ "runs": documents }))?;
    } else {
        output::result(&terminal_text(&reported))?;
    }
    if let Some(page) = page.filter(|page| page.as_os_str() != "-") {
        let told = format!("report: {}", page.display());
        match arguments.json {
            true => output::note(&told),
            false => output::result(&told)?,
        }
    }
    match ended(ending)? {
        code if code != ExitCode::SUCCESS => Ok(code),
        _ => judge(arguments, runs),
    }
}

fn check_gate(arguments: &RunArguments, experiments: &[&Experiment]) -> Result<(), Failure> {
    let reasons: Vec<_> = experiments.iter().map(|one| why_no_ratio(one)).collect();
    arguments.gate.check(experiments, &reasons)
}

/// Applies `--fail-on` to finished runs.
fn judge(arguments: &RunArguments, runs: &[Analysed]) -> Result<ExitCode, Failure> {
    let analyses: Vec<_> = runs.iter().map(|run| &run.analysis).collect();
    let ratios: Vec<JudgedRatio> = analyses
        .iter()
        .flat_map(|analysis| ratios_within(analysis))
        .collect();
    arguments.gate.judge(&analyses, &ratios)?;
    Ok(ExitCode::SUCCESS)
}

fn ended(ending: Ending) -> Result<ExitCode, Failure> {
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

/// The exit status by which a program tells that a signal ended it.
pub(super) fn exit_code_of(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

fn terminal_text(runs: &[ReportedRun<'_>]) -> String {
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

/// The command line as it was typed, for the record.
fn command_line() -> String {
    let words = std::env::args_os().map(|word| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+%@".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
