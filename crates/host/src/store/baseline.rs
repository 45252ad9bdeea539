//! Baselines: runs, saved under names, that other runs are compared with.

use rusqlite::{OptionalExtension, params};

use super::connection::Store;
use super::error::StoreError;

/// A run that others are compared with. A name can have one run for each experiment.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Baseline {
    pub name: String,
    /// Name of the experiment.
    pub experiment: String,
    pub run_id: i64,
    /// Time at which the baseline was saved, RFC 3339 in UTC.
    pub saved_at: String,
}

impl Store {
    /// Makes a run the baseline of its experiment under a name, and returns the
    /// number of the run that it replaces.
    pub fn save_baseline(&mut self, baseline: &Baseline) -> Result<Option<i64>, StoreError> {
        let Baseline {
            name,
            experiment,
            run_id,
            saved_at,
        } = baseline;
        self.change(|connection| {
            let sql = "SELECT run_id FROM baselines WHERE name = ?1 AND experiment = ?2";
            let replaced = connection.query_row(sql, [name, experiment], |row| row.get(0));
            let replaced = replaced.optional()?;
            connection.execute(
                "INSERT OR REPLACE INTO baselines (name, experiment, run_id, saved_at) \
                 VALUES (?1, ?2, ?3, ?4)",
                params![name, experiment, run_id, saved_at],
            )?;
            Ok(replaced)
        })
    }

    /// All baselines by name, then by experiment.
    pub fn baselines(&self) -> Result<Vec<Baseline>, StoreError> {
        let sql = "SELECT name, experiment, run_id, saved_at FROM baselines \
                   ORDER BY name, experiment";
        self.read_with(|connection| {
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(Baseline {
                    name: row.get(0)?,
                    experiment: row.get(1)?,
                    run_id: row.get(2)?,
                    saved_at: row.get(3)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Removes a baseline, of one experiment or of all, and returns how many were removed. The runs
    /// stay in the store.
    pub fn remove_baseline(
        &mut self,
        name: &str,
        experiment: Option<&str>,
    ) -> Result<usize, StoreError> {
        let sql = "DELETE FROM baselines WHERE name = ?1 AND (?2 IS NULL OR experiment = ?2)";
        self.change(|connection| Ok(connection.execute(sql, params![name, experiment])?))
    }
}
