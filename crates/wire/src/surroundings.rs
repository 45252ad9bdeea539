//! Parameters that `toll` handles. The probe only gets the result.

use serde::{Deserialize, Serialize};

use crate::MEMORY_BYTES_MAX;
use crate::levels::{count, sizes};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Surroundings {
    pub fs: WorkFileSystem,
    /// How much of a file is cached by a file system that a program serves. If absent, that program
    /// decides.
    pub mount_cache: Option<MountCache>,
    /// Round-trip time to the SSH server of a file system, in milliseconds.
    #[serde(deserialize_with = "count::<0, 10_000, _, _>")]
    pub round_trip_ms: u64,
    pub pressure: Pressure,
    /// Memory limit of a trial on this machine, in bytes.
    #[serde(rename = "limit", deserialize_with = "limit_size")]
    pub limit_bytes: Option<u64>,
    pub content: SourceContent,
}

sizes! {
    limit_size: LIMIT_BYTES_MIN..=MEMORY_BYTES_MAX,
        "64 MiB (room for the probe itself) to 64 GiB";
}

/// Smallest memory limit of a trial, in bytes.
pub const LIMIT_BYTES_MIN: u64 = 64 << 20;

/// File systems for the files of trials: that of the work directory, those created on loop devices,
/// a foreign one that is mounted, and those that a program serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkFileSystem {
    #[default]
    Work,
    Ext4,
    Xfs,
    /// With blocks of 2 KiB in stripes of three, whose `st_blksize` is 6,144.
    XfsStriped,
    Btrfs,
    Tmpfs,
    Foreign,
    Userfs,
    UserfsWriteback,
    UserfsPassthrough,
    UserfsSftp,
    #[serde(rename = "userfs-sftp-20s")]
    UserfsSftp20s,
    Sshfs,
    SshfsNewest,
    PassthroughHp,
    PassthroughHpNosplice,
}

impl WorkFileSystem {
    /// Whether a program in user space serves this file system.
    pub fn is_served(self) -> bool {
        self >= Self::Userfs
    }
}

/// How much of a file a served file system caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountCache {
    Whole,
    Blocks,
    None,
}

/// Whether a process competes with the trial for memory, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    #[default]
    None,
    Competing,
    Sweeping,
}

/// Content of a file to be copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceContent {
    /// Pseudo-random bytes. File systems that compress or detect zeros would
    /// otherwise move less than the size says.
    #[default]
    Random,
    /// The two lines of text that the Virtual Device report sends, repeated.
    Lines,
}
