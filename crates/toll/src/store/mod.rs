//! The recorder: runs, treatments and trials in one SQLite file.
//!
//! Every finished trial is committed before the next begins, so that a run
//! killed at any moment keeps all of them.
//!
//! Architecture invariant: only this module speaks SQL.

mod baseline;
mod boot;
mod error;
pub mod exchange;
pub mod record;
mod rows;
mod schema;
mod trial;

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::plan::Treatment;
use crate::spec::Experiment;

pub use baseline::Baseline;
pub use boot::{BootRecord, PartnerRecord};
pub use error::StoreError;
pub use record::{RunRecord, RunStatus};
pub use schema::SCHEMA_VERSION;
pub use trial::{TrialRecord, TrialState};

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

/// All that is kept of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The run itself.
    pub run: RunRecord,
    /// Its experiment, with profile and command-line levels applied.
    pub experiment: Experiment,
    /// Its treatments, in plan order.
    pub treatments: Vec<Treatment>,
    /// Its trials, in the order in which they ran.
    pub trials: Vec<TrialRecord>,
    /// The boots of its guests, in order.
    pub boots: Vec<BootRecord>,
}

impl Store {
    /// Opens a store, making it and its directory if they are missing.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a store, or is a newer version's.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let at = |error: StoreError| error.at(path);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| at(error.into()))?;
        }
        let connection = Connection::open(path).map_err(|error| at(error.into()))?;
        schema::prepare(&connection).map_err(at)?;
        Ok(Self { connection })
    }

    /// Opens a store that is there already.
    ///
    /// # Errors
    /// As [`Self::open`], and if there is none.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        match path.exists() {
            true => Self::open(path),
            false => Err(StoreError::Empty.at(path)),
        }
    }

    /// Makes a store that is gone with the program.
    ///
    /// # Errors
    /// If memory is short.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        schema::prepare(&connection)?;
        Ok(Self { connection })
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
        rows::update_experiment(&self.connection, run_id, experiment)
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
        let transaction = self.connection.transaction()?;
        let id = rows::insert_run(&transaction, run, experiment)?;
        for treatment in treatments {
            rows::insert_treatment(&transaction, id, treatment)?;
        }
        transaction.commit()?;
        Ok(id)
    }

    /// Adds one finished trial.
    ///
    /// # Errors
    /// If the store cannot be written, or the trial is there already.
    pub fn add_trial(&mut self, run_id: i64, trial: &TrialRecord) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        rows::insert_trial(&transaction, run_id, trial)?;
        transaction
            .prepare_cached("UPDATE runs SET updated_at = ?2 WHERE id = ?1")?
            .execute(params![run_id, trial.started_at])?;
        transaction.commit()?;
        Ok(())
    }

    /// Adds one boot of a guest, when it is over.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn add_boot(&mut self, run_id: i64, boot: &BootRecord) -> Result<(), StoreError> {
        boot::insert(&self.connection, run_id, boot)
    }

    /// Lets a name stand for a run when others of its experiment are compared,
    /// and gives the number of the run that it stood for before.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn save_baseline(&mut self, baseline: &Baseline) -> Result<Option<i64>, StoreError> {
        baseline::save(&mut self.connection, baseline)
    }

    /// All baselines by name, then by experiment.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>, StoreError> {
        baseline::all(&self.connection)
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
        baseline::remove(&self.connection, name, experiment)
    }

    /// The treatments of a run, in plan order.
    ///
    /// # Errors
    /// If its rows cannot be understood.
    pub fn treatments(&self, run_id: i64) -> Result<Vec<Treatment>, StoreError> {
        rows::treatments(&self.connection, run_id)
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
        self.connection.execute(
            "UPDATE treatments SET skipped = ?3 WHERE run_id = ?1 AND treatment = ?2",
            params![run_id, treatment, reason],
        )?;
        Ok(())
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
        self.connection.execute(
            "UPDATE runs SET status = ?2, stop_reason = ?3 WHERE id = ?1",
            params![run_id, rows::status_name(status), reason],
        )?;
        Ok(())
    }

    /// All runs, oldest first, with the number of their trials.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn runs(&self) -> Result<Vec<(RunRecord, usize)>, StoreError> {
        rows::all_runs(&self.connection)
    }

    /// The id of the run that a text names: its number, `last`, or the start
    /// of its `uid`, at least 4 digits.
    ///
    /// # Errors
    /// If there is no such run, or several.
    pub fn find_run(&self, name: &str) -> Result<i64, StoreError> {
        let missing = || StoreError::NoSuchRun(name.to_owned());
        if name == "last" {
            let last: Option<i64> =
                self.connection
                    .query_row("SELECT max(id) FROM runs", [], |row| row.get(0))?;
            return last.ok_or_else(missing);
        }
        if let Ok(id) = name.parse::<i64>()
            && let Some(id) = self
                .connection
                .query_row("SELECT id FROM runs WHERE id = ?1", [id], |row| row.get(0))
                .optional()?
        {
            return Ok(id);
        }
        if name.len() < 4 || !name.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(missing());
        }
        let mut statement = self
            .connection
            .prepare("SELECT id FROM runs WHERE uid LIKE ?1 || '%' LIMIT 2")?;
        let found: Vec<i64> = statement
            .query_map([name], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        match found.as_slice() {
            [only] => Ok(*only),
            [] => Err(missing()),
            _ => Err(StoreError::Ambiguous(name.to_owned())),
        }
    }

    /// The newest run that is not finished, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn last_unfinished(&self) -> Result<Option<i64>, StoreError> {
        Ok(self.connection.query_row(
            "SELECT max(id) FROM runs WHERE status = 'unfinished' AND imported = 0",
            [],
            |row| row.get(0),
        )?)
    }

    /// Everything kept of a run.
    ///
    /// # Errors
    /// If there is no such run, or its rows cannot be understood.
    pub fn load(&self, run_id: i64) -> Result<StoredRun, StoreError> {
        let (run, experiment) = rows::run(&self.connection, run_id)?
            .ok_or_else(|| StoreError::NoSuchRun(run_id.to_string()))?;
        let treatments = rows::treatments(&self.connection, run_id)?;
        let trials = rows::trials(&self.connection, run_id)?;
        if let Some(trial) = trials
            .iter()
            .find(|trial| trial.treatment >= treatments.len())
        {
            return Err(StoreError::Corrupt(format!(
                "run {run_id} has a trial of treatment {}, which is not there",
                trial.treatment
            )));
        }
        Ok(StoredRun {
            run,
            experiment,
            treatments,
            trials,
            boots: boot::all(&self.connection, run_id)?,
        })
    }

    /// Adds a run made elsewhere, whole.
    ///
    /// # Errors
    /// If the store cannot be written, or has the run already.
    pub fn import(&mut self, stored: &StoredRun) -> Result<i64, StoreError> {
        let known: Option<i64> = self
            .connection
            .query_row(
                "SELECT id FROM runs WHERE uid = ?1",
                [&stored.run.uid],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(id) = known {
            return Err(StoreError::AlreadyThere(id));
        }
        let transaction = self.connection.transaction()?;
        let id = rows::insert_run(&transaction, &stored.run, &stored.experiment)?;
        for treatment in &stored.treatments {
            rows::insert_treatment(&transaction, id, treatment)?;
        }
        for trial in &stored.trials {
            rows::insert_trial(&transaction, id, trial)?;
        }
        for boot in &stored.boots {
            boot::insert(&transaction, id, boot)?;
        }
        transaction.commit()?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
