//! Where the time of a trial was spent.

use serde::{Deserialize, Serialize};

/// The timed regions of a trial, split into what its threads did, by stack.
///
/// The times add up to [`Profile::region_ns`]. A moment is charged to the main thread while it is
/// on a CPU. Otherwise it is charged in equal parts to the other threads on a CPU, or to a wait if
/// there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub region_ns: u64,
    pub samples: u64,
    /// Files mapped at the addresses where user code ran.
    pub files: Vec<String>,
    pub stacks: Vec<ProfiledStack>,
    /// What could not be recorded, and how to enable it.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfiledStack {
    pub activity: Activity,
    /// Innermost frame first.
    pub frames: Vec<CodeAddress>,
    pub time_ns: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    OnCpu,
    /// In user space, where the probe is not permitted to sample.
    OnCpuInPrograms,
    /// In the kernel, where the probe is not permitted to sample.
    OnCpuInKernel,
    Blocked,
    /// Runnable, while another task has the CPU.
    WaitsForCpu,
    /// Before the program starts and after it has ended.
    StartAndEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeAddress {
    Kernel(u64),
    /// Index of a file in [`Profile::files`], and an offset in that file.
    File(u32, u64),
    /// Code that is in no file.
    Anonymous,
}
