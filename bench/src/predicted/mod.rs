//! Whether what `toll trace` predicts is what is saved: the saving that it tells
//! of a program that copies in small pieces, beside the saving measured without
//! trace.
//!
//! Architecture invariant: as in [`crate::document`], a [`Document`] holds
//! every value that was measured, and [`table::render`] makes the whole table of
//! it alone.

pub mod measure;
mod probe;
pub mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kept::Kept;
use crate::machine::Machine;

/// Version of the format.
pub const VERSION: u32 = 1;

/// A way to copy that a larger buffer makes quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// 1 KiB, a byte at a time, to `/dev/null`.
    ByteToNull,
    /// 1 KiB, a byte at a time, to a file.
    ByteToFile,
    /// 4 MiB, a page at a time, to `/dev/null`.
    PageToNull,
}

/// All of them.
pub const CASES: [Case; 3] = [Case::ByteToNull, Case::ByteToFile, Case::PageToNull];

/// A saving of one copy, as predicted and as measured next to it in time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// What `toll trace` tells, by prices measured in the same round, in
    /// nanoseconds.
    pub predicted_ns: f64,
    /// Time of a copy as it is less that of one with the larger buffer, in
    /// nanoseconds.
    pub measured_ns: f64,
    /// The buffer that is advised, in bytes.
    pub best_bytes: u64,
}

/// A run of `bench-trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Time of the start in UTC, to the second.
    pub date: String,
    /// Command line of the run.
    pub command_line: String,
    /// The machine.
    pub machine: Machine,
    /// What toll says of itself.
    pub toll: String,
    /// A saving for each round; all rounds have all cases.
    pub savings: BTreeMap<Case, Vec<Saving>>,
}

impl Kept for Document {
    const VERSION: u32 = VERSION;
    const NAME: &'static str = "trace";

    fn version(&self) -> u32 {
        self.version
    }

    fn table(&self) -> String {
        table::render(self)
    }
}
