//! Runs experiments one after another, and shows each when it ends.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use toll_core::claim::model::Outcome;
use toll_core::claim::{Run, blocks_needed, too_few_blocks};
use toll_core::plan::Plan;
use toll_core::spec::{Experiment, WorkloadKind};
use toll_host::environment::work_trees::WorkTrees;
use toll_host::store::{RunStatus, Store, StoredRun};
use toll_host::trial::{Forecast, RunLock, TimeLimit, missing_kernels};
use toll_report::terminal::NotRun;
use toll_report::words;
use toll_system::{Failure, output};

use crate::arguments::RunArguments;
use crate::baseline::Against;
use crate::conclude::{Conclusion, Ending};
use crate::explaining::explain;
use crate::kernel_builds;
use crate::launch::{self, Launch, launch, random_seed};
use crate::{consent, failure, measuring_lock};
use crate::{dry, select, stores};

/// Runs the experiments that the command line names, and shows the results.
pub fn run(arguments: &RunArguments, store_path: &Path) -> anyhow::Result<ExitCode> {
    if arguments.resuming.resume.is_some() {
        return resume(arguments, store_path);
    }
    run_all(arguments, store_path, select::experiments(arguments)?, None)
}

/// Runs some experiments and shows the results. Takes the lock on measuring unless it is
/// `held`.
pub fn run_all(
    arguments: &RunArguments,
    store_path: &Path,
    experiments: Vec<Experiment>,
    held: Option<RunLock>,
) -> anyhow::Result<ExitCode> {
    let all: Vec<&Experiment> = experiments.iter().collect();
    let against = against(arguments, store_path, &all)?;
    let seed = arguments.new.options.seed.map_or_else(random_seed, Ok)?;
    if !arguments.results.quiet && arguments.time_limit(experiments.len()) != TimeLimit::OrGivenUp {
        let all = experiments.iter();
        all.for_each(|experiment| warn_of_few_blocks(experiment, seed));
    }
    if arguments.new.dry_run {
        for experiment in &experiments {
            output::listing(&dry::describe(experiment, seed, &arguments.directories)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    arguments
        .results
        .check_files(experiments.len(), &experiments[0])?;
    let _lock = held.map_or_else(|| take_lock(arguments), Ok)?;
    let mut store = stores::open_store(store_path)?;
    launch::clear_leftovers();
    if !arguments.results.quiet && experiments.iter().any(measures_work_files) {
        launch::warn_of_shared_device(store_path, arguments.directories.work_dir.as_deref());
    }
    let mut conclusion = Conclusion::new(arguments, store_path, &against, experiments.len());
    let ending = measure(arguments, &mut store, experiments, seed, &mut conclusion)?;
    conclusion.finish(ending)
}

fn take_lock(arguments: &RunArguments) -> anyhow::Result<RunLock> {
    measuring_lock::take_or_wait(arguments.wait, "wait for it, or add --wait")
}

/// Runs experiments one after another, and shows each when it ends.
fn measure(
    arguments: &RunArguments,
    store: &mut Store,
    experiments: Vec<Experiment>,
    seed: u64,
    conclusion: &mut Conclusion<'_>,
) -> anyhow::Result<Ending> {
    let mut obstacles = Vec::new();
    let mut ending = Ending::Complete;
    let begin = std::time::Instant::now();
    let count = experiments.len();
    for (done, mut experiment) in experiments.into_iter().enumerate() {
        let name = experiment.name.clone();
        let elapsed_s = begin.elapsed().as_secs_f64();
        share_budget(arguments, &mut experiment, elapsed_s, count - done);
        if arguments.new.guests.build_kernels
            && let Some(signal) = build_kernels(&experiment, seed)
        {
            ending = Ending::Interrupted(signal);
            break;
        }
        let time_limit = arguments.time_limit(count);
        let launched = launch(
            store,
            Launch {
                experiment,
                seed,
                directories: arguments.directories.clone(),
                command_line: command_line(),
                purpose: arguments.results.purpose(done + 1, count),
                time_limit,
            },
        );
        // Results from before an error are still shown.
        match launched {
            Ok(launched) => {
                let ended = Ending::from_session(launched.end);
                ending = explain(arguments, store, launched.run_id, ended);
                let run = stores::load_run(store, &launched.run_id.to_string())?;
                match no_time(&run).filter(|_| time_limit == TimeLimit::OrGivenUp) {
                    Some(not_run) => conclusion.pass_over(not_run),
                    None => conclusion.add(run, &ending),
                }
            }
            Err(error) => {
                ending = match failure::signal(&error) {
                    Some(signal) if conclusion.has_runs() => Ending::Interrupted(signal),
                    _ => Ending::Failed(error),
                }
            }
        }
        // Among several experiments, one that cannot run is reported and passed over.
        if let Ending::Failed(why) = &ending
            && failure::is_of_one_experiment(why)
            && count > 1
        {
            conclusion.pass_over(NotRun {
                experiment: name,
                why: why.to_string(),
                claims: 0,
            });
            obstacles.push(std::mem::replace(&mut ending, Ending::Complete));
        }
        if !matches!(ending, Ending::Complete) {
            break;
        }
    }
    Ok(with_obstacles(ending, obstacles, count))
}

/// Returns why a run ended without a chance of a verdict, with the command that continues it with
/// enough time. `None` if the run had a chance.
fn no_time(run: &Run) -> Option<NotRun> {
    let StoredRun {
        run: record,
        experiment,
        treatments,
        trials,
        boots,
        ..
    } = &run.stored;
    let forecast = Forecast::from_trials(experiment, treatments, trials, boots)?;
    let is_undecided = run.analysis.blocks < forecast.blocks as usize;
    let verdicts = run.analysis.verdicts.iter();
    let open = verdicts.filter(|one| one.outcome == Outcome::Undecided);
    let is_one = is_undecided && record.status == RunStatus::Complete;
    is_one.then(|| NotRun {
        experiment: record.experiment.clone(),
        why: format!(
            "its budget of {} s is too short: {} blocks, the fewest for a verdict, take {} s; toll run \
             --resume {} --time-budget {}min",
            experiment.run.time_budget_s,
            forecast.blocks,
            forecast.time.as_secs(),
            record.id,
            forecast.budget_minutes()
        ),
        claims: open.count(),
    })
}

/// Whether the work directory's own file system is part of what is measured.
fn measures_work_files(experiment: &Experiment) -> bool {
    let kind = experiment.workload.kind;
    kind != WorkloadKind::Command && kind.has("fs")
}

/// Returns how a command ends after several experiments, some of which could not run. The command
/// fails if one of these experiments failed, or if all experiments lack a prerequisite.
fn with_obstacles(ending: Ending, mut obstacles: Vec<Ending>, count: usize) -> Ending {
    let is_failure = |ending: &Ending| match ending {
        Ending::Failed(why) => !failure::is_prerequisite(why),
        _ => false,
    };
    let failed = obstacles.iter().position(is_failure);
    match (&ending, failed.or((obstacles.len() == count).then_some(0))) {
        (Ending::Complete, Some(place)) => obstacles.swap_remove(place),
        _ => ending,
    }
}

/// Builds the kernels that an experiment's guests lack. Returns the signal that interrupted a
/// build, if one did. If a build fails, the experiment itself reports what it cannot run.
fn build_kernels(experiment: &Experiment, seed: u64) -> Option<i32> {
    let plan = Plan::new(experiment, seed).ok()?;
    let missing = Vec::from_iter(missing_kernels(&plan));
    let say = |text: &str| {
        output::note(text);
        Ok(())
    };
    kernel_builds::build_all(&missing, None, &say).unwrap_or_else(|error| {
        output::note(&error.to_string());
        None
    })
}

/// Gives an experiment its part of the command line's time budget, which is for all
/// experiments together: an equal part of the remaining time.
fn share_budget(
    arguments: &RunArguments,
    experiment: &mut Experiment,
    elapsed_s: f64,
    experiments_left: usize,
) {
    if let Some(total) = arguments.limits.time_budget {
        let left = (total.as_secs_f64() - elapsed_s).max(0.001);
        experiment.run.time_budget_s = left / experiments_left as f64;
    }
}

/// Refuses options that fit no run of these experiments, before any time is spent. Baselines are
/// checked where runs begin, since only the store has them.
pub fn check(arguments: &RunArguments, experiments: &[&Experiment]) -> anyhow::Result<()> {
    arguments.explaining.check(experiments)?;
    check_gate(arguments, &Against::default(), experiments)
}

fn check_gate(
    arguments: &RunArguments,
    against: &Against,
    experiments: &[&Experiment],
) -> anyhow::Result<()> {
    let reasons = experiments.iter().map(|one| against.why_no_ratio(one));
    let reasons: Vec<Option<String>> = reasons.collect();
    arguments.gate.check(experiments, &reasons)
}

/// Finds the runs to compare with, and refuses conditions and questions that no run could answer.
fn against(
    arguments: &RunArguments,
    store: &Path,
    experiments: &[&Experiment],
) -> anyhow::Result<Against> {
    arguments.explaining.check(experiments)?;
    let against = Against::find(&arguments.against, store, experiments)?;
    check_gate(arguments, &against, experiments)?;
    against.check_work(&arguments.gate, store, experiments)?;
    Ok(against)
}

fn resume(arguments: &RunArguments, store_path: &Path) -> anyhow::Result<ExitCode> {
    arguments.limits.check()?;
    let _lock = take_lock(arguments)?;
    let mut store = stores::open_store(store_path)?;
    let id = match arguments.resuming.resume.as_deref() {
        Some(name) if !name.is_empty() => store.find_run(name)?,
        _ => store.last_unfinished()?.ok_or_else(|| {
            Failure::Usage(
                "cannot resume: no unfinished run has anything left that can succeed; see \
                 `toll list`"
                    .into(),
            )
        })?,
    };
    let mut stored = store.load(id)?;
    if !arguments.results.quiet {
        output::note(&resumed(&stored));
    }
    if stored.run.imported {
        bail!(Failure::Usage(format!(
            "cannot resume run {id}: it was made on another machine"
        )));
    }
    consent::of_run(&mut store, &stored, arguments.resuming.run_foreign_commands)?;
    let is_measured = stored.run.status == RunStatus::Complete && !arguments.limits.is_any_set();
    let is_explained = !arguments.explaining.why || !stored.profiles.is_empty();
    if is_measured && is_explained {
        let more = if arguments.explaining.why {
            format!("`toll why {id} --stored` shows why")
        } else {
            "give it more with --time-budget, --max-runs or --target-ci, or start a new one".into()
        };
        bail!(Failure::Usage(format!(
            "cannot resume run {id}: it is complete ({}); {more}",
            stored.run.stop_reason.unwrap_or_default()
        )));
    }
    let _trees = trees_of(&stored)?;
    arguments.results.check_files(1, &stored.experiment)?;
    let against = against(arguments, store_path, &[&stored.experiment])?;
    against.check_other(&stored.run)?;
    if arguments.limits.is_any_set() {
        arguments.apply_limits(&mut stored.experiment);
        stored.experiment.check().map_err(Failure::Usage)?;
        store.reopen(id, &stored.experiment)?;
    }
    launch::clear_leftovers();
    let ending = if is_measured {
        Ending::Complete
    } else {
        let purpose = arguments.results.purpose(1, 1);
        let launched = launch::resume(&mut store, stored, &arguments.directories, purpose)?;
        Ending::from_session(launched.end)
    };
    let ending = explain(arguments, &mut store, id, ending);
    let run = stores::load_run(&store, &id.to_string())?;
    let mut conclusion = Conclusion::new(arguments, store_path, &against, 1);
    conclusion.add(run, &ending);
    conclusion.finish(ending)
}

/// Holds the work trees of a run of `toll ci`. Refuses other trees than those that the run
/// measured.
pub fn trees_of(stored: &StoredRun) -> anyhow::Result<Option<WorkTrees>> {
    let trees = stored.experiment.trees.as_ref().map(WorkTrees::again);
    let trees = trees
        .transpose()
        .map_err(|why| Failure::Usage(format!("cannot continue run {}: {why}", stored.run.id)))?;
    Ok(trees)
}

/// Describes the run that is resumed, since the user may have named none.
fn resumed(stored: &StoredRun) -> String {
    let run = &stored.run;
    format!(
        "resuming run {} of {}, begun {}, with {}: {}",
        run.id,
        run.experiment,
        words::minute(&run.created_at),
        words::plural(stored.trials.len(), "trial"),
        run.title
    )
}

/// Warns, before any time is spent, if a run is too short to decide its questions.
fn warn_of_few_blocks(experiment: &Experiment, seed: u64) {
    let blocks = experiment.run.max_blocks as usize;
    let plan = Plan::new(experiment, seed);
    let needed = plan
        .ok()
        .and_then(|plan| blocks_needed(experiment, &plan.treatments));
    if let Some(needed) = needed.filter(|needed| blocks < *needed) {
        let few = match experiment.claim_family().next() {
            Some(_) => format!("deciding every claim takes {needed} blocks, not {blocks}"),
            None => too_few_blocks(blocks, needed),
        };
        output::note(&format!(
            "note: {}: {few} (--runs {needed}, or --min-runs)",
            experiment.name
        ));
    }
}

/// The command line as it was typed, for the record.
pub fn command_line() -> String {
    let words = std::env::args_os().map(|word| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+%@".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
