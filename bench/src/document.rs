//! What a run writes: everything the table is made of.

use crate::kept::Kept;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::machine::Machine;

/// Version of the format.
pub const VERSION: u32 = 1;

/// A run of `bench-cat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Time of the start in UTC, to the second.
    pub date: String,
    /// Command line of the run.
    pub command_line: String,
    /// Seed of the order of trials.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// The programs, in the order of the table.
    pub programs: Vec<ProgramRecord>,
    /// What was measured, in the order of the table.
    pub cells: Vec<CellRecord>,
    /// What is missing or to be known, one sentence each.
    pub notes: Vec<String>,
}

/// A program that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Name in the table.
    pub name: String,
    /// File.
    pub path: String,
    /// Arguments before source and sink.
    pub arguments: Vec<String>,
    /// First line of what it says of itself.
    pub version: String,
}

/// All trials of one case and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// The case.
    pub case: Case,
    /// Bytes copied in one trial.
    pub size_bytes: u64,
    /// Names of the programs, to which `blocks` refer by position.
    pub programs: Vec<String>,
    /// Blocks in the order of time.
    pub blocks: Vec<BlockRecord>,
    /// Programs that failed or delivered wrong bytes, with the reason.
    pub excluded: BTreeMap<String, String>,
}

/// One run of every program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Positions of the programs in the order in which they ran.
    pub order: Vec<usize>,
    /// Duration in nanoseconds by position of the program; none for an excluded
    /// one.
    pub durations_ns: Vec<Option<u64>>,
}

impl CellRecord {
    /// Durations of a program in nanoseconds, one a block; `None` if it was
    /// excluded, is not of this cell, or nothing was run.
    pub fn durations_ns(&self, program: &str) -> Option<Vec<f64>> {
        let position = self.programs.iter().position(|name| name == program)?;
        let durations: Option<Vec<f64>> = self
            .blocks
            .iter()
            .map(|block| Some(block.durations_ns.get(position).copied()?? as f64))
            .collect();
        durations.filter(|durations| !durations.is_empty() && !self.excluded.contains_key(program))
    }
}

impl Kept for Document {
    const VERSION: u32 = VERSION;
    const NAME: &'static str = "cat";

    fn version(&self) -> u32 {
        self.version
    }

    fn table(&self) -> String {
        crate::table::render(self)
    }
}
