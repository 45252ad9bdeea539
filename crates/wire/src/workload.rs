//! The works that a probe can measure, and what each needs.

use serde::{Deserialize, Serialize};

use crate::levels::from_levels;
use crate::{
    BootRequest, CacheState, ChaseRequest, CommandRequest, CopyRequest, CrossingRequest,
    FilesRequest, HotMapping, LINE_BYTES, Mapping, MemoryRequest, PrimesRequest, ReclaimRequest,
    Sink, SinkFile, Source, Surroundings, SystemCallsRequest, TransferRequest, WorkingSet,
    WriteRequest,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Workload {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    Copy,
    Write,
    Command,
    Memory,
    Chase,
    Reclaim,
    Primes,
    Crossing,
    Transfer,
    Files,
    SystemCalls,
    Boot,
}

impl Workload {
    pub fn kind(&self) -> WorkloadKind {
        match self {
            Self::Copy(_) => WorkloadKind::Copy,
            Self::Write(_) => WorkloadKind::Write,
            Self::Command(_) => WorkloadKind::Command,
            Self::Memory(_) => WorkloadKind::Memory,
            Self::Chase(_) => WorkloadKind::Chase,
            Self::Reclaim(_) => WorkloadKind::Reclaim,
            Self::Primes(_) => WorkloadKind::Primes,
            Self::Crossing(_) => WorkloadKind::Crossing,
            Self::Transfer(_) => WorkloadKind::Transfer,
            Self::Files(_) => WorkloadKind::Files,
            Self::SystemCalls(_) => WorkloadKind::SystemCalls,
            Self::Boot(_) => WorkloadKind::Boot,
        }
    }
}

/// Parameters of the memory workload that the published set of reclaim has.
const PUBLISHED_PARAMETERS: &[&str] = &[
    "addressing",
    "order",
    "initialisation",
    "buffer",
    "steps",
    "reached_pages",
];

impl WorkloadKind {
    /// Names of its parameters; `None` for a command, which has any.
    pub fn parameters(self) -> Option<Vec<String>> {
        if self == Self::Command {
            return None;
        }
        let default = self.read(&[]).expect("no level is wrong");
        let message = serde_json::to_value(default).expect("a message is plain data");
        let fields = message.as_object().into_iter().flatten();
        let mut names: Vec<String> = fields.map(|(name, _)| name.clone()).collect();
        names.retain(|name| !name.starts_with('@') && name != "kind");
        let more: &[&str] = match self {
            Self::Reclaim => PUBLISHED_PARAMETERS,
            _ => &[],
        };
        let more = more.iter().chain(self.surroundings());
        names.extend(more.map(|name| (*name).to_owned()));
        Some(names)
    }

    /// The parameters that `toll` sees to.
    fn surroundings(self) -> &'static [&'static str] {
        match self {
            Self::Copy | Self::Write | Self::Command | Self::SystemCalls => &["fs"],
            Self::Memory | Self::Reclaim => &["pressure", "limit", "fs"],
            Self::Transfer => &["content", "fs"],
            Self::Files => &["mount_cache", "round_trip_ms", "fs"],
            Self::Crossing => &["mount_cache", "fs"],
            Self::Chase | Self::Primes | Self::Boot => &[],
        }
    }

    pub fn has(self, name: &str) -> bool {
        self.parameters()
            .is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// Whether a parameter can have this level.
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
            _ if self == Self::Reclaim && PUBLISHED_PARAMETERS.contains(&name) => {
                from_levels::<MemoryRequest>(level).map(drop)
            }
            _ => self.read(&level).map(drop),
        }
    }

    /// What `toll` sees to, as levels say; those of other parameters do not matter.
    pub fn surroundings_of(self, levels: &[(&str, &str)]) -> Result<Surroundings, String> {
        from_levels(chosen(levels, |name| self.surroundings().contains(&name)))
    }

    /// What the probe is asked, as levels say; those of other parameters do not
    /// matter. Directories, files and seeds are to be filled in, and all of a
    /// command.
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

    fn read(self, levels: &[(&str, &str)]) -> Result<Workload, String> {
        let all = levels.iter().copied();
        Ok(match self {
            Self::Copy => Workload::Copy(from_levels(all)?),
            Self::Write => Workload::Write(from_levels(all)?),
            Self::Command => Workload::Command(CommandRequest::default()),
            Self::Memory => Workload::Memory(in_lines(from_levels(all)?)),
            Self::Chase => {
                let mut chase: ChaseRequest = from_levels(all)?;
                chase.size_bytes -= chase.size_bytes % LINE_BYTES;
                Workload::Chase(chase)
            }
            Self::Reclaim => reclaim(levels)?,
            Self::Primes => Workload::Primes(from_levels(all)?),
            Self::Crossing => Workload::Crossing(from_levels(all)?),
            Self::Transfer => {
                let sizes = all.filter(|level| *level != ("receiver_buffer", "same"));
                let mut transfer: TransferRequest = from_levels(sizes)?;
                if transfer.receiver_buffer_bytes == 0 {
                    transfer.receiver_buffer_bytes = transfer.buffer_bytes;
                }
                Workload::Transfer(transfer)
            }
            Self::Files => Workload::Files(from_levels(all)?),
            Self::SystemCalls => Workload::SystemCalls(from_levels(all)?),
            Self::Boot => Workload::Boot(from_levels(all)?),
        })
    }
}

fn chosen<'a>(
    levels: &[(&'a str, &'a str)],
    is_chosen: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    levels
        .iter()
        .copied()
        .filter(move |(name, _)| is_chosen(name))
}

fn in_lines(mut memory: MemoryRequest) -> MemoryRequest {
    memory.buffer_bytes -= memory.buffer_bytes % LINE_BYTES;
    memory
}

fn reclaim(levels: &[(&str, &str)]) -> Result<Workload, String> {
    let of_memory = |name: &str| PUBLISHED_PARAMETERS.contains(&name);
    let own = chosen(levels, |name| !of_memory(name));
    let mut reclaim: ReclaimRequest = from_levels(own)?;
    if reclaim.set == WorkingSet::Published {
        let published = chosen(levels, |name| of_memory(name) || name == "mapping");
        return Ok(Workload::Memory(MemoryRequest {
            // The initialisation brings the pages in. All of them warm before is
            // more than a kernel short of memory can promise.
            cache: CacheState::Cold,
            ..in_lines(from_levels(published)?)
        }));
    }
    if !levels.iter().any(|(name, _)| *name == "mapping") {
        reclaim.mapping = reclaim.set.usual_mapping();
    }
    Ok(Workload::Reclaim(reclaim))
}

/// Room on disk for a program of system calls.
const SYSTEM_CALLS_SCRATCH_BYTES: u64 = 64 << 20;

/// What a trial needs of the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskNeeds {
    /// Size of the file that it reads.
    pub source_bytes: Option<u64>,
    /// Size of the file of zeros that it maps or reads.
    pub zeros_bytes: Option<u64>,
    /// Most bytes that it has on the file system at a time beside these.
    pub scratch_bytes: u64,
}

impl Workload {
    pub fn disk_needs(&self) -> DiskNeeds {
        let mut needs = DiskNeeds::default();
        match self {
            Self::Copy(copy) => {
                let has_source = copy.source != Source::Zero;
                needs.source_bytes = has_source.then_some(copy.size_bytes);
                needs.scratch_bytes = copy.size_bytes;
            }
            Self::Write(write) => needs.scratch_bytes = write.input_bytes,
            Self::Memory(memory) => {
                let is_mapped = memory.mapping != Mapping::Anonymous;
                needs.zeros_bytes = is_mapped.then_some(memory.buffer_bytes);
            }
            Self::Reclaim(reclaim) => {
                let streams_file = reclaim.set.streams_file();
                needs.zeros_bytes = streams_file.then_some(reclaim.stream_bytes);
                needs.scratch_bytes = reclaim.hot_bytes;
            }
            Self::Transfer(transfer) => {
                needs.source_bytes = Some(transfer.size_bytes);
                needs.scratch_bytes = transfer.size_bytes;
            }
            Self::Files(files) => {
                let bytes = match files.operation.is_of_tree() {
                    // A file takes a block of its own at least.
                    true => files.small_bytes.next_multiple_of(4096).max(4096) * files.count,
                    false => files.size_bytes,
                };
                // What an untimed pass makes is beside what the timed one does.
                needs.scratch_bytes = 2 * bytes;
            }
            Self::Crossing(crossing) => needs.scratch_bytes = crossing.file_bytes(),
            // What a program writes is for the program to know; most write little.
            Self::SystemCalls(_) => needs.scratch_bytes = SYSTEM_CALLS_SCRATCH_BYTES,
            Self::Command(_) | Self::Chase(_) | Self::Primes(_) | Self::Boot(_) => {}
        }
        needs
    }

    /// Whether its iterations begin with files that must not be in memory.
    pub fn begins_cold(&self) -> bool {
        match self {
            Self::Copy(copy) => {
                let has_cold_source = copy.source != Source::Zero && copy.cache == CacheState::Cold;
                has_cold_source || (copy.sink == Sink::File && copy.sink_file == SinkFile::Cold)
            }
            Self::Memory(memory) => {
                memory.mapping != Mapping::Anonymous && memory.cache == CacheState::Cold
            }
            Self::Files(files) => files.cache == CacheState::Cold,
            Self::Reclaim(reclaim) => reclaim.set.streams_file(),
            _ => false,
        }
    }

    /// Bytes of memory that a trial needs and that no file holds, if it is one that
    /// needs much.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self {
            // A shared file's pages can always go back to the file.
            Self::Memory(memory) => Some(match memory.mapping {
                Mapping::FileShared(_) => 0,
                _ => memory.buffer_bytes,
            }),
            // The order of the cycle is kept beside it, 4 bytes a line.
            Self::Chase(chase) => Some(chase.size_bytes + chase.size_bytes / 16),
            Self::Crossing(crossing) => crossing.memory_bytes(),
            Self::Reclaim(reclaim) => {
                let stream = match reclaim.set.streams_file() {
                    true => 0,
                    false => reclaim.stream_bytes,
                };
                let hot = match reclaim.mapping {
                    HotMapping::Anonymous => reclaim.hot_bytes,
                    HotMapping::FilePrivate | HotMapping::FileShared => 0,
                };
                Some(stream + hot)
            }
            _ => None,
        }
    }
}
