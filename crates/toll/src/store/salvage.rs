//! What of a store can be read, damaged or not, and saving it in a new one.
//!
//! The store itself is only read, as a file, into memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::image::Image;
use super::log::{self, Log};
use super::rows::{self, KeptRun};
use super::{
    Baseline, BootRecord, RunStatus, Store, StoreError, StoredRun, TrialRecord, baseline, boot,
    change, schema, seal,
};
use crate::plan::{Plan, Treatment};

/// Highest number of a row that is looked for one by one.
const ROW_MAX: i64 = 10_000_000;

/// What of a store can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Whether all that was kept can be read.
    pub is_whole: bool,
    /// Runs that can be read, in whole or in part.
    pub runs: Vec<SurveyedRun>,
    /// Numbers of runs of which something is there, but not their record.
    pub lost_runs: Vec<i64>,
    /// Baselines that can be read and stand for a run that can.
    pub baselines: usize,
    /// What is wrong, in words.
    pub damages: Vec<String>,
}

/// What of a run can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedRun {
    /// Its number.
    pub id: i64,
    /// Its experiment.
    pub experiment: String,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// Whether it was complete before the damage.
    pub was_complete: bool,
    /// Trials that it had.
    pub trials: usize,
    /// Trials that can be read.
    pub readable_trials: usize,
    /// Samples in them.
    pub readable_samples: usize,
    /// Whether all of it can be read.
    pub is_whole: bool,
}

/// What was read of a store.
struct Wreck {
    survey: Survey,
    runs: Vec<StoredRun>,
    baselines: Vec<Baseline>,
}

impl Store {
    /// Tells what of a store can be read, and leaves it as it is.
    ///
    /// # Errors
    /// If the file cannot be read, or is another program's or a newer version's.
    pub fn survey(path: &Path) -> Result<Survey, StoreError> {
        let wreck = Wreck::read(path).map_err(|error| error.at(path))?;
        Ok(wreck.survey)
    }

    /// Writes what of a store can be read into a new one, under the numbers that
    /// it had, and leaves the store as it is. A run that is not complete any more
    /// becomes an unfinished one.
    ///
    /// # Errors
    /// As [`Self::survey`]; also if nothing can be read, a file is there already,
    /// or the new store cannot be written.
    pub fn salvage(path: &Path, new: &Path) -> Result<Survey, StoreError> {
        let wreck = Wreck::read(path).map_err(|error| error.at(path))?;
        if wreck.runs.is_empty() {
            return Err(StoreError::Lost.at(path));
        }
        let mut store = Self::create_new(new)?;
        wreck.write(&mut store).map_err(|error| {
            // Made above: half a store would be taken for a whole one.
            let _ = std::fs::remove_file(new);
            error.at(new)
        })?;
        Ok(wreck.survey)
    }
}

impl Wreck {
    /// Reads a store in each way that may lead to more than the one before.
    fn read(path: &Path) -> Result<Self, StoreError> {
        let log = Log::of(path)?;
        if !path.exists() && log.pages.is_empty() {
            return Err(StoreError::Empty);
        }
        let image = Image::read(path, &log)?;
        if image.is_blank() {
            return Err(StoreError::Blank);
        }
        let mut wreck = Self::by_either_first_page(image);
        if log.lost_commits > 0 {
            // The file may have got more of the log than is left of the log.
            let file = Image::read(path, &Log::default())?;
            wreck = better(wreck, Self::by_either_first_page(file));
        }
        let mut wreck = wreck?;
        let survey = &mut wreck.survey;
        if log.lost_commits > 0 {
            let damage = format!(
                "the log {} is damaged; changes after that, {} or more, are lost",
                log::path_of(path).display(),
                log.lost_commits
            );
            survey.damages.push(damage);
            survey.is_whole = false;
        }
        Ok(wreck)
    }

    /// Reads a store by its own first page, or by that of a new one.
    fn by_either_first_page(image: Image) -> Result<Self, StoreError> {
        let own = Self::of(image.clone());
        let is_whole = own.as_ref().is_ok_and(|wreck| wreck.survey.is_whole);
        let is_newer = matches!(own, Err(StoreError::Version(_)));
        if is_whole || (is_newer && image.has_beginning()) {
            return own;
        }
        let mut other = image;
        other.take_first_page(&first_page()?);
        let mut other = Self::of(other);
        if let Ok(wreck) = &mut other {
            let damage = "the first page is damaged, and was taken from a new store";
            wreck.survey.damages.push(damage.into());
            wreck.survey.is_whole = false;
        }
        better(own, other)
    }

    fn of(image: Image) -> Result<Self, StoreError> {
        let connection = image.open()?;
        let (application, version, _) = schema::head(&connection)?;
        if application != schema::APPLICATION_ID {
            return Err(StoreError::Foreign);
        }
        if !(1..=schema::SCHEMA_VERSION).contains(&version) {
            return Err(StoreError::Version(version));
        }
        let mut damages = structure(&connection);
        if version < schema::SCHEMA_VERSION {
            // In memory alone. What is damaged cannot be brought up to date.
            schema::prepare(&connection)?;
        }
        let reader = Reader::new(&connection);
        let (mut runs, mut surveyed, mut lost_runs) = (Vec::new(), Vec::new(), Vec::new());
        for id in &reader.run_ids {
            match reader.run(*id) {
                Ok(Some((stored, survey))) => {
                    runs.push(stored);
                    surveyed.push(survey);
                }
                Ok(None) => {}
                Err(error) => {
                    damages.push(reason(&error));
                    lost_runs.push(*id);
                }
            }
        }
        let baselines = reader.baselines(&runs, &mut damages);
        let is_whole = damages.is_empty() && surveyed.iter().all(|run| run.is_whole);
        Ok(Self {
            survey: Survey {
                is_whole,
                runs: surveyed,
                lost_runs,
                baselines: baselines.len(),
                damages,
            },
            runs,
            baselines,
        })
    }

    fn write(&self, store: &mut Store) -> Result<(), StoreError> {
        let transaction = store.connection.transaction()?;
        for run in &self.runs {
            // Numbers are given out in order, from the last one noted here.
            transaction.execute("DELETE FROM sqlite_sequence", [])?;
            let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?1)";
            transaction.execute(sql, [run.run.id - 1])?;
            change::insert_whole(&transaction, run)?;
        }
        transaction.commit()?;
        for baseline in &self.baselines {
            baseline::save(&mut store.connection, baseline)?;
        }
        Ok(())
    }
}

/// The first page of a new store.
fn first_page() -> Result<Vec<u8>, StoreError> {
    let mut store = Store::in_memory()?;
    let page_bytes: usize = store
        .connection
        .query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let data = store.connection.serialize("main")?;
    Ok(data[..page_bytes].to_vec())
}

/// The reading that found more, or else the first.
fn better(
    one: Result<Wreck, StoreError>,
    other: Result<Wreck, StoreError>,
) -> Result<Wreck, StoreError> {
    let found = |wreck: &Result<Wreck, StoreError>| -> (usize, usize) {
        let runs = wreck.as_ref().map_or(&[][..], |wreck| &wreck.survey.runs);
        let trials = runs.iter().map(|run| run.readable_trials);
        (trials.sum(), runs.len())
    };
    match found(&other) > found(&one) {
        true => other,
        false => one,
    }
}

/// What SQLite finds wrong with the pages.
fn structure(connection: &Connection) -> Vec<String> {
    let found = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA quick_check(5)")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    match found() {
        Ok(lines) if lines == ["ok"] => Vec::new(),
        Ok(lines) => lines.iter().map(|line| line.replace('\n', " ")).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// What is wrong, without what to do.
fn reason(error: &StoreError) -> String {
    match error.kind() {
        StoreError::Corrupt(what) => what.clone(),
        other => other.to_string(),
    }
}

/// Reads row by row, so that a damaged page costs what is on it and no more.
struct Reader<'a> {
    connection: &'a Connection,
    /// Runs of which there is a trace.
    run_ids: BTreeSet<i64>,
    trials: BTreeMap<i64, Vec<TrialRecord>>,
}

impl<'a> Reader<'a> {
    fn new(connection: &'a Connection) -> Self {
        let all = |statements: &[&str]| -> BTreeSet<i64> {
            let found = statements.iter().flat_map(|sql| column(connection, sql));
            found.filter(|id| (1..=ROW_MAX).contains(id)).collect()
        };
        // From both ends, and by the indices, which are pages of their own.
        let run_ids = all(&[
            "SELECT id FROM runs ORDER BY id",
            "SELECT id FROM runs ORDER BY id DESC",
            "SELECT id FROM runs ORDER BY uid",
            "SELECT run_id FROM treatments ORDER BY run_id, treatment",
            "SELECT run_id FROM treatments ORDER BY run_id DESC, treatment DESC",
            "SELECT run_id FROM trials ORDER BY run_id, block, treatment",
        ]);
        let trial_ids = all(&[
            "SELECT id FROM trials ORDER BY id",
            "SELECT id FROM trials ORDER BY id DESC",
            "SELECT id FROM trials ORDER BY run_id, block, treatment",
            "SELECT id FROM trials ORDER BY run_id DESC, block DESC, treatment DESC",
        ]);
        let mut trials: BTreeMap<i64, Vec<TrialRecord>> = BTreeMap::new();
        for id in 1..=trial_ids.last().copied().unwrap_or(0) {
            if let Ok((run_id, trial)) = rows::one_trial(connection, id) {
                trials.entry(run_id).or_default().push(trial);
            }
        }
        Self {
            connection,
            run_ids,
            trials,
        }
    }

    /// A run with what can be read of it; `None` if there is no sign that there
    /// was one.
    ///
    /// # Errors
    /// If there was one, and its record cannot be read.
    fn run(&self, id: i64) -> Result<Option<(StoredRun, SurveyedRun)>, StoreError> {
        let lost = || StoreError::Corrupt(format!("the record of run {id} is not there"));
        let KeptRun {
            mut record,
            experiment,
            counts,
        } = rows::run(self.connection, id)?.ok_or_else(lost)?;
        let (treatments, are_all_there) = self.treatments(id, counts.treatments);
        let treatments = match are_all_there {
            true => treatments,
            // The plan says again what they were; why one was skipped is lost.
            false => {
                let plan = Plan::new(&experiment, record.seed).map_err(StoreError::Corrupt)?;
                let mut planned = plan.treatments;
                for found in treatments {
                    let index = found.index;
                    if let Some(place) = planned.get_mut(index) {
                        *place = found;
                    }
                }
                planned
            }
        };
        let mut trials = self.trials.get(&id).cloned().unwrap_or_default();
        trials.retain(|trial| trial.treatment < treatments.len());
        trials.sort_by_key(|trial| (trial.block, trial.position));
        let boots = self.boots(id);
        let survey = SurveyedRun {
            id,
            experiment: record.experiment.clone(),
            created_at: record.created_at.clone(),
            was_complete: record.status == RunStatus::Complete,
            trials: counts.trials,
            readable_trials: trials.len(),
            readable_samples: trials
                .iter()
                .flat_map(|one| one.samples.values())
                .map(Vec::len)
                .sum(),
            is_whole: are_all_there
                && trials.len() == counts.trials
                && boots.len() == counts.boots
                && treatments.len() == counts.treatments,
        };
        if survey.readable_trials < survey.trials {
            let lost = survey.trials - survey.readable_trials;
            record.status = RunStatus::Unfinished;
            record.stop_reason = Some(format!("{lost} trials were lost with a damaged store"));
        }
        let stored = StoredRun {
            run: record,
            experiment,
            treatments,
            trials,
            boots,
        };
        Ok(Some((stored, survey)))
    }

    fn treatments(&self, run_id: i64, count: usize) -> (Vec<Treatment>, bool) {
        let sql = format!(
            "SELECT {} FROM treatments WHERE run_id = ?1 AND treatment = ?2",
            seal::TREATMENT
        );
        let one = |index: usize| -> Result<Treatment, StoreError> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(rusqlite::params![run_id, index])?;
            rows::treatment(rows.next()?.ok_or(StoreError::Blank)?)
        };
        let found: Vec<Treatment> = (0..count).filter_map(|index| one(index).ok()).collect();
        let are_all_there = found.len() == count;
        (found, are_all_there)
    }

    fn boots(&self, run_id: i64) -> Vec<BootRecord> {
        let sql = format!("SELECT {} FROM boots WHERE id = ?1", seal::BOOT);
        let one = |id: i64| -> Result<BootRecord, StoreError> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([id])?;
            boot::boot(rows.next()?.ok_or(StoreError::Blank)?)
        };
        let of_run = format!("SELECT id FROM boots WHERE run_id = {run_id} ORDER BY id");
        let ids = column(self.connection, &of_run);
        ids.into_iter().filter_map(|id| one(id).ok()).collect()
    }

    fn baselines(&self, runs: &[StoredRun], damages: &mut Vec<String>) -> Vec<Baseline> {
        let all = match baseline::unchecked(self.connection) {
            Ok(all) => all,
            Err(error) => {
                damages.push(format!("baselines: {}", reason(&error)));
                Vec::new()
            }
        };
        let mut found = Vec::new();
        for (one, seal) in all {
            match seal.check(|| format!("baseline {}", one.name)) {
                Ok(()) if runs.iter().any(|run| run.run.id == one.run_id) => found.push(one),
                Ok(()) => damages.push(format!("baseline {}: its run is lost", one.name)),
                Err(error) => damages.push(reason(&error)),
            }
        }
        found
    }
}

/// The whole numbers that a query gives until it fails.
fn column(connection: &Connection, sql: &str) -> Vec<i64> {
    let mut found = Vec::new();
    let Ok(mut statement) = connection.prepare(sql) else {
        return found;
    };
    let Ok(mut rows) = statement.query([]) else {
        return found;
    };
    while let Ok(Some(row)) = rows.next() {
        if let Ok(id) = row.get(0) {
            found.push(id);
        }
    }
    found
}
