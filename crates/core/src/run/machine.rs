//! The machine a run was made on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts about a machine that a reader needs to judge a run, or to compare it with a run from
/// another machine. A fact is `None` if the machine does not report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Node name.
    pub hostname: String,
    /// CPU model as the CPU reports it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// State of each CPU vulnerability by name, from
    /// `/sys/devices/system/cpu/vulnerabilities`.
    pub mitigations: BTreeMap<String, String>,
    /// Simultaneous multithreading, from `/sys/devices/system/cpu/smt/control`:
    /// `on`, `off`, `forceoff` or `notsupported`.
    #[serde(default)]
    pub smt: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Data and unified cache sizes of CPU 0 in bytes, by level (`L1d`, `L2`).
    pub caches_bytes: BTreeMap<String, u64>,
    /// Hypervisor vendor, or `none`.
    pub virtualization: String,
    /// Operating system's name, from os-release.
    pub os: Option<String>,
    /// Kernel release, `uname -r`.
    pub kernel_release: String,
    /// Kernel build, `uname -v`.
    pub kernel_version: String,
    /// Kernel command line.
    pub kernel_command_line: String,
    /// Clock source in use.
    pub clock_source: Option<String>,
    /// Cost of one clock read in nanoseconds, the median of many.
    pub clock_read_ns: f64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Swap in bytes.
    pub swap_bytes: u64,
    /// Transparent huge pages setting.
    pub transparent_hugepage: Option<String>,
    /// `kernel.randomize_va_space`: 2 is full address-space randomisation, on which
    /// the independence of trials depends.
    #[serde(default)]
    pub randomize_va_space: Option<String>,
    /// Size of a memory page, in bytes.
    pub page_bytes: u64,
    /// File system of the work files.
    pub work_file_system: FileSystem,
    /// Whether the effective user is root.
    pub root: bool,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Type such as `ext4`.
    pub kind: String,
    /// Device or source.
    pub source: String,
    /// Mount options.
    pub options: String,
}
