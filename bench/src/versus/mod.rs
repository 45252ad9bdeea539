//! `toll` beside hyperfine: how often each calls two commands different, identical
//! ones among them, and how long each takes.
//!
//! Architecture invariant: a [`Document`] holds every comparison that was made, and
//! [`table::render`] makes the whole table of it alone.

mod load;
pub mod measure;
pub mod table;
mod tool;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Version of the format.
pub const VERSION: u32 = 2;

/// How much more work the second command does, in hundredths.
pub const DIFFERENCES_PERCENT: [u32; 4] = [0, 2, 5, 20];
/// Level of both tools, and the false alarms that they may make.
pub const LEVEL: f64 = 0.05;

/// What goes on beside the commands that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Nothing that this program starts.
    Quiet,
    /// A process that keeps every CPU busy for 20 to 400 ms at a time and rests as
    /// long.
    Neighbour,
    /// A load on every CPU that grows from nothing to 60 % of the time over about
    /// as long as the comparison takes.
    Drift,
}

/// All conditions.
pub const CONDITIONS: [Condition; 3] = [Condition::Quiet, Condition::Neighbour, Condition::Drift];

/// Who compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `toll run`.
    Toll,
    /// `hyperfine`, with Welch's t-test on its times.
    Hyperfine,
}

/// Both.
pub const TOOLS: [Tool; 2] = [Tool::Toll, Tool::Hyperfine];

/// What a tool says of the second command, beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It takes longer.
    Longer,
    /// It takes less.
    Shorter,
    /// No difference is shown.
    None,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Who compared.
    pub tool: Tool,
    /// What went on beside it.
    pub condition: Condition,
    /// How much more work the second command does, in hundredths.
    pub difference_percent: u32,
    /// What it said at its level of 5 %.
    pub answer: Answer,
    /// p-value of Welch's test; of hyperfine alone.
    pub p: Option<f64>,
    /// The second command over the first, as the tool estimates it.
    pub ratio: f64,
    /// How long the whole comparison took, in seconds.
    pub wall_s: f64,
}

/// A run of `bench-hyperfine`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Time of the start in UTC, to the second.
    pub date: String,
    /// Command line of the run.
    pub command_line: String,
    /// Seed of the order of comparisons.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// What the tools say of themselves.
    pub versions: Vec<String>,
    /// Pieces of work in the shorter command, and how long it takes when quiet, in
    /// nanoseconds.
    pub work: (u64, f64),
    /// Every comparison, in the order of time.
    pub comparisons: Vec<Comparison>,
    /// Whether the time ended before the plan did.
    pub cut: bool,
}

/// Why a run has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user wanted it.
    Interrupted,
    /// With the reason.
    Failed(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Failed(reason)
    }
}

impl Document {
    /// Reads the document of an earlier run.
    ///
    /// # Errors
    /// If it cannot be read, or is of another version.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("cannot read {}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let document: Self =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match document.version {
            VERSION => Ok(document),
            other => Err(wrong(format!(
                "it is of version {other}, this program knows {VERSION}"
            ))),
        }
    }

    /// Writes the table and all that was measured into a directory.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), String> {
        let wrong = |why: &dyn std::fmt::Display| {
            format!("cannot write into {}: {why}", directory.display())
        };
        let json = serde_json::to_string(self).map_err(|error| wrong(&error))?;
        std::fs::create_dir_all(directory).map_err(|error| wrong(&error))?;
        for (name, text) in [
            ("hyperfine.md", table::render(self)),
            ("hyperfine.json", json),
        ] {
            std::fs::write(directory.join(name), text).map_err(|error| wrong(&error))?;
        }
        Ok(())
    }
}
