//! Where the time of a trial went.

use serde::{Deserialize, Serialize};

/// The timed regions of a trial, split into what its threads did, by stack.
///
/// The times add up to [`Profile::region_ns`]: a moment goes to the main thread
/// while it is on a CPU, else in equal parts to the other threads on a CPU, else
/// to a wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub region_ns: u64,
    pub samples: u64,
    /// Files that are mapped where user code ran.
    pub files: Vec<String>,
    pub stacks: Vec<ProfiledStack>,
    /// What could not be recorded, and how to enable it.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfiledStack {
    pub activity: Activity,
    /// The innermost first.
    pub frames: Vec<CodeAddress>,
    pub time_ns: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    OnCpu,
    /// In programs, where they may not be sampled.
    OnCpuInPrograms,
    /// In the kernel, where it may not be sampled.
    OnCpuInKernel,
    Blocked,
    /// Ready to go on, while another has the CPU.
    WaitsForCpu,
    /// Before the program runs and after it has ended.
    StartAndEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeAddress {
    Kernel(u64),
    /// Offset in a file, by its index in [`Profile::files`].
    File(u32, u64),
    /// Code that no file holds.
    Anonymous,
}
