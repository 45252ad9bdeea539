//! The report on a traced program, as plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::assembly::Event;
use super::costs::Costs;
use super::descriptor::Kind;
use super::line::CallResult;
use super::sizes::Sizes;

/// Version of the JSON document. A reader refuses any other version.
pub const TRACE_VERSION: u32 = 2;

/// What a traced program did, what that costs, and what would cost less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    pub version: u32,
    /// The command with its arguments; bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    pub ended: Ended,
    pub counted_by: CountedBy,
    /// Wall time of the command under trace, in nanoseconds. Under strace this is far longer than
    /// without.
    pub traced_wall_ns: u64,
    /// How many times as long the command took under trace; `None` if prices do not show it.
    pub slowdown: Option<Slowdown>,
    /// Number of threads that made a counted call.
    pub threads: usize,
    /// Executed programs, the one with the longest total time under trace first.
    pub programs: Vec<ProgramSummary>,
    /// System calls, the one with the longest total time under trace first.
    pub calls: Vec<CallSummary>,
    /// Files, the one with the longest total time under trace first.
    pub files: Vec<FileSummary>,
    /// What calls cost here; `None` if unavailable.
    pub costs: Option<Costs>,
    /// What all priced calls cost without trace, in nanoseconds; `None`
    /// without costs.
    pub priced_ns: Option<f64>,
    /// Advised changes, the largest saving first.
    pub advice: Vec<TraceAdvice>,
    /// Notes that a reader needs to judge the report.
    pub notes: Vec<String>,
}

/// Bounds of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    pub least: f64,
    pub most: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The command ended by itself, with a status.
    Status(i32),
    Signal(i32),
    /// The process ran before the trace, and may run after it.
    Watch(WatchEnd),
}

/// How a trace of running processes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchEnd {
    TimeOver,
    Interrupted,
    AllEnded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    Strace,
    Bpf,
}

/// One system call by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallSummary {
    pub name: String,
    /// How often the system call was made.
    pub calls: u64,
    pub errors: BTreeMap<String, u64>,
    /// Bytes that the calls moved; `None` for a call whose result does not show it.
    pub bytes: Option<u64>,
    /// Time in the calls under trace, in nanoseconds.
    pub traced_ns: u64,
    /// What the priced calls cost without trace, in nanoseconds; `None` if no call has a price.
    pub priced_ns: Option<f64>,
    /// Calls without error that moved bytes and have no price.
    pub unpriced_calls: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSummary {
    /// The file's path, or the kernel's name for an object without one.
    pub name: String,
    pub kind: Kind,
    /// What was read from the file; `None` if nothing was.
    pub read: Option<FlowSummary>,
    /// What was written to the file; `None` if nothing was.
    pub written: Option<FlowSummary>,
    /// How often the file's position was set.
    pub seeks: u64,
    /// Whether only helper programs used the file.
    pub is_of_helpers: bool,
}

/// All processes of one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramSummary {
    /// Name of the program's file, without directories.
    pub name: String,
    /// Number of counted calls.
    pub calls: u64,
    /// Time in the counted calls under trace, in nanoseconds.
    pub traced_ns: u64,
    /// Whether the program's share of the time under trace is negligible.
    pub is_helper: bool,
}

/// One direction of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    pub calls: u64,
    pub bytes: u64,
    pub sizes: Sizes,
    /// Time in the calls under trace, in nanoseconds.
    pub traced_ns: u64,
    /// What the calls cost without trace, in nanoseconds; `None` without a price.
    pub priced_ns: Option<f64>,
}

/// One call in the list of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedCall<'a> {
    /// When the call began, in nanoseconds since the first call began, under trace.
    pub begin_ns: u64,
    pub thread: u32,
    pub name: &'a str,
    /// The call's arguments as strace writes them. If the call never returned, a single text with
    /// all arguments.
    pub arguments: &'a [String],
    /// What the call returned as strace writes it, such as `3</etc/passwd>`; `None` if it never
    /// returned.
    pub returned: Option<&'a str>,
    /// Name of the error, if the call returned one.
    pub error: Option<&'a str>,
    /// Wall time in the call under trace in nanoseconds, if strace prints it.
    pub duration_ns: Option<u64>,
}

impl<'a> ListedCall<'a> {
    /// Returns the call of an event; `None` for a signal, and for a thread that ended
    /// outside of a call.
    pub fn from_event(event: &'a Event) -> Option<Self> {
        Some(match event {
            Event::Call {
                thread,
                begin_ns,
                call,
            } => Self {
                begin_ns: *begin_ns,
                thread: *thread,
                name: &call.name,
                arguments: &call.arguments,
                returned: Some(&call.returned),
                error: match &call.result {
                    CallResult::Error(name) => Some(name),
                    _ => None,
                },
                duration_ns: call.duration_ns,
            },
            Event::Ended {
                thread,
                inside: Some(begun),
                ..
            } => Self {
                begin_ns: begun.begin_ns,
                thread: *thread,
                name: &begun.name,
                arguments: std::slice::from_ref(&begun.arguments),
                returned: None,
                error: None,
                duration_ns: None,
            },
            Event::Ended { inside: None, .. } | Event::Signal { .. } => return None,
        })
    }
}

/// One signal in the list of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedSignal<'a> {
    /// When the signal arrived, on the clock of [`ListedCall::begin_ns`].
    pub begin_ns: u64,
    pub thread: u32,
    /// The signal's name, such as `SIGCHLD`.
    pub signal: &'a str,
    /// Where the signal came from as strace writes it, or what it did: `stopped`, `killed`, `killed
    /// (core dumped)`.
    pub details: &'a str,
}

impl<'a> ListedSignal<'a> {
    /// Returns the signal of an event, if it has one.
    pub fn from_event(event: &'a Event) -> Option<Self> {
        let (thread, at_ns, signal) = match event {
            Event::Signal {
                thread,
                at_ns,
                signal,
            } => (thread, at_ns, signal),
            Event::Ended {
                thread,
                at_ns,
                killed_by: Some(signal),
                ..
            } => (thread, at_ns, signal),
            Event::Call { .. } | Event::Ended { .. } => return None,
        };
        Some(Self {
            begin_ns: *at_ns,
            thread: *thread,
            signal: &signal.name,
            details: &signal.details,
        })
    }
}

/// A change that would save time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceAdvice {
    /// What the program does now: `65,536 reads of 1 B from /tmp/x`.
    pub now: String,
    /// What the program could do: `at 128 KiB`.
    pub instead: String,
    /// What the program's present way costs, in nanoseconds.
    pub now_ns: f64,
    /// What the advised way would cost, in nanoseconds.
    pub instead_ns: f64,
    /// The saving as a share of what all priced calls cost, 0 to 1.
    pub share: f64,
    /// Numbers, from 1, of other advice in the list that is about the same bytes. Only one of them
    /// can be followed.
    pub overlaps: Vec<usize>,
    /// Condition under which the advice holds, if there is one.
    pub condition: Option<String>,
}

impl TraceAdvice {
    /// Returns what the change would save, in nanoseconds.
    pub fn saving_ns(&self) -> f64 {
        self.now_ns - self.instead_ns
    }
}
