//! Which runs of a damaged store can still be read, and copying them to a new one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use toll_core::run::{RunStatus, StoredRun};

use super::{Store, StoreError, open, read, signature, write};

/// What of a store can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Whether all that was kept can be read.
    pub is_whole: bool,
    /// Runs that can be read.
    pub runs: Vec<SurveyedRun>,
    /// Numbers of runs that cannot.
    pub lost_runs: Vec<i64>,
    /// Baselines that can be read and stand for a run that can.
    pub baselines: usize,
    /// What is wrong, in words.
    pub damages: Vec<String>,
}

/// A run that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedRun {
    pub id: i64,
    /// Its experiment.
    pub experiment: String,
    /// When it was made, RFC 3339 in UTC.
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
    /// Tells what of a store can be read, and leaves it as it is.
    pub fn survey(path: &Path) -> Result<Survey, StoreError> {
        Self::read(path)?.survey_with(|_| Ok(()))
    }

    /// Copies the runs that can be read to a new store, under the numbers that
    /// they had, and leaves the old store as it is.
    pub fn salvage(path: &Path, new: &Path) -> Result<Survey, StoreError> {
        let damaged = Self::read(path)?;
        let mut store = Self::create_new(new)?;
        let copied = store
            .copy_from(&damaged)
            .and_then(|survey| match survey.runs.is_empty() {
                true => Err(StoreError::Lost.at(path)),
                false => Ok(survey),
            });
        if copied.is_err() {
            drop(store);
            // Made above: half a store would be taken for a whole one.
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

    /// Reads all that there is, and hands over each run that can be read.
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
            match read::load(&self.connection, id) {
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

/// The runs of a store that can be read.
pub(super) fn readable(connection: &Connection) -> Vec<i64> {
    let ids = run_ids(connection).into_iter();
    ids.filter(|id| read::load(connection, *id).is_ok())
        .collect()
}

/// The numbers of all runs of which there is a trace, from both ends of the
/// table, and by what refers to them.
fn run_ids(connection: &Connection) -> BTreeSet<i64> {
    [
        "SELECT id FROM runs ORDER BY id",
        "SELECT id FROM runs ORDER BY id DESC",
        "SELECT id FROM runs ORDER BY uid",
        "SELECT DISTINCT run_id FROM trials",
        "SELECT seq FROM sqlite_sequence WHERE name = 'runs'",
    ]
    .into_iter()
    .flat_map(|sql| column(connection, sql).unwrap_or_default())
    .filter(|id| *id > 0)
    .collect()
}

/// The whole numbers that a query gives until it fails.
fn column(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.map_while(Result::ok).collect())
}

/// What is wrong, without what to do.
fn reason(error: &StoreError) -> String {
    match error.kind() {
        StoreError::Damaged { what, .. } => what.clone(),
        other => other.to_string(),
    }
}
