//! Crossings between a program and the kernel, one kind at a time.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::levels::{count, from_levels, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrossingRequest {
    /// The operation that is repeated.
    pub operation: CrossingOperation,
    /// Bytes that one call copies, for operations that copy: 1 to [`CROSSING_BYTES_MAX`].
    #[serde(rename = "size", deserialize_with = "call_size")]
    pub size_bytes: u64,
    #[serde(deserialize_with = "count::<1, CROSSING_CALLS_MAX, _, _>")]
    pub calls: u64,
    pub cpus: CrossingCpus,
    pub peer: CrossingPeer,
    /// Operations that one `io_uring_enter` submits: 1 to [`RING_BATCH_MAX`].
    #[serde(deserialize_with = "count::<1, RING_BATCH_MAX, _, _>")]
    pub batch: u64,
    /// Directory on the file system under test, for the operations on files.
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
}

sizes! {
    call_size: 1..=CROSSING_BYTES_MAX, "1 byte to 1 GiB";
}

impl Default for CrossingRequest {
    fn default() -> Self {
        Self {
            operation: CrossingOperation::EmptySyscall,
            size_bytes: 4,
            calls: 1000,
            cpus: CrossingCpus::One,
            peer: CrossingPeer::Process,
            batch: 1,
            directory: PathBuf::new(),
        }
    }
}

/// Length in bytes of the file that is read or written, unless one call moves more.
pub const CROSSING_FILE_BYTES: u64 = 2 << 20;

/// A fault on a file's page also maps the pages around it, by default 64 KiB
/// (`fault_around_bytes`). So only one page in this many bytes is touched.
pub const FAULT_AROUND_BYTES: u64 = 64 << 10;

impl CrossingRequest {
    /// Returns the largest number of bytes that the workload has on the file system at a time.
    pub(crate) fn file_bytes(&self) -> u64 {
        use CrossingOperation as Op;
        match self.operation {
            Op::ReadFile | Op::WriteFile | Op::IoUringRead => {
                self.size_bytes.max(CROSSING_FILE_BYTES)
            }
            Op::FilePageFault => self.calls.saturating_mul(FAULT_AROUND_BYTES),
            Op::OpenClose | Op::Stat | Op::CreateUnlink | Op::Rename => 4096,
            _ => 0,
        }
    }

    /// Returns the memory in bytes that the workload needs; `None` if it needs little.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        use CrossingOperation as Op;
        match self.operation {
            Op::MemoryRead => Some(self.size_bytes),
            Op::MemoryFill | Op::MemoryCopy => Some(2 * self.size_bytes),
            Op::HugePageFault => Some(self.calls.saturating_mul(2 << 20)),
            _ => None,
        }
    }
}

pub const CROSSING_BYTES_MAX: u64 = 1 << 30;

/// Largest number of bytes that the driver `toll_primes` copies in one call.
pub const DRIVER_BYTES_MAX: u64 = 1 << 20;

pub const RING_BATCH_MAX: u64 = 1024;

pub const CROSSING_CALLS_MAX: u64 = 1 << 32;

/// A kind of crossing, or an operation to compare crossings with. Operations that move bytes move
/// `size_bytes` in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingOperation {
    /// A call to an empty function that is not inlined: no crossing.
    UserCall,
    /// `clock_gettime(CLOCK_MONOTONIC)` through the vDSO: no crossing where the clock source can
    /// be read from user space (vdso(7)).
    Vdso,
    /// `clock_gettime(CLOCK_MONOTONIC)` as a system call.
    ClockSyscall,
    /// `getppid` as a system call, which does next to nothing.
    EmptySyscall,
    /// System call number -1, which fails with `ENOSYS` at the table lookup.
    UnknownSyscall,
    /// `ioctl(FIONREAD)` on an empty pipe.
    IoctlPipe,
    /// `TOLL_PRIMES_EMPTY` on the driver `toll_primes`; guests only.
    IoctlModule,
    /// `pwrite` of `size_bytes` to offset 0 of a memfd whose pages are already allocated.
    WriteMemfd,
    /// `TOLL_PRIMES_COPY` of `size_bytes` to the driver `toll_primes`, which does little more than
    /// `copy_from_user`; guests only.
    CopyFromUser,
    /// The first write to a page of anonymous memory.
    PageFault,
    /// The first write to a transparent huge page.
    HugePageFault,
    /// The first read of a mapped page of a file that is in the page cache.
    FilePageFault,
    /// `mmap` and `munmap` of a page of anonymous memory that is never touched.
    MmapMunmap,
    /// A signal that the process sends to itself and handles.
    Signal,
    /// A byte to the other end and a byte back, each through a pipe.
    PipePingPong,
    /// A byte to the other end and a byte back through a pair of Unix stream sockets.
    UnixPingPong,
    /// A byte to the other end and a byte back through a TCP connection over loopback.
    TcpPingPong,
    /// An eight-byte number to the other end and one back, each through an eventfd.
    EventfdPingPong,
    /// Two ends change a word of shared memory in turn; each waits for the other with `futex`.
    FutexPingPong,
    /// A no-operation through an io_uring.
    IoUringNop,
    /// A read of `size_bytes` from a warm file through an io_uring.
    IoUringRead,
    /// `pread` of `size_bytes` from a warm file, at successive offsets.
    ReadFile,
    /// `pwrite` of `size_bytes` to a file whose pages are in the page cache.
    WriteFile,
    /// `open` and `close` of a file.
    OpenClose,
    Stat,
    /// `open` that creates a file, `close`, and `unlink`.
    CreateUnlink,
    /// `rename` of a file within a directory.
    Rename,
    /// A thread that does nothing, created and joined.
    ThreadCreate,
    /// A process that is created by `fork`, exits at once and is waited for.
    Fork,
    /// A statically linked program that exits at once, started by `posix_spawn`.
    SpawnStatic,
    /// A dynamically linked program that exits at once, started by `posix_spawn`.
    SpawnDynamic,
    /// A read of all words of a buffer of `size_bytes`.
    MemoryRead,
    /// `memset` of `size_bytes`.
    MemoryFill,
    /// `memcpy` of `size_bytes`.
    MemoryCopy,
}

impl CrossingOperation {
    /// Whether one call moves `size_bytes` bytes.
    pub fn moves_bytes(self) -> bool {
        matches!(
            self,
            Self::WriteMemfd
                | Self::CopyFromUser
                | Self::IoUringRead
                | Self::ReadFile
                | Self::WriteFile
                | Self::MemoryRead
                | Self::MemoryFill
                | Self::MemoryCopy
        )
    }
}

/// The other end of a ping-pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingPeer {
    Process,
    /// A thread of the same process.
    Thread,
}

/// Where the two ends of a ping-pong run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingCpus {
    /// Both on one CPU, so that each byte costs a context switch.
    One,
    /// Each on its own CPU, so that each byte wakes another CPU.
    Two,
}

impl WorkRequest for CrossingRequest {
    const SURROUNDINGS: &'static [&'static str] = &["mount_cache", "fs"];
    const PRICE_METRIC: Option<&'static str> = Some("duration_per_call_ns");

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn disk_needs(&self) -> DiskNeeds {
        DiskNeeds {
            scratch_bytes: self.file_bytes(),
            ..DiskNeeds::default()
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        CrossingRequest::memory_bytes(self)
    }

    fn place(&mut self, directory: &Path, _seed: u64) {
        self.directory = directory.to_owned();
    }
}
