//! The parameters of each workload, and the words that they take.

use toll_wire::{CROSSING_CALLS_MAX, FILES_MAX, PASSES_MAX, PRIMES_N_MAX, PROCESSES_MAX};

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

const COPY_WORDS: &[(&str, &[&str])] = &[
    (
        "method",
        &[
            "byte",
            "page",
            "page-aligned",
            "fs-block",
            "swept",
            "advised",
            "fcntl-dupfd",
            "readv",
            "mmap",
            "sendfile",
            "splice",
            "vmsplice",
            "copy-file-range",
            "io-uring",
            "system-cat",
        ],
    ),
    ("source", &["zero", "file"]),
    ("sink", &["null", "pipe", "file", "socket"]),
    ("cache", &["cold", "warm"]),
    ("fs", FILE_SYSTEMS),
];
const WRITE_WORDS: &[(&str, &[&str])] = &[
    (
        "durability",
        &[
            "none",
            "o-sync",
            "o-dsync",
            "o-direct",
            "fsync",
            "fdatasync",
        ],
    ),
    ("placement", &["overwrite", "append"]),
    ("fs", FILE_SYSTEMS),
];
const HUGE_PAGES_WORDS: (&str, &[&str]) = ("huge_pages", &["none", "system", "madvise", "hugetlb"]);
const MEMORY_WORDS: &[(&str, &[&str])] = &[
    ("addressing", &["published", "corrected"]),
    ("order", &["sequential", "random"]),
    ("mapping", &["anonymous", "file-private", "file-shared"]),
    (
        "initialisation",
        &["none", "populate", "memset-msync", "fill"],
    ),
    HUGE_PAGES_WORDS,
    (
        "advice",
        &[
            "none",
            "sequential",
            "random",
            "willneed",
            "populate-read",
            "populate-write",
        ],
    ),
    ("cache", &["cold", "warm"]),
    ("pressure", &["none", "competing", "sweeping"]),
    ("fs", FILE_SYSTEMS),
];
const CHASE_WORDS: &[(&str, &[&str])] = &[HUGE_PAGES_WORDS];
const RECLAIM_WORDS: &[(&str, &[&str])] = &[
    (
        "set",
        &[
            "published",
            "private-hot",
            "shared-hot",
            "executable",
            "file-hot",
        ],
    ),
    ("addressing", &["published", "corrected"]),
    ("order", &["sequential", "random"]),
    ("mapping", &["anonymous", "file-private", "file-shared"]),
    (
        "initialisation",
        &["none", "populate", "memset-msync", "fill"],
    ),
    ("pressure", &["none", "competing", "sweeping"]),
    ("fs", FILE_SYSTEMS),
];
const PRIMES_WORDS: &[(&str, &[&str])] = &[
    (
        "placement",
        &[
            "user",
            "user-process",
            "syscall-published",
            "syscall",
            "module",
            "module-load",
            "bpf",
        ],
    ),
    ("random", &["seeded", "bulk", "each"]),
    ("printing", &["none", "inside"]),
    ("allocation", &["usual", "kmalloc", "vmalloc", "kvmalloc"]),
    ("clock", &["monotonic", "gettimeofday", "inside"]),
];
const CROSSING_WORDS: &[(&str, &[&str])] = &[
    (
        "operation",
        &[
            "user-call",
            "vdso",
            "clock-syscall",
            "empty-syscall",
            "unknown-syscall",
            "ioctl-pipe",
            "ioctl-module",
            "write-memfd",
            "copy-from-user",
            "page-fault",
            "signal",
            "pipe-ping-pong",
            "io-uring-nop",
        ],
    ),
    ("cpus", &["one", "two"]),
];
const TRANSFER_WORDS: &[(&str, &[&str])] = &[
    ("channel", &["device", "tcp", "unix", "pipe"]),
    (
        "sender",
        &[
            "read-write",
            "mmap",
            "sendfile",
            "splice",
            "zerocopy",
            "io-uring",
        ],
    ),
    ("receiver", &["read-write", "mmap", "splice"]),
    ("mode", &["sync", "fasync", "async"]),
    ("content", &["random", "lines"]),
    ("fs", FILE_SYSTEMS),
];
const FILES_WORDS: &[(&str, &[&str])] = &[
    (
        "operation",
        &[
            "read-sequential",
            "write-sequential",
            "read-random",
            "write-random",
            "create",
            "stat",
            "unlink",
            "open-tree",
        ],
    ),
    ("durability", &["none", "fsync"]),
    ("cache", &["cold", "warm"]),
    ("mount_cache", &["whole", "blocks", "none"]),
    ("fs", FILE_SYSTEMS),
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

/// The words of a workload's parameters that take words.
pub(super) fn words(kind: WorkloadKind) -> &'static [(&'static str, &'static [&'static str])] {
    match kind {
        WorkloadKind::Copy => COPY_WORDS,
        WorkloadKind::Write => WRITE_WORDS,
        WorkloadKind::Memory => MEMORY_WORDS,
        WorkloadKind::Chase => CHASE_WORDS,
        WorkloadKind::Reclaim => RECLAIM_WORDS,
        WorkloadKind::Primes => PRIMES_WORDS,
        WorkloadKind::Crossing => CROSSING_WORDS,
        WorkloadKind::Transfer => TRANSFER_WORDS,
        WorkloadKind::Files => FILES_WORDS,
        WorkloadKind::Command => &[("fs", FILE_SYSTEMS)],
    }
}
