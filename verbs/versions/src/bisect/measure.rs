//! The runs of a search: one run for each stage and set of versions, extended as needed.

use std::collections::BTreeMap;

use anyhow::bail;
use toll_core::reason::Reason;
use toll_core::spec::adhoc::{AdhocCommands, experiment};
use toll_core::spec::quoting::put_path;
use toll_core::spec::{BLOCKS_MAX, Experiment, Level, LevelOverride, Shell};
use toll_driver::consent;
use toll_driver::failure;
use toll_driver::{Launch, Launched, Purpose, WorkDirectories, command_line};
use toll_driver::{launch, random_seed, resume};
use toll_host::store::{Store, StoredRun, TrialState};
use toll_host::trial::{SessionEnd, TimeLimit};
use toll_stats::median;
use toll_system::Failure;
use toll_system::private_directory::LockFile;

use super::arguments::{BisectArguments, TREE};
use super::kernels;
use crate::repository::{Repository, Version};
use crate::search::{Block, Stage};

/// Name of the experiments of a search.
const NAME: &str = "bisect";
/// Seconds after which no new block begins. The time is long, since the search sets the number of
/// blocks.
const TIME_BUDGET_S: f64 = 12.0 * 3600.0;

type Key = (Stage, Vec<usize>);

/// Result of a measurement.
pub enum Measured {
    Blocks(Vec<Block>),
    /// A version without a successful trial, and the reason.
    Failed(usize, String),
    Interrupted,
}

pub struct Measurements<'a> {
    arguments: &'a BisectArguments,
    repository: &'a Repository,
    versions: &'a [Version],
    store: &'a mut Store,
    title: String,
    /// Runs of this search, by this process or an earlier one.
    runs: BTreeMap<Key, i64>,
    /// Number of blocks of each run that were already returned.
    taken: BTreeMap<Key, usize>,
    /// Locks the built versions against other searches.
    _lock: LockFile,
}

impl<'a> Measurements<'a> {
    pub fn new(
        arguments: &'a BisectArguments,
        repository: &'a Repository,
        versions: &'a [Version],
        store: &'a mut Store,
    ) -> anyhow::Result<Self> {
        let (first, last) = (&versions[0], &versions[versions.len() - 1]);
        let build = arguments.build.as_deref();
        let directory = repository.directory_of(first, build);
        let directory = directory.map_err(anyhow::Error::msg)?;
        let built = directory.parent().and_then(|one| one.file_name());
        let lock = repository.lock_built(build).map_err(anyhow::Error::msg)?;
        let kernels = if arguments.kernel { "kernels, " } else { "" };
        let title = format!(
            "{}..{} by {}: {} ({kernels}{})",
            first.short(),
            last.short(),
            arguments.metric(),
            arguments.command,
            built.unwrap_or_default().display()
        );
        let mut measurements = Self {
            arguments,
            repository,
            versions,
            store,
            title,
            runs: BTreeMap::new(),
            taken: BTreeMap::new(),
            _lock: lock,
        };
        measurements.find_runs()?;
        Ok(measurements)
    }

    /// Finds the runs of an earlier search with the same arguments.
    fn find_runs(&mut self) -> anyhow::Result<()> {
        for (run, _) in self.store.runs()? {
            let is_of_this = run.experiment == NAME && run.title == self.title && !run.imported;
            if let Some(stage) = stage_of(&run.question).filter(|_| is_of_this) {
                let places = self.places(&self.store.load(run.id)?);
                self.runs.insert((stage, places), run.id);
            }
        }
        Ok(())
    }

    /// The versions of a run's treatments, in the order of the treatments.
    fn places(&self, stored: &StoredRun) -> Vec<usize> {
        let place = |name: &str| {
            let mut all = self.versions.iter();
            all.position(|one| self.level(one) == name)
        };
        let factor = if self.arguments.kernel {
            "kernel"
        } else {
            "command"
        };
        let treatments = stored.treatments.iter();
        let levels = treatments.filter_map(|treatment| treatment.levels.get(factor));
        levels.filter_map(|level| place(&level.text)).collect()
    }

    /// The level of the factor that represents a version.
    fn level(&self, version: &Version) -> String {
        if self.arguments.kernel {
            kernels::name(version).into()
        } else {
            version.short().to_owned()
        }
    }

    /// Makes the experiment that compares versions in this number of blocks.
    pub fn experiment(&self, places: &[usize], blocks: u32) -> anyhow::Result<Experiment> {
        let build = self.arguments.build.as_deref();
        let command = |place: &usize| -> anyhow::Result<String> {
            let version = &self.versions[*place];
            let directory = self.repository.directory_of(version, build);
            let directory = directory.map_err(anyhow::Error::msg)?;
            let directory = directory.display().to_string();
            let put = put_path(&self.arguments.command, TREE, &directory, &Shell::Auto);
            Ok(put.map_err(Failure::Usage)?)
        };
        let commands = places.iter().map(command).collect::<Result<_, _>>()?;
        let names = places
            .iter()
            .map(|place| self.level(&self.versions[*place]));
        let commands = if self.arguments.kernel {
            AdhocCommands {
                commands: vec![self.arguments.command.clone()],
                overrides: vec![
                    of_guest("kernel", names),
                    of_guest("accelerator", ["icount".to_owned()]),
                ],
                in_guest: true,
                ..AdhocCommands::default()
            }
        } else {
            AdhocCommands {
                commands,
                names: names.collect(),
                ..AdhocCommands::default()
            }
        };
        let mut experiment = experiment(&commands, "standard")?;
        experiment.name = NAME.into();
        experiment.title.clone_from(&self.title);
        experiment.without_twin = true;
        experiment.compare_in(&[self.arguments.metric().to_owned()]);
        let run = &mut experiment.run;
        (run.min_blocks, run.max_blocks) = (blocks, blocks);
        run.time_budget_s = TIME_BUDGET_S;
        experiment.check().map_err(Failure::Usage)?;
        experiment.check_metric().map_err(Failure::Usage)?;
        Ok(experiment)
    }

    /// Whether the store has at least this many blocks that were not returned yet.
    pub fn are_stored(
        &self,
        stage: Stage,
        places: &[usize],
        blocks: usize,
    ) -> anyhow::Result<bool> {
        let key = (stage, places.to_vec());
        let taken = self.taken.get(&key).copied().unwrap_or_default();
        let stored = self.stored(&key)?;
        Ok(stored.is_some_and(|run| self.complete(&run, places).len() >= taken + blocks))
    }

    /// Returns blocks that were not returned before: stored blocks, then new blocks.
    pub fn measure(
        &mut self,
        stage: Stage,
        places: &[usize],
        blocks: usize,
    ) -> anyhow::Result<Measured> {
        let key = (stage, places.to_vec());
        let taken = self.taken.get(&key).copied().unwrap_or_default();
        let wanted = taken + blocks;
        let mut stored = self.stored(&key)?;
        let done = stored
            .as_ref()
            .map_or(0, |run| self.complete(run, places).len());
        if done < wanted {
            let launched = self.extend(&key, stored, wanted)?;
            self.runs.insert(key.clone(), launched.run_id);
            match launched.end {
                Ok(SessionEnd::Interrupted(_)) => return Ok(Measured::Interrupted),
                Err(error) if failure::signal(&error).is_some() => {
                    return Ok(Measured::Interrupted);
                }
                // The trials show below which version failed, and why.
                Ok(_) => {}
                Err(error) if failure::is_of_one_experiment(&error) => {}
                Err(error) => return Err(error),
            }
            stored = self.stored(&key)?;
        }
        let Some(run) = stored else {
            bail!("cannot find the run that was just made");
        };
        let complete = self.complete(&run, places);
        if complete.len() <= taken {
            return self.failed(&run, places);
        }
        let new: Vec<Block> = complete.into_iter().skip(taken).take(blocks).collect();
        self.taken.insert(key, taken + new.len());
        Ok(Measured::Blocks(new))
    }

    fn stored(&self, key: &Key) -> anyhow::Result<Option<StoredRun>> {
        let run = self.runs.get(key);
        Ok(run.map(|id| self.store.load(*id)).transpose()?)
    }

    /// Starts a run, or continues it, up to a number of blocks.
    fn extend(
        &mut self,
        (stage, places): &Key,
        stored: Option<StoredRun>,
        blocks: usize,
    ) -> anyhow::Result<Launched> {
        let blocks = u32::try_from(blocks)?.min(BLOCKS_MAX);
        let mut experiment = self.experiment(places, blocks)?;
        experiment.question = words(*stage);
        let directories = WorkDirectories::default();
        let Some(mut stored) = stored else {
            let seed = random_seed()?;
            let launching = Launch {
                experiment,
                seed,
                directories,
                command_line: command_line(),
                purpose: Purpose::Aside,
                time_limit: TimeLimit::Fixed,
            };
            return launch(self.store, launching);
        };
        stored.experiment = experiment;
        // The run may be signed, whoever started it: its commands are those of this command line.
        consent::sign_by_own_key(self.store)?;
        self.store.reopen(stored.run.id, &stored.experiment)?;
        resume(self.store, stored, &directories, Purpose::Aside)
    }

    /// The blocks in which all versions have a value, as logarithms.
    fn complete(&self, run: &StoredRun, places: &[usize]) -> Vec<Block> {
        let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
        for trial in &run.trials {
            let samples = trial.samples.get(self.arguments.metric());
            let value = samples
                .filter(|all| !all.is_empty())
                .map(|all| median(all).ln());
            let is_completed = trial.state == TrialState::Completed;
            if let Some(value) = value.filter(|value| is_completed && value.is_finite()) {
                let block = blocks.entry(trial.block).or_default();
                block.push((places[trial.treatment], value));
            }
        }
        let blocks = blocks.into_values();
        blocks.filter(|block| block.len() == places.len()).collect()
    }

    /// Finds a version without a value, and the reason.
    fn failed(&self, run: &StoredRun, places: &[usize]) -> anyhow::Result<Measured> {
        let metric = self.arguments.metric();
        let of = |treatment: usize| {
            run.trials
                .iter()
                .filter(move |one| one.treatment == treatment)
        };
        for (treatment, place) in places.iter().enumerate() {
            let skipped = run.treatments[treatment].skipped.as_ref();
            let skipped = skipped.map(Reason::to_string);
            let message = skipped.or_else(|| of(treatment).find_map(|one| one.message.clone()));
            if let Some(message) = message {
                return Ok(Measured::Failed(*place, message));
            }
        }
        bail!(Failure::Usage(format!(
            "cannot compare by {metric}: no trial has a value above 0; see `toll show {}`",
            run.run.id
        )))
    }
}

fn of_guest(name: &str, levels: impl IntoIterator<Item = String>) -> LevelOverride {
    LevelOverride {
        name: name.to_owned(),
        levels: levels.into_iter().map(|text| Level::new(&text)).collect(),
        is_size: false,
    }
}

/// The question of a run. A later search recognizes the stage of the run by it.
fn words(stage: Stage) -> String {
    match stage {
        Stage::Ends => "Do the ends differ?".into(),
        Stage::Search => "Which end does the commit between the ends resemble?".into(),
        Stage::Confirmation(attempt) => {
            format!(
                "Does the commit differ from the one before it? ({})",
                attempt + 1
            )
        }
    }
}

fn stage_of(question: &str) -> Option<Stage> {
    let confirmations = (0..crate::search::CONFIRMATIONS).map(Stage::Confirmation);
    let mut all = [Stage::Ends, Stage::Search]
        .into_iter()
        .chain(confirmations);
    all.find(|stage| words(*stage) == question)
}
