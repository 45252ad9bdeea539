//! The parameters of each workload, and the words that they take.

use toll_wire::{
    AccessOrder, Addressing, CROSSING_CALLS_MAX, CacheState, Channel, CopyMethod, CrossingCpus,
    CrossingOperation, Durability, FILES_MAX, FilesOperation, HugePages, Initialisation, Mapping,
    MemoryAdvice, PASSES_MAX, PRIMES_N_MAX, PROCESSES_MAX, Placement, PrimesAllocation,
    PrimesClock, PrimesPlacement, Printing, RandomSource, ReceiveMethod, SendMethod, Sink,
    SocketMode, Source, WorkingSet, words as of,
};

use crate::spec::WorkloadKind;

const COPY_PARAMETERS: &[&str] = &["method", "source", "sink", "cache", "size", "buffer", "fs"];
const WRITE_PARAMETERS: &[&str] = &["buffer", "durability", "fs", "placement", "input"];
const MEMORY_PARAMETERS: &[&str] = &[
    "addressing",
    "order",
    "mapping",
    "initialisation",
    "huge_pages",
    "advice",
    "cache",
    "buffer",
    "steps",
    "pressure",
    "limit",
    "fs",
];
const CHASE_PARAMETERS: &[&str] = &["size", "accesses", "huge_pages"];
const RECLAIM_PARAMETERS: &[&str] = &[
    "set",
    "mapping",
    "hot",
    "stream",
    "processes",
    "passes",
    "addressing",
    "order",
    "initialisation",
    "buffer",
    "steps",
    "pressure",
    "limit",
    "fs",
];
const PRIMES_PARAMETERS: &[&str] = &[
    "placement",
    "n",
    "random",
    "printing",
    "allocation",
    "clock",
];
const CROSSING_PARAMETERS: &[&str] = &["operation", "size", "calls", "cpus"];
const TRANSFER_PARAMETERS: &[&str] = &[
    "channel",
    "sender",
    "receiver",
    "mode",
    "buffer",
    "receiver_buffer",
    "size",
    "content",
    "fs",
];
const FILES_PARAMETERS: &[&str] = &[
    "operation",
    "size",
    "small_size",
    "count",
    "buffer",
    "calls",
    "durability",
    "cache",
    "mount_cache",
    "round_trip_ms",
    "fs",
];
/// Parameters that are sizes.
pub(super) const SIZE_PARAMETERS: &[&str] = &[
    "size",
    "buffer",
    "receiver_buffer",
    "input",
    "limit",
    "hot",
    "stream",
    "small_size",
];

/// The receiver's buffer where it is as large as the sender's.
pub(super) const SAME: &str = "same";
/// Parameters that count something, with the least and the most of it. Steps
/// and accesses take days at that.
pub(super) const COUNT_PARAMETERS: &[(&str, u64, u64)] = &[
    ("steps", 1, 1 << 32),
    ("accesses", 1, 1 << 44),
    ("n", 2, PRIMES_N_MAX as u64),
    ("calls", 1, CROSSING_CALLS_MAX),
    ("count", 1, FILES_MAX),
    ("processes", 1, PROCESSES_MAX as u64),
    ("passes", 1, PASSES_MAX as u64),
    ("round_trip_ms", 0, 10_000),
];
/// Levels that the factor `fs` may have: the work directory's own, those made
/// on loop devices, a mounted foreign one, and those that a program serves.
pub const FILE_SYSTEMS: &[&str] = &[
    "work",
    "ext4",
    "xfs",
    "btrfs",
    "tmpfs",
    "foreign",
    "userfs",
    "userfs-writeback",
    "userfs-passthrough",
    "userfs-sftp",
    "userfs-sftp-20s",
    "sshfs",
    "sshfs-newest",
    "passthrough-hp",
    "passthrough-hp-nosplice",
];
/// Those of them that a program serves in user space.
pub const SERVED_FILE_SYSTEMS: &[&str] = FILE_SYSTEMS.split_at(6).1;

/// The parameters of a workload; a command has any.
pub(super) fn parameters(kind: WorkloadKind) -> Option<&'static [&'static str]> {
    match kind {
        WorkloadKind::Copy => Some(COPY_PARAMETERS),
        WorkloadKind::Write => Some(WRITE_PARAMETERS),
        WorkloadKind::Memory => Some(MEMORY_PARAMETERS),
        WorkloadKind::Chase => Some(CHASE_PARAMETERS),
        WorkloadKind::Reclaim => Some(RECLAIM_PARAMETERS),
        WorkloadKind::Primes => Some(PRIMES_PARAMETERS),
        WorkloadKind::Crossing => Some(CROSSING_PARAMETERS),
        WorkloadKind::Transfer => Some(TRANSFER_PARAMETERS),
        WorkloadKind::Files => Some(FILES_PARAMETERS),
        WorkloadKind::Command => None,
    }
}

/// The words that a parameter takes; `None` if it takes numbers or any text.
pub(super) fn words(kind: WorkloadKind, name: &str) -> Option<Vec<&'static str>> {
    let words = match (kind, name) {
        (_, "fs") => FILE_SYSTEMS,
        (WorkloadKind::Command, _) => return None,
        (WorkloadKind::Copy, "method") => of::<CopyMethod>(),
        (WorkloadKind::Copy, "source") => of::<Source>(),
        (WorkloadKind::Copy, "sink") => of::<Sink>(),
        (WorkloadKind::Write, "placement") => of::<Placement>(),
        (WorkloadKind::Files, "durability") => &["none", "fsync"],
        (_, "durability") => of::<Durability>(),
        (_, "cache") => of::<CacheState>(),
        (_, "addressing") => of::<Addressing>(),
        (_, "order") => of::<AccessOrder>(),
        (_, "mapping") => of::<Mapping>(),
        (_, "initialisation") => of::<Initialisation>(),
        (_, "huge_pages") => of::<HugePages>(),
        (_, "advice") => of::<MemoryAdvice>(),
        (_, "pressure") => &["none", "competing", "sweeping"],
        (_, "set") => return Some([&["published"], of::<WorkingSet>()].concat()),
        (WorkloadKind::Primes, "placement") => of::<PrimesPlacement>(),
        (_, "random") => of::<RandomSource>(),
        (_, "printing") => of::<Printing>(),
        (_, "allocation") => of::<PrimesAllocation>(),
        (_, "clock") => of::<PrimesClock>(),
        (WorkloadKind::Crossing, "operation") => of::<CrossingOperation>(),
        (_, "cpus") => of::<CrossingCpus>(),
        (_, "channel") => of::<Channel>(),
        (_, "sender") => of::<SendMethod>(),
        (_, "receiver") => of::<ReceiveMethod>(),
        (_, "mode") => of::<SocketMode>(),
        (_, "content") => &["random", "lines"],
        (WorkloadKind::Files, "operation") => of::<FilesOperation>(),
        (_, "mount_cache") => &["whole", "blocks", "none"],
        _ => return None,
    };
    Some(words.to_vec())
}
