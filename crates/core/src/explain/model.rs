//! Why one treatment takes longer than another: plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::model::Estimate;

/// A difference in time, split into functions and waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The treatment that takes longer.
    pub slower: usize,
    /// Its label.
    pub slower_label: String,
    /// The treatment that takes less.
    pub faster: usize,
    /// Its label.
    pub faster_label: String,
    /// Time of the slower over that of the faster, in the timed trials if they have it.
    pub ratio: f64,
    /// Blocks of profiled trials.
    pub blocks: usize,
    /// Fewest blocks from which a row can be told from noise.
    pub blocks_needed: usize,
    /// The difference of an iteration in the profiled trials, in nanoseconds.
    pub difference_ns: Estimate,
    /// What can be told from noise, the largest first. All intervals hold together.
    pub rows: Vec<ExplainedRow>,
    /// The rest of the difference, in nanoseconds.
    pub not_attributed_ns: Estimate,
    /// The same as a share; `None` as for rows.
    pub not_attributed_share: Option<Estimate>,
    /// Time in each system call, in page faults and in interrupts, with all that they
    /// called and waited for, and in programs: a split of its own, with an error budget
    /// of its own.
    pub entries: Vec<ExplainedRow>,
    /// What an iteration counted, where the treatments differ.
    pub counts: Vec<ExplainedCount>,
    /// How much longer profiled trials took than timed ones.
    pub overheads: Vec<ProfilingOverhead>,
    /// Time of an iteration in which other programs had the CPU, which is left out.
    pub waits_for_cpu_ns: f64,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A function, wait or group of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRow {
    /// What it is, such as `vfs_read (read)`.
    pub name: String,
    /// How it came about.
    pub kind: RowKind,
    /// Median time of an iteration of the slower treatment, in nanoseconds.
    pub slower_ns: f64,
    /// The same of the faster.
    pub faster_ns: f64,
    /// The difference, in nanoseconds.
    pub difference_ns: Estimate,
    /// Its share of the whole difference; `None` if that is of either sign.
    pub share: Option<Estimate>,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// One function, or one wait.
    Function,
    /// What is left of a program, or of a system call.
    Group,
    /// What is left of the kernel, of all programs, or of all waits.
    Rest,
    /// A way into the kernel, with all that came of it.
    Entry,
}

/// Something that an iteration counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedCount {
    /// The metric.
    pub metric: String,
    /// Median of the slower treatment.
    pub slower: f64,
    /// Median of the faster treatment.
    pub faster: f64,
    /// The difference.
    pub difference: Estimate,
}

/// What profiling costs a treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilingOverhead {
    /// Index of the treatment.
    pub treatment: usize,
    /// Median time of a profiled iteration over that of a timed one.
    pub ratio: f64,
}
