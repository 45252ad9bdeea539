//! The recorder: runs, treatments and trials in one SQLite file.
//!
//! Every finished trial is committed before the next begins, so that a run
//! killed at any moment keeps all of them.
//!
//! Architecture invariant: only this module speaks SQL.

mod baseline;
mod boot;
mod change;
mod error;
pub mod exchange;
mod find;
mod image;
mod log;
mod open;
mod rows;
mod salvage;
mod schema;
mod seal;

use std::path::PathBuf;

use rusqlite::Connection;

use crate::plan::Treatment;
use crate::spec::Experiment;

pub use baseline::Baseline;
pub use error::StoreError;
pub use salvage::{Survey, SurveyedRun};
pub use schema::SCHEMA_VERSION;
pub use toll_core::run::{
    BootRecord, PartnerRecord, RunRecord, RunStatus, StoredRun, TrialRecord, TrialState,
};

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// The file; `None` in memory.
    path: Option<PathBuf>,
}

impl Store {
    /// An outcome whose error names the store.
    fn named<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        match &self.path {
            Some(path) => outcome.map_err(|error| error.at(path)),
            None => outcome,
        }
    }

    /// Replaces the experiment of a run, for one that goes on with other limits.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn set_experiment(
        &mut self,
        run_id: i64,
        experiment: &Experiment,
    ) -> Result<(), StoreError> {
        let done = change::set_experiment(&mut self.connection, run_id, experiment);
        self.named(done)
    }

    /// Adds a run with its treatments; the record's `id` is ignored, and the
    /// new one returned.
    ///
    /// # Errors
    /// If the store cannot be written, or a run of this `uid` is there already.
    pub fn add_run(
        &mut self,
        run: &RunRecord,
        experiment: &Experiment,
        treatments: &[Treatment],
    ) -> Result<i64, StoreError> {
        let done = change::add_run(&mut self.connection, run, experiment, treatments);
        self.named(done)
    }

    /// Adds one finished trial.
    ///
    /// # Errors
    /// If the store cannot be written, or the trial is there already.
    pub fn add_trial(&mut self, run_id: i64, trial: &TrialRecord) -> Result<(), StoreError> {
        let done = change::add_trial(&mut self.connection, run_id, trial);
        self.named(done)
    }

    /// Adds one boot of a guest, when it is over.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn add_boot(&mut self, run_id: i64, boot: &BootRecord) -> Result<(), StoreError> {
        let done = change::add_boot(&mut self.connection, run_id, boot);
        self.named(done)
    }

    /// Lets a name stand for a run when others of its experiment are compared,
    /// and gives the number of the run that it stood for before.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn save_baseline(&mut self, baseline: &Baseline) -> Result<Option<i64>, StoreError> {
        let done = baseline::save(&mut self.connection, baseline);
        self.named(done)
    }

    /// All baselines by name, then by experiment.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>, StoreError> {
        self.named(baseline::all(&self.connection))
    }

    /// Forgets a baseline, of one experiment or of all, and tells how many runs
    /// it stood for. The runs stay.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn remove_baseline(
        &mut self,
        name: &str,
        experiment: Option<&str>,
    ) -> Result<usize, StoreError> {
        self.named(baseline::remove(&self.connection, name, experiment))
    }

    /// The treatments of a run, in plan order.
    ///
    /// # Errors
    /// If its rows cannot be understood.
    pub fn treatments(&self, run_id: i64) -> Result<Vec<Treatment>, StoreError> {
        self.named(rows::treatments(&self.connection, run_id))
    }

    /// Records that a treatment cannot run here, and why.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn skip_treatment(
        &mut self,
        run_id: i64,
        treatment: usize,
        reason: &str,
    ) -> Result<(), StoreError> {
        let done = change::skip_treatment(&mut self.connection, run_id, treatment, reason);
        self.named(done)
    }

    /// Records where a run stands.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn set_status(
        &mut self,
        run_id: i64,
        status: RunStatus,
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let done = change::set_status(&mut self.connection, run_id, status, reason);
        self.named(done)
    }

    /// All runs, oldest first, with the number of their trials.
    ///
    /// # Errors
    /// If the store cannot be read, or a run in it is damaged.
    pub fn runs(&self) -> Result<Vec<(RunRecord, usize)>, StoreError> {
        self.named(rows::all_runs(&self.connection))
    }

    /// The id of the run that a text names: its number, `last`, or the start
    /// of its `uid`, at least 4 digits.
    ///
    /// # Errors
    /// If there is no such run, or several.
    pub fn find_run(&self, name: &str) -> Result<i64, StoreError> {
        match find::run(&self.connection, name) {
            // What was not found says so itself.
            Err(error @ (StoreError::NoSuchRun(_) | StoreError::Ambiguous(_))) => Err(error),
            other => self.named(other),
        }
    }

    /// The newest run that is not finished, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn last_unfinished(&self) -> Result<Option<i64>, StoreError> {
        self.named(find::last_unfinished(&self.connection))
    }

    /// Everything kept of a run.
    ///
    /// # Errors
    /// If there is no such run, or its rows are damaged or not all there.
    pub fn load(&self, run_id: i64) -> Result<StoredRun, StoreError> {
        self.named(find::whole(&self.connection, run_id))
    }

    /// Adds a run made elsewhere, whole.
    ///
    /// # Errors
    /// If the store cannot be written, or has the run already.
    pub fn import(&mut self, stored: &StoredRun) -> Result<i64, StoreError> {
        match change::import(&mut self.connection, stored) {
            Err(error @ StoreError::AlreadyThere(_)) => Err(error),
            other => self.named(other),
        }
    }
}

#[cfg(test)]
mod tests;
