//! Why one treatment takes longer than another: plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::model::Estimate;

/// A difference in time, split into functions and waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The treatment that takes longer.
    pub slower: usize,
    /// Label of the slower treatment.
    pub slower_label: String,
    /// The treatment that takes less time.
    pub faster: usize,
    /// Label of the faster treatment.
    pub faster_label: String,
    /// Time of the slower treatment divided by that of the faster one, from the timed trials if
    /// available.
    pub ratio: f64,
    /// Number of blocks of profiled trials.
    pub blocks: usize,
    /// Minimum number of blocks in which a row can be distinguished from noise.
    pub blocks_needed: usize,
    /// Difference per iteration in the profiled trials, in nanoseconds.
    pub difference_ns: Estimate,
    /// Rows that can be distinguished from noise, largest difference first. All intervals hold
    /// simultaneously.
    pub rows: Vec<ExplainedRow>,
    /// Part of the difference that no row explains, in nanoseconds.
    pub not_attributed_ns: Estimate,
    /// Share of the difference that no row explains; `None` if the sign of the difference is
    /// unknown.
    pub not_attributed_share: Option<Estimate>,
    /// Time in programs, in each system call, in page faults and in interrupts, with everything
    /// that these called and waited for, largest difference first. This is a separate split with
    /// its own error budget.
    pub entries: Vec<ExplainedRow>,
    /// Counts per iteration, if the treatments differ in them.
    pub counts: Vec<ExplainedCount>,
    /// How many times longer profiled trials took than timed ones, for each treatment.
    pub overheads: Vec<ProfilingOverhead>,
    /// Time per iteration in which other programs had the CPU; the difference does not include it.
    pub waits_for_cpu_ns: f64,
    /// Notes that a reader must know.
    pub notes: Vec<String>,
}

/// A function, a wait, or a group of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRow {
    /// Name of the row, such as `vfs_read (read)`.
    pub name: String,
    /// What the row represents.
    pub kind: RowKind,
    /// Median time of an iteration of the slower treatment, in nanoseconds.
    pub slower_ns: f64,
    /// Median time of an iteration of the faster treatment, in nanoseconds.
    pub faster_ns: f64,
    /// Difference between the two treatments, in nanoseconds.
    pub difference_ns: Estimate,
    /// Share of the whole difference; `None` if the sign of the whole difference is unknown.
    pub share: Option<Estimate>,
}

/// What a row represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// One function, or one wait.
    Function,
    /// What is left of a program, or of a system call.
    Group,
    /// What is left of the kernel, of all programs, or of all waits.
    Rest,
    /// An entry into the kernel, with everything that it caused.
    Entry,
}

/// A count per iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedCount {
    /// Name of the metric.
    pub metric: String,
    /// Median count of the slower treatment.
    pub slower: f64,
    /// Median count of the faster treatment.
    pub faster: f64,
    /// Difference between the two treatments.
    pub difference: Estimate,
}

/// Cost of profiling a treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilingOverhead {
    /// Index of the treatment.
    pub treatment: usize,
    /// Median time of a profiled iteration over that of a timed one.
    pub ratio: f64,
}
