//! The JSON document for exchanging runs between machines and programs.
//!
//! `docs/schema/run.schema.json` describes the document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_core::run::{BootRecord, ProfileRecord, RunRecord, StoredRun, TrialRecord};

use super::error::StoreError;
use crate::claim::model::Analysis;
use crate::plan::Treatment;
use crate::spec::{BLOCKS_MAX, Experiment};

/// Version of the document that this program reads and writes.
pub const DOCUMENT_VERSION: u32 = 1;

/// Largest document that is read, in bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Whether a string is the identity of a run. The identity is also the name of the run's Parquet
/// files.
pub fn is_uid(text: &str) -> bool {
    text.len() == 16 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// A run as a document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunDocument {
    /// The name of the format, always `toll-run`.
    pub format: String,
    /// The writer's [`DOCUMENT_VERSION`].
    pub version: u32,
    /// The record of the run.
    pub run: RunRecord,
    /// The experiment as it was run. `docs/FORMAT.md` describes its inner shape, which may grow
    /// within a version.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub experiment: Experiment,
    /// Treatments in the plan's order. Their inner shape may grow within a version.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub treatments: Vec<Treatment>,
    /// Trials in the order in which they ran, every sample included.
    pub trials: Vec<TrialRecord>,
    /// Boots of guests in their order; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boots: Vec<BootRecord>,
    /// Profiles of treatments in their order; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileRecord>,
    /// What this program concluded. An import ignores this and analyses the run again.
    pub analysis: Option<Analysis>,
}

impl RunDocument {
    /// Wraps a run and its analysis.
    pub fn new(stored: StoredRun, analysis: Analysis) -> Self {
        Self {
            format: "toll-run".into(),
            version: DOCUMENT_VERSION,
            run: stored.run,
            experiment: stored.experiment,
            treatments: stored.treatments,
            trials: stored.trials,
            boots: stored.boots,
            profiles: stored.profiles,
            analysis: Some(analysis),
        }
    }

    /// Reads a document and checks that it is consistent.
    pub fn parse(text: &str) -> Result<StoredRun, StoreError> {
        Self::parse_with_analysis(text).map(|(stored, _)| stored)
    }

    /// Reads a document as [`Self::parse`] does, and also returns the analysis in it.
    pub fn parse_with_analysis(text: &str) -> Result<(StoredRun, Option<Analysis>), StoreError> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
            version: Option<u32>,
        }
        let wrong = StoreError::Document;
        let head: Head = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if head.format.as_deref() != Some("toll-run") {
            return Err(wrong("its format is not toll-run".into()));
        }
        if head.version != Some(DOCUMENT_VERSION) {
            let version = head
                .version
                .map_or("missing".into(), |version| version.to_string());
            return Err(wrong(format!(
                "its version is {version}, and this toll reads {DOCUMENT_VERSION}; export the \
                 run again with this toll, or import it with the toll that wrote the document"
            )));
        }
        let document: Self =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        document.check().map_err(wrong)?;
        // Fields that repeat other parts of the document must agree with them.
        let experiment = &document.experiment;
        let run = RunRecord {
            imported: true,
            experiment: experiment.name.clone(),
            title: experiment.title.clone(),
            question: experiment.question.clone(),
            updated_at: document.trials.last().map(|last| last.started_at.clone()),
            ..document.run
        };
        let stored = StoredRun {
            run,
            experiment: document.experiment,
            treatments: document.treatments,
            trials: document.trials,
            boots: document.boots,
            profiles: document.profiles,
        };
        Ok((stored, document.analysis))
    }

    /// Checks the times by which runs are dated and ordered.
    fn check_times(&self) -> Result<(), String> {
        let trials = self.trials.iter().map(|trial| &trial.started_at);
        let boots = self.boots.iter().map(|boot| &boot.started_at);
        let profiles = self.profiles.iter().map(|profile| &profile.started_at);
        let mut all = trials
            .chain(boots)
            .chain(profiles)
            .chain([&self.run.created_at]);
        match all.find(|time| time.parse::<jiff::Timestamp>().is_err()) {
            Some(time) => Err(format!("{time:?} is not an RFC 3339 time")),
            None => Ok(()),
        }
    }

    /// Checks that no value measured by the probe is negative.
    fn check_samples(&self) -> Result<(), String> {
        let parsed = &self.experiment.parsed_metrics;
        let is_wrong = |name: &&String, values: &[f64]| {
            !parsed.contains_key(*name) && values.iter().any(|value| *value < 0.0)
        };
        let all = self.trials.iter().flat_map(|trial| &trial.samples);
        match all
            .into_iter()
            .find(|(name, values)| is_wrong(name, values))
        {
            Some((name, _)) => Err(format!("a value of {name} is below 0")),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let uid = &self.run.uid;
        if !is_uid(uid) {
            return Err("its uid is not 16 hexadecimal digits".into());
        }
        self.check_times()?;
        self.check_samples()?;
        self.experiment.check()?;
        check_parts(
            &self.experiment,
            &self.treatments,
            &self.trials,
            &self.profiles,
        )
    }
}

/// Checks that the parts of a run refer only to existing parts.
pub(super) fn check_parts(
    experiment: &Experiment,
    treatments: &[Treatment],
    trials: &[TrialRecord],
    profiles: &[ProfileRecord],
) -> Result<(), String> {
    for (index, treatment) in treatments.iter().enumerate() {
        let names = experiment.level_names(&treatment.levels)?;
        if !treatment.levels.keys().map(String::as_str).eq(names) {
            return Err(format!(
                "treatment {index} does not have the experiment's factors"
            ));
        }
        if treatment.index != index || treatment.twin_of.is_some_and(|of| of >= index) {
            return Err(format!("treatment {index} is out of place"));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for trial in trials {
        let (block, treatment) = (trial.block, trial.treatment);
        if block >= BLOCKS_MAX {
            return Err(format!("block {block} is over the limit of {BLOCKS_MAX}"));
        }
        if treatment >= treatments.len() {
            return Err(format!(
                "a trial has treatment {treatment}, which does not exist"
            ));
        }
        if !seen.insert((block, treatment)) {
            return Err(format!(
                "treatment {treatment} appears twice in block {block}"
            ));
        }
    }
    let count = treatments.len();
    let is_of_none =
        |profile: &&ProfileRecord| profile.treatment >= count || profile.reference >= count;
    if profiles.iter().any(|profile| is_of_none(&profile)) {
        return Err("a profile has a treatment that does not exist".into());
    }
    let mut profiled = profiles.iter().flat_map(|profile| &profile.trials);
    if profiled.any(|trial| trial.block >= BLOCKS_MAX) {
        Err(format!(
            "a profile has a block over the limit of {BLOCKS_MAX}"
        ))
    } else {
        Ok(())
    }
}
