//! The workloads that a probe can measure, and the needs of each.

mod boot;
mod command;
mod copy;
mod crossing;
mod files;
mod memory;
mod primes;
mod reclaim;
mod system_calls;
mod transfer;
mod write;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::levels::from_levels;
use crate::surroundings::Surroundings;
use crate::work_request::{DiskNeeds, WorkRequest, chosen};
pub use boot::BootRequest;
pub use command::{
    CommandRequest, Content, ITERATION_VARIABLE, InputFile, Numbering, OutputPolicy,
    PADDING_VARIABLE, ShellChoice, Variable,
};
pub use copy::{CacheState, CopyMethod, CopyRequest, Sink, SinkFile, Source, SourceIo};
pub use crossing::{
    CROSSING_BYTES_MAX, CROSSING_CALLS_MAX, CROSSING_FILE_BYTES, CrossingCpus, CrossingOperation,
    CrossingPeer, CrossingRequest, DRIVER_BYTES_MAX, FAULT_AROUND_BYTES, RING_BATCH_MAX,
};
pub use files::{FILE_CALLS_MAX, FILES_MAX, FilesOperation, FilesRequest};
pub use memory::{
    AccessOrder, Addressing, ChaseRequest, ChaseStride, Competitor, CompetitorUses, HugePages,
    Initialisation, LINE_BYTES, MEMORY_BYTES_MAX, Mapping, MemoryAdvice, MemoryRequest,
    ReachedPages, WORKING_SET_LINES,
};
pub use primes::{
    PRIMES_N_MAX, PrimesAllocation, PrimesClock, PrimesPlacement, PrimesRequest, Printing,
    RandomSource,
};
pub use reclaim::{HotMapping, PASSES_MAX, PROCESSES_MAX, ReclaimRequest, WorkingSet};
pub use system_calls::{
    Argument, Call, Item, Leaves, Program, SYSTEM_CALLS_TIMES_MAX, Statement, SystemCallsRequest,
    Waits,
};
pub use transfer::{
    Channel, PageLog, ReceiveMethod, SendMethod, SocketMode, TRANSFER_BUFFER_BYTES_MAX,
    TRANSFER_BUFFER_BYTES_MIN, TransferPart, TransferRequest,
};
pub use write::{Durability, Placement, RISING_BYTES_MIN, WriteRequest};

/// Makes the enums of workloads from one list.
macro_rules! workloads {
    ($($name:ident($request:ty)),* $(,)?) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "kind")]
        pub enum Workload {
            $($name($request)),*
        }

        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum WorkloadKind {
            $($name),*
        }

        impl Workload {
            pub fn kind(&self) -> WorkloadKind {
                match self {
                    $(Self::$name(_) => WorkloadKind::$name),*
                }
            }

            pub fn disk_needs(&self) -> DiskNeeds {
                match self {
                    $(Self::$name(request) => WorkRequest::disk_needs(request)),*
                }
            }

            /// Whether iterations begin with files that must not be in memory.
            pub fn begins_cold(&self) -> bool {
                match self {
                    $(Self::$name(request) => WorkRequest::begins_cold(request)),*
                }
            }

            /// Bytes of memory that a trial needs and that no file holds; `None` if it needs
            /// little.
            pub fn memory_bytes(&self) -> Option<u64> {
                match self {
                    $(Self::$name(request) => WorkRequest::memory_bytes(request)),*
                }
            }

            /// Fills in the directory for the trial's files and the seed of its random numbers.
            pub fn place(&mut self, directory: &Path, seed: u64) {
                match self {
                    $(Self::$name(request) => request.place(directory, seed)),*
                }
            }
        }

        impl WorkloadKind {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The parameters that `toll` handles instead of the probe.
            fn surroundings(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => <$request as WorkRequest>::SURROUNDINGS),*
                }
            }

            fn further_parameters(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => <$request as WorkRequest>::FURTHER_PARAMETERS),*
                }
            }

            /// Whether the workload starts programs that are installed on the machine.
            pub fn starts_programs(self) -> bool {
                match self {
                    $(Self::$name => <$request as WorkRequest>::STARTS_PROGRAMS),*
                }
            }

            /// The metric that a list of prices shows, unless the experiment file names one.
            pub fn price_metric(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => <$request as WorkRequest>::PRICE_METRIC),*
                }
            }

            fn read(self, levels: &[(&str, &str)]) -> Result<Workload, String> {
                if self == Self::Reclaim
                    && let Some(memory) = ReclaimRequest::of_memory(levels)?
                {
                    return Ok(Workload::Memory(memory));
                }
                Ok(match self {
                    $(Self::$name => Workload::$name(<$request as WorkRequest>::read(levels)?)),*
                })
            }
        }
    };
}

workloads! {
    Copy(CopyRequest),
    Write(WriteRequest),
    Command(CommandRequest),
    Memory(MemoryRequest),
    Chase(ChaseRequest),
    Reclaim(ReclaimRequest),
    Primes(PrimesRequest),
    Crossing(CrossingRequest),
    Transfer(TransferRequest),
    Files(FilesRequest),
    SystemCalls(SystemCallsRequest),
    Boot(BootRequest),
}

impl WorkloadKind {
    /// Returns the names of the workload's parameters; `None` for a command, which accepts any.
    pub fn parameters(self) -> Option<Vec<String>> {
        if self == Self::Command {
            return None;
        }
        let default = self.read(&[]).expect("all defaults are valid");
        let message = serde_json::to_value(default).expect("a message is plain data");
        let fields = message.as_object().into_iter().flatten();
        let mut names: Vec<String> = fields.map(|(name, _)| name.clone()).collect();
        names.retain(|name| !name.starts_with('@') && name != "kind");
        let more = self.further_parameters().iter().chain(self.surroundings());
        names.extend(more.map(|name| (*name).to_owned()));
        Some(names)
    }

    pub fn has(self, name: &str) -> bool {
        self.parameters()
            .is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// Checks that a parameter can have this level. The error says why it cannot.
    pub fn check(self, name: &str, text: &str) -> Result<(), String> {
        let level = [(name, text)];
        if self.surroundings().contains(&name) {
            return from_levels::<Surroundings>(level).map(drop);
        }
        match self.parameters() {
            Some(names) if !names.iter().any(|known| known == name) => Err(format!(
                "cannot set {name}: this workload has no such parameter; it has {}",
                names.join(", ")
            )),
            _ if self.further_parameters().contains(&name) => {
                from_levels::<MemoryRequest>(level).map(drop)
            }
            _ => self.read(&level).map(drop),
        }
    }

    /// Reads the parameters that `toll` handles from levels; levels of other parameters are
    /// ignored.
    pub fn surroundings_of(self, levels: &[(&str, &str)]) -> Result<Surroundings, String> {
        from_levels(chosen(levels, |name| self.surroundings().contains(&name)))
    }

    /// Returns the probe's workload for these levels; levels of other parameters are ignored. The
    /// caller fills in directories, files and seeds, and everything of a command.
    pub fn request(self, levels: &[(&str, &str)]) -> Result<Workload, String> {
        let names = self.parameters().unwrap_or_default();
        let is_own = |name: &str| {
            names.iter().any(|known| known == name) && !self.surroundings().contains(&name)
        };
        let own: Vec<_> = levels
            .iter()
            .copied()
            .filter(|(name, _)| is_own(name))
            .collect();
        self.read(&own)
    }
}
