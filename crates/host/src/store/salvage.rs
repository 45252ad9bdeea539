//! Finds the runs of a damaged store that can still be read, and copies them to a new store.

use std::fs;
use std::path::Path;

use serde::Serialize;
use toll_core::run::{RunStatus, StoredRun};

use super::connection::Store;
use super::error::StoreError;
use super::readable::run_ids;
use super::{open, rows, signature, write};

/// The readable content of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Whether everything in the store can be read.
    pub is_whole: bool,
    /// Runs that can be read.
    pub runs: Vec<SurveyedRun>,
    /// Numbers of runs that cannot be read.
    pub lost_runs: Vec<i64>,
    /// Number of readable baselines whose run is readable, too.
    pub baselines: usize,
    /// Descriptions of the damage.
    pub damages: Vec<String>,
}

/// A run that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedRun {
    pub id: i64,
    /// Name of the run's experiment.
    pub experiment: String,
    /// When the run was made, RFC 3339 in UTC.
    pub created_at: String,
    pub status: RunStatus,
    pub trials: usize,
    pub samples: usize,
}

impl From<&StoredRun> for SurveyedRun {
    fn from(stored: &StoredRun) -> Self {
        let trials = stored.trials.iter();
        Self {
            id: stored.run.id,
            experiment: stored.run.experiment.clone(),
            created_at: stored.run.created_at.clone(),
            status: stored.run.status,
            trials: stored.trials.len(),
            samples: trials
                .flat_map(|one| one.samples.values())
                .map(Vec::len)
                .sum(),
        }
    }
}

impl Store {
    /// Finds what can be read of a store, and leaves it unchanged.
    pub fn survey(path: &Path) -> Result<Survey, StoreError> {
        Self::read(path)?.survey_with(|_| Ok(()))
    }

    /// Copies the runs that can be read to a new store, under their
    /// old numbers, and leaves the old store unchanged.
    pub fn salvage(path: &Path, new: &Path) -> Result<Survey, StoreError> {
        let damaged = Self::read(path)?;
        let mut store = Self::create_new(new)?;
        let copied = store.copy_from(&damaged).and_then(|survey| {
            if survey.runs.is_empty() {
                Err(StoreError::Lost.at(path))
            } else {
                Ok(survey)
            }
        });
        if copied.is_err() {
            drop(store);
            // This call made the file. A partial store would be taken for a whole one.
            let _ = fs::remove_file(new);
        }
        copied
    }

    fn copy_from(&mut self, damaged: &Self) -> Result<Survey, StoreError> {
        let survey = self.change(|connection| {
            damaged.survey_with(|run| {
                let id = write::insert_whole(connection, Some(run.run.id), run)?;
                signature::copy(&damaged.connection, connection, id)
            })
        })?;
        for baseline in damaged.baselines().unwrap_or_default() {
            if survey.runs.iter().any(|run| run.id == baseline.run_id) {
                self.save_baseline(&baseline)?;
            }
        }
        Ok(survey)
    }

    /// Reads everything, and passes each run that can be read to `keep`.
    fn survey_with(
        &self,
        mut keep: impl FnMut(&StoredRun) -> Result<(), StoreError>,
    ) -> Result<Survey, StoreError> {
        let mut damages: Vec<String> = open::check_pages(&self.connection)
            .err()
            .iter()
            .map(reason)
            .collect();
        let (mut runs, mut lost_runs) = (Vec::<SurveyedRun>::new(), Vec::new());
        for id in run_ids(&self.connection) {
            match rows::load(&self.connection, id) {
                Ok(run) => {
                    keep(&run)?;
                    runs.push((&run).into());
                }
                Err(error) => {
                    damages.push(reason(&error));
                    lost_runs.push(id);
                }
            }
        }
        let is_read = |id: i64| runs.iter().any(|run| run.id == id);
        let baselines = match self.baselines() {
            Ok(all) => all.iter().filter(|one| is_read(one.run_id)).count(),
            Err(error) => {
                damages.push(format!("baselines: {}", reason(&error)));
                0
            }
        };
        Ok(Survey {
            is_whole: damages.is_empty(),
            runs,
            lost_runs,
            baselines,
            damages,
        })
    }
}

/// The cause of an error, without the remedy.
fn reason(error: &StoreError) -> String {
    match error.kind() {
        StoreError::Damaged { what, .. } => what.clone(),
        other => other.to_string(),
    }
}
