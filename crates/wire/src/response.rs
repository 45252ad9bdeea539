//! The response of a probe.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Profile, WIRE_VERSION, WireError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    pub version: u32,
    /// The samples, or why there are none.
    pub outcome: Outcome,
}

impl Response {
    /// Wraps an outcome in a message of this version.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            version: WIRE_VERSION,
            outcome,
        }
    }
}

/// How a trial ended. A failure is data like any other: it is stored and shown in place of the
/// samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every iteration ran and every content check held.
    Completed(Box<TrialData>),
    /// The trial has no usable samples.
    Failed(Failure),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialData {
    /// One per timed iteration, in order.
    pub samples: Vec<Sample>,
    /// What disturbed the machine from before the first timed iteration to
    /// after the last.
    pub disturbance: Disturbance,
    /// Requested counters that could not be opened, with the reason.
    pub counters_missing: BTreeMap<String, String>,
    /// Facts about how the trial ran that a reader needs to judge it, such as
    /// the buffer size that a method resolved to.
    pub notes: Vec<String>,
    /// Instructions by kernel function in the middle iteration, if a guest's instructions are
    /// counted. The probe leaves this map empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, u64>,
    /// Where the time was spent, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Value by metric name; the unit is the name's suffix (`duration_ns`,
    /// `bytes_copied`, `minor_faults`).
    pub metrics: BTreeMap<String, f64>,
    /// Counters read around the timed region, by requested name.
    pub counters: BTreeMap<String, CounterReading>,
    /// The start of the command's standard output, if that was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The start of the command's standard error, if that was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterReading {
    /// Events counted while the counter was on the CPU's counting unit.
    pub count: u64,
    /// Time the counter was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// Time the counter really counted, in nanoseconds. If it is less than `enabled_ns`, the
    /// kernel shared the unit among events, and a scaled count is an estimate.
    pub running_ns: u64,
}

/// What else the machine did during a trial: differences over the timed iterations, except where a
/// name says otherwise. `None` if this kernel or guest does not report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disturbance {
    /// Time in which the hypervisor ran something else on this machine's virtual CPUs, in
    /// nanoseconds.
    pub steal_ns: Option<u64>,
    /// Times the probe was taken off a CPU while it was runnable.
    pub involuntary_switches: Option<u64>,
    /// Times the probe moved to another CPU.
    pub migrations: Option<u64>,
    /// Pages brought in from storage for the probe.
    pub major_faults: Option<u64>,
    /// Time in which some task waited for CPU (PSI), in nanoseconds.
    pub psi_cpu_some_ns: Option<u64>,
    /// Time in which some task waited for I/O (PSI), in nanoseconds.
    pub psi_io_some_ns: Option<u64>,
    /// Time in which some task waited for memory (PSI), in nanoseconds.
    pub psi_memory_some_ns: Option<u64>,
    /// Dirty page-cache bytes when the timed iterations began.
    pub dirty_bytes_before: Option<u64>,
    /// Bytes under writeback when the timed iterations began.
    pub writeback_bytes_before: Option<u64>,
    /// Frequency, in kHz, of the CPU on which the probe ended.
    pub frequency_khz: Option<u64>,
}

/// Why a trial has no usable samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of failure, which decides how the run continues.
    pub kind: FailureKind,
    /// A lower-case sentence in the form `cannot X: why; what to do`.
    pub message: String,
}

impl Failure {
    /// Returns the failure of a trial that was stopped because it exceeded its time limit.
    pub fn of_time_limit(limit: Duration) -> Self {
        let message = format!(
            "cannot finish the trial: it was stopped after {} s; give a longer --trial-timeout or \
             reduce the work",
            limit.as_secs_f64()
        );
        let kind = FailureKind::TimedOut;
        Self { kind, message }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The kernel, file system or device cannot do this at all: the treatment
    /// is skipped with the reason.
    Unsupported,
    /// The work went wrong: an error code, a content mismatch, a non-zero exit.
    Failed,
    /// The measurement could not be set up or read as required, for example because the page cache
    /// could not be dropped. The trial is excluded and counted.
    Instrument,
    /// The trial exceeded its time limit.
    TimedOut,
    /// The probe itself died, or sent an invalid response.
    Crashed,
}

pub fn decode_response(line: &str) -> Result<Response, WireError> {
    crate::decode(line, "the probe's response")
}
