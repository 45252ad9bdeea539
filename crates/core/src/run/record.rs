//! The stored record of a run, as plain data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Machine;
use crate::spec::Experiment;

/// A run, without its trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Number in this store, from 1.
    pub id: i64,
    /// Identity across stores: 16 hexadecimal digits.
    pub uid: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Heading of the experiment.
    pub title: String,
    /// What the experiment asks.
    pub question: String,
    /// Profile, such as `quick`.
    pub profile: String,
    /// Seed of the plan.
    #[serde(with = "seed_text")]
    #[schemars(with = "String")]
    pub seed: u64,
    /// Time the run was created, RFC 3339 in UTC.
    pub created_at: String,
    /// Time the last recorded trial began, if there is one.
    pub updated_at: Option<String>,
    /// State of the run.
    pub status: RunStatus,
    /// Why the run stopped, in words.
    pub stop_reason: Option<String>,
    /// Version of the toll that made the run.
    pub toll_version: String,
    /// The command line that made the run.
    pub command_line: String,
    /// The machine that the run was made on.
    pub machine: Machine,
    /// Environment variables that commands inherited and that can change their measurements:
    /// `LD_*`, `GLIBC_TUNABLES`, `MALLOC_*`, `LANG`, `LC_*` and `PATH`, with their values.
    /// Empty without commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Whether the run was made elsewhere and imported.
    pub imported: bool,
}

impl RunRecord {
    /// Creates a record from the fields of an experiment; all others are empty.
    pub fn from_experiment(experiment: &Experiment) -> Self {
        Self {
            experiment: experiment.name.clone(),
            title: experiment.title.clone(),
            question: experiment.question.clone(),
            profile: experiment.profile.clone(),
            ..Self::default()
        }
    }
}

impl RunRecord {
    /// Warns of variables that change how the commands of a run are loaded or allocate.
    pub fn warning_of_variables(&self) -> Option<String> {
        let changes = |name: &&String| {
            name.starts_with("LD_") || name.starts_with("MALLOC_") || *name == "GLIBC_TUNABLES"
        };
        let names: Vec<&str> = self
            .variables
            .keys()
            .filter(changes)
            .map(String::as_str)
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "commands inherit {}, which can change their measurements; unset the variables that \
                 they should not have",
                names.join(", ")
            )
        })
    }
}

/// State of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Trials remain: the run is still going on, or it was killed.
    #[default]
    Unfinished,
    /// The run stopped by its own rule.
    Complete,
}

/// Stores seeds as text: they use all 64 bits, and JSON readers are inexact above 2^53.
mod seed_text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&seed.to_string())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
