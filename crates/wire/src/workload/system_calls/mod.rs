//! Programs of system calls.

mod names;
mod program;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::levels::{count, from_levels};
use crate::work_request::{DiskNeeds, WorkRequest};

pub use program::{Argument, Call, Item, Program, Statement};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemCallsRequest {
    /// The system calls, in up to three parts: before, timed, after.
    pub program: Program,
    /// How often the timed part runs in one iteration.
    #[serde(deserialize_with = "count::<1, SYSTEM_CALLS_TIMES_MAX, _, _>")]
    pub times: u64,
    /// What the timed part leaves for the last part to undo.
    pub leaves: Leaves,
    /// What the timed part waits for.
    pub waits: Waits,
    /// Directory on the file system under test; the program runs in a new one below it.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
}

/// Largest number of rounds of the timed part in one iteration.
pub const SYSTEM_CALLS_TIMES_MAX: u64 = 1_000_000;

/// What each round of a program leaves in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leaves {
    Nothing,
    /// An object; its slab memory is measured.
    Object,
}

/// What a program waits for besides the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    Nothing,
    /// A device outside of a guest. An emulated clock advances during the wait, so neither a
    /// duration nor a path length is meaningful.
    Device,
}

impl Default for SystemCallsRequest {
    fn default() -> Self {
        Self {
            program: Program::default(),
            times: 1,
            leaves: Leaves::Nothing,
            waits: Waits::Nothing,
            directory: PathBuf::new(),
        }
    }
}

/// Room on disk for a program of system calls.
const SCRATCH_BYTES: u64 = 64 << 20;

impl WorkRequest for SystemCallsRequest {
    const SURROUNDINGS: &'static [&'static str] = &["fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds {
            // How much a program writes is unknown; most programs write little.
            scratch_bytes: SCRATCH_BYTES,
            ..DiskNeeds::default()
        }
    }

    fn place(&mut self, directory: &Path, _seed: u64) {
        self.directory = directory.to_owned();
    }
}
