//! Finds or makes the run on this machine that a submission is compared with.

use std::path::Path;

use anyhow::bail;
use toll_core::claim::Run;
use toll_core::claim::between::Side;
use toll_core::claim::work::different_work;
use toll_core::spec::Experiment;
use toll_driver::consent::started_by;
use toll_driver::differences::machine_differences;
use toll_driver::measuring_lock;
use toll_driver::stores;
use toll_driver::{Launch, Launched, Purpose, command_line, launch, random_seed};
use toll_host::environment::kernel;
use toll_host::store::{RunStatus, Store, StoredRun};
use toll_host::trial::{SessionEnd, TimeLimit};
use toll_system::{Failure, output};

use crate::arguments::GradeArguments;
use crate::grading::{HereRun, has_factors_of};

/// Differences that are no causes: they exist between any two runs, or do not concern the machine.
const NO_CAUSES: [&str; 2] = ["hostname", "root"];

/// Finds or makes runs on this machine.
pub struct RunsHere<'a> {
    arguments: &'a GradeArguments,
    path: &'a Path,
    /// The run that the user named.
    named: Option<StoredRun>,
    /// Experiments measured so far, with their runs.
    measured: Vec<(Experiment, StoredRun)>,
}

impl<'a> RunsHere<'a> {
    pub fn new(arguments: &'a GradeArguments, path: &'a Path) -> anyhow::Result<Self> {
        let load = |name: &String| -> anyhow::Result<StoredRun> {
            let store = Store::read(path)?;
            let stored = store.load(store.find_run(name)?)?;
            let id = stored.run.id;
            let why_not = match stored.run.status {
                _ if stored.run.imported => {
                    "was measured elsewhere; name a run of this machine".into()
                }
                RunStatus::Unfinished => {
                    format!("is unfinished; continue it with `toll run --resume {id}`")
                }
                RunStatus::Complete => return Ok(stored),
            };
            bail!(Failure::Usage(format!(
                "cannot compare with run {id}: it {why_not}"
            )))
        };
        Ok(Self {
            arguments,
            path,
            named: arguments.run.as_ref().map(load).transpose()?,
            measured: Vec::new(),
        })
    }

    /// Returns the run to compare a submission with, or the reason why there is none. `own` is the
    /// grader's copy of the submitted experiment.
    pub fn find(
        &mut self,
        submitted: &StoredRun,
        own: Option<&Experiment>,
        file: &str,
    ) -> anyhow::Result<Result<HereRun, String>> {
        let experiment = own.unwrap_or(&submitted.experiment);
        if own.is_some_and(|own| !has_factors_of(submitted, own)) {
            return Ok(Err("the submission varies something else".into()));
        }
        let found = match &self.named {
            Some(named) if named.run.uid == submitted.run.uid => {
                return Ok(Err(format!("run {} is the submitted one", named.run.id)));
            }
            Some(named) => Some(named.clone()),
            None if self.arguments.measure => {
                let origin = match (own, &self.arguments.experiment) {
                    (Some(_), Some(name)) => name,
                    _ => file,
                };
                Some(self.measure(experiment, origin)?)
            }
            None => self.newest(experiment, &submitted.run.uid)?,
        };
        let none = || {
            format!(
                "the store has no complete run of this machine that does the same work as {}; \
                 --measure makes one",
                experiment.name
            )
        };
        Ok(found
            .map(|stored| beside(stored, submitted))
            .ok_or_else(none))
    }

    /// Returns the newest complete run of this machine that does the same work.
    fn newest(&self, experiment: &Experiment, uid: &str) -> anyhow::Result<Option<StoredRun>> {
        let Some(store) = stores::read_if_any(self.path)? else {
            return Ok(None);
        };
        for (record, _) in store.runs()?.into_iter().rev() {
            let may_be = record.experiment == experiment.name
                && record.status == RunStatus::Complete
                && !record.imported
                && record.uid != uid;
            if may_be {
                let stored = store.load(record.id)?;
                if has_factors_of(&stored, experiment)
                    && different_work(&[experiment, &stored.experiment]).is_empty()
                {
                    return Ok(Some(stored));
                }
            }
        }
        Ok(None)
    }

    /// Measures an experiment, unless it was already measured for another file.
    fn measure(&mut self, experiment: &Experiment, origin: &str) -> anyhow::Result<StoredRun> {
        let mut experiment = experiment.clone();
        if let Some(budget) = self.arguments.time_budget {
            experiment.run.time_budget_s = budget.as_secs_f64();
        }
        if let Some((_, done)) = self.measured.iter().find(|(one, _)| *one == experiment) {
            return Ok(done.clone());
        }
        for line in started_by(&experiment, origin) {
            output::note(&line);
        }
        experiment.check_metric().map_err(Failure::Usage)?;
        for name in experiment.kernels() {
            kernel::require(&name).map_err(Failure::Usage)?;
        }
        let _lock = measuring_lock::take()?;
        let mut store = stores::open_store(self.path)?;
        let launched = launch(
            &mut store,
            Launch {
                experiment: experiment.clone(),
                seed: random_seed()?,
                directories: self.arguments.directories.clone(),
                command_line: command_line(),
                purpose: if self.arguments.quiet {
                    Purpose::Quiet
                } else {
                    Purpose::Shown { number: 1, of: 1 }
                },
                time_limit: TimeLimit::Fixed,
            },
        );
        let Launched { run_id, end } = launched?;
        if let SessionEnd::Interrupted(signal) = end? {
            output::note(&format!(
                "nothing was graded, because run {run_id} is unfinished; \
                 `toll run --resume {run_id}` continues it, and `toll grade --run {run_id}` then \
                 compares with it"
            ));
            bail!(Failure::Interrupted(signal));
        }
        let stored = store.load(run_id)?;
        self.measured.push((experiment, stored.clone()));
        Ok(stored)
    }
}

fn beside(stored: StoredRun, submitted: &StoredRun) -> HereRun {
    let sides = [Run::from(stored.clone()), Run::from(submitted.clone())];
    let mut differences = machine_differences(&sides.each_ref().map(Side::from));
    differences.retain(|one| !NO_CAUSES.contains(&one.what.as_str()));
    HereRun {
        stored,
        machine_differences: differences,
    }
}
