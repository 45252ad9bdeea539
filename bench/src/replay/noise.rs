//! The noise of a machine's values, which simulations take from stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use toll_core::claim::emulated_treatments;
use toll_core::claim::emulation::is_time;
use toll_core::plan::of_claim;
use toll_core::run::{StoredRun, TrialRecord, TrialState};
use toll_core::spec::{Experiment, Test, builtin};
use toll_host::store::Store;
use toll_host::store::exchange::RunDocument;
use toll_stats::median;

/// Resolution of a stored deviation, in natural logarithms.
const STEP: f64 = 1e-5;

/// The recorded noise of the built-in experiments on one machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Noise {
    /// CPU, hypervisor and kernel of the machine.
    pub machine: String,
    pub runs: Vec<RecordedRun>,
}

/// One run, reduced to the data that its claims need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedRun {
    pub experiment: String,
    pub profile: String,
    /// Time at which the run was made, as RFC 3339 in UTC.
    pub date: String,
    pub blocks: usize,
    /// Time of a block in seconds, including the time between its trials.
    pub block_s: f64,
    pub treatments: Vec<RecordedTreatment>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedTreatment {
    pub levels: BTreeMap<String, String>,
    pub is_twin: bool,
    pub metrics: BTreeMap<String, Series>,
}

/// One metric of one treatment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    pub median: f64,
    /// For each block, the logarithm of the trial's value over the median, in hundred-thousandths.
    /// `None` without a value above 0.
    deviations: Vec<Option<i32>>,
}

impl Series {
    fn new(values: &[Option<f64>]) -> Option<Self> {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        if known.is_empty() {
            return None;
        }
        let median = median(&known);
        let deviation = |value: &f64| {
            let log = (value / median).ln();
            log.is_finite().then(|| (log / STEP).round() as i32)
        };
        let deviations = values.iter().map(|one| one.as_ref().and_then(deviation));
        Some(Self {
            median,
            deviations: deviations.collect(),
        })
    }

    /// Returns the deviations by block, as natural logarithms.
    pub fn deviations(&self) -> impl Iterator<Item = Option<f64>> {
        let all = self.deviations.iter();
        all.map(|one| one.map(|steps| f64::from(steps) * STEP))
    }
}

impl Noise {
    /// Reads a noise file, a run that `toll export --json` wrote, or a store.
    ///
    /// # Errors
    /// If the file cannot be read, or has no run of a built-in experiment.
    pub fn read(path: &Path) -> Result<Self, String> {
        let cannot = |why: String| format!("cannot read noise from {}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
        let noise = if bytes.starts_with(b"SQLite format 3\0") {
            Self::of_store(path)
        } else {
            Self::of_json(&String::from_utf8_lossy(&bytes))
        };
        let noise = noise.map_err(cannot)?;
        if noise.runs.is_empty() {
            Err(cannot(
                "it has no run of a built-in experiment; make one with toll run NAME".into(),
            ))
        } else {
            Ok(noise)
        }
    }

    /// Parses the text of a noise file, or an exported run.
    pub fn of_json(text: &str) -> Result<Self, String> {
        if let Ok(noise) = serde_json::from_str(text) {
            return Ok(noise);
        }
        let stored = RunDocument::parse(text).map_err(|error| error.to_string())?;
        let mut noise = Self::default();
        noise.add_run(&stored);
        Ok(noise)
    }

    fn of_store(path: &Path) -> Result<Self, String> {
        let store = Store::read(path).map_err(|error| error.to_string())?;
        let mut noise = Self::default();
        for (run, trials) in store.runs().map_err(|error| error.to_string())? {
            if trials > 0 && has_claims(&run.experiment) {
                let stored = store.load(run.id).map_err(|error| error.to_string())?;
                noise.add_run(&stored);
            }
        }
        Ok(noise)
    }

    fn add_run(&mut self, stored: &StoredRun) {
        let machine = &stored.run.machine;
        self.machine = format!(
            "{}, virtualisation {}, Linux {}",
            machine.cpu_model, machine.virtualization, machine.kernel_release
        );
        self.runs.extend(RecordedRun::from_run(stored));
    }

    /// Adds the runs of `other`. For each experiment and profile, keeps only the run with the
    /// most blocks.
    pub fn add(&mut self, other: Self) {
        if !other.machine.is_empty() {
            self.machine = other.machine;
        }
        self.runs.extend(other.runs);
        self.runs.sort_by_key(|run| std::cmp::Reverse(run.blocks));
        let mut seen = BTreeSet::new();
        self.runs
            .retain(|run| seen.insert((run.experiment.clone(), run.profile.clone())));
        self.runs.sort_by_key(|run| {
            let is_it = |one: &builtin::Builtin| one.name == run.experiment;
            let place = builtin::BUILTINS.iter().position(is_it);
            (place, run.profile.clone())
        });
    }

    /// Returns the run whose noise represents an experiment in a profile. That is the run of the
    /// same profile if it has enough blocks, and otherwise the run with the most blocks.
    pub fn representative(&self, experiment: &str, profile: &str) -> Option<&RecordedRun> {
        const ENOUGH: usize = 8;
        let runs = self.runs.iter().filter(|run| run.experiment == experiment);
        runs.max_by_key(|run| {
            let is_own = run.profile == profile && run.blocks >= ENOUGH;
            (is_own, run.blocks)
        })
    }

    /// Returns the recorded time of a block of an experiment in a profile, in seconds.
    pub fn block_s(&self, experiment: &str, profile: &str) -> Option<f64> {
        let is_it = |run: &&RecordedRun| run.experiment == experiment && run.profile == profile;
        Some(self.runs.iter().find(is_it)?.block_s)
    }

    /// Returns the noise as JSON, with one treatment per line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string(self).expect("it is plain data");
        let text = text.replace("{\"levels\"", "\n{\"levels\"");
        text.replace("{\"experiment\"", "\n{\"experiment\"") + "\n"
    }
}

impl RecordedRun {
    fn from_run(stored: &StoredRun) -> Option<Self> {
        let (first, last) = (stored.trials.first()?, stored.trials.last()?);
        let blocks = last.block as usize + 1;
        let time = |trial: &TrialRecord| trial.started_at.parse::<jiff::Timestamp>().ok();
        let (begin, end) = (time(first)?, time(last)?);
        let ns = end.duration_since(begin).as_nanos() as f64 + last.wall_ns as f64;
        let ran = stored.treatments.iter().filter(|one| one.skipped.is_none());
        // The last block may be incomplete.
        let blocks_run = stored.trials.len() as f64 / ran.count().max(1) as f64;
        let metrics = metrics_of(&stored.experiment);
        // Times in an emulated guest are those of the translator, and most belong to a single
        // trial. The treatment is kept without times, so that it does not borrow noise from a
        // treatment outside a guest.
        let emulated = emulated_treatments(stored);
        let metrics_of = |treatment: usize| -> BTreeSet<String> {
            let is_kept = |metric: &&String| {
                !(emulated.contains(&treatment) && is_time(&stored.experiment, metric))
            };
            metrics.iter().filter(is_kept).cloned().collect()
        };
        let needed: BTreeSet<usize> = stored
            .experiment
            .claims
            .iter()
            .flat_map(|claim| of_claim(&stored.experiment, &claim.test(), &stored.treatments))
            .collect();
        let is_needed =
            |index: usize, twin_of: Option<usize>| twin_of.is_some() || needed.contains(&index);
        let kept = stored.treatments.iter();
        let kept = kept.filter(|one| is_needed(one.index, one.twin_of));
        let treatments = kept.filter_map(|treatment| {
            let metrics = series(
                stored,
                treatment.index,
                blocks,
                &metrics_of(treatment.index),
            );
            let is_known = !metrics.is_empty() || emulated.contains(&treatment.index);
            let levels = treatment.levels.iter();
            is_known.then(|| RecordedTreatment {
                levels: levels
                    .map(|(name, level)| (name.clone(), level.text.clone()))
                    .collect(),
                is_twin: treatment.twin_of.is_some(),
                metrics,
            })
        });
        Some(Self {
            experiment: stored.run.experiment.clone(),
            profile: stored.run.profile.clone(),
            date: stored.run.created_at.clone(),
            blocks,
            block_s: (ns / 1e6 / blocks_run).round() / 1e3,
            treatments: treatments.collect(),
        })
    }
}

fn series(
    stored: &StoredRun,
    treatment: usize,
    blocks: usize,
    metrics: &BTreeSet<String>,
) -> BTreeMap<String, Series> {
    let mut values: BTreeMap<&String, Vec<Option<f64>>> = BTreeMap::new();
    let trials = stored.trials.iter();
    for trial in trials.filter(|trial| trial.treatment == treatment) {
        let recorded = trial.samples.iter();
        for (metric, samples) in recorded.filter(|(metric, _)| metrics.contains(*metric)) {
            if trial.state == TrialState::Completed && !samples.is_empty() {
                let column = values.entry(metric).or_insert_with(|| vec![None; blocks]);
                column[trial.block as usize] = Some(median(samples));
            }
        }
    }
    let series = values.into_iter();
    series
        .filter_map(|(metric, values)| Some((metric.clone(), Series::new(&values)?)))
        .collect()
}

/// Returns whether there is a built-in experiment of this name with claims.
fn has_claims(name: &str) -> bool {
    builtin::find(name).is_some_and(|builtin| builtin.toml.contains("[[claim]]"))
}

/// Returns the metrics that the claims of an experiment are about.
fn metrics_of(experiment: &Experiment) -> BTreeSet<String> {
    let mut metrics = BTreeSet::new();
    for claim in &experiment.claims {
        match claim.test() {
            Test::Ratio(contrast) => drop(metrics.insert(contrast.metric.to_owned())),
            Test::Derived(id) => {
                for derived in experiment.derived.iter().filter(|one| one.id == id) {
                    metrics.insert(derived.metric.clone());
                    let further = derived.kind.further_metrics().into_iter().flatten();
                    metrics.extend(further.map(str::to_owned));
                }
            }
            Test::Never(_) => {}
        }
    }
    metrics
}
