//! The request that `toll` sends to a probe.

use serde::{Deserialize, Serialize};

use crate::levels::count;
use crate::{ITERATIONS_MAX, WIRE_VERSION, WireError, Workload};

/// One trial: a workload, how often to repeat it inside the trial, and which events to count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub version: u32,
    pub workload: Workload,
    /// Timed repetitions; each yields one sample.
    #[serde(deserialize_with = "count::<1, { ITERATIONS_MAX as u64 }, _, _>")]
    pub iterations: u32,
    /// Untimed repetitions before the first timed one.
    pub warmup_iterations: u32,
    /// Names of performance counters to open around the timed region, such as `instructions` or
    /// `dtlb-read-misses`. A counter that cannot be opened is reported in
    /// [`crate::TrialData::counters_missing`], never as zero.
    pub counters: Vec<String>,
    /// Whether processes that a command leaves running may stay alive, such as a server that a
    /// set-up command starts for the trials. If not, they are killed at the end of the iteration
    /// that left them.
    pub may_leave_processes: bool,
    #[serde(default)]
    pub recording: Recording,
}

/// What to record of the timed regions of a trial. Recording disturbs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recording {
    #[default]
    Nothing,
    /// Where the time is spent.
    Profile,
    /// System calls between [`CALL_REGION_BEGINS`] and [`CALL_REGION_ENDS`], which another process
    /// counts.
    SystemCalls,
}

/// System call numbers that no kernel has (`toll` in ASCII, and the next number). The calls fail
/// and change nothing, but a counter of system calls sees them.
pub const CALL_REGION_BEGINS: i64 = 0x746f_6c6c;
pub const CALL_REGION_ENDS: i64 = 0x746f_6c6d;

impl Request {
    /// A request for one timed iteration without warm-up or counters.
    pub fn new(workload: Workload) -> Self {
        Self {
            version: WIRE_VERSION,
            workload,
            iterations: 1,
            warmup_iterations: 0,
            counters: Vec::new(),
            may_leave_processes: false,
            recording: Recording::Nothing,
        }
    }
}

pub fn decode_request(line: &str) -> Result<Request, WireError> {
    crate::decode(line, "the trial request")
}
