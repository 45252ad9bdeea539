//! The works that a probe can measure, with their parameters.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    ChaseRequest, CrossingRequest, FilesRequest, MemoryRequest, PrimesRequest, ReclaimRequest,
    TransferRequest,
};

/// A work to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Workload {
    /// Move a source's bytes to a sink.
    Copy(CopyRequest),
    /// Write a buffer to a file until all input is in it, with a durability.
    Write(WriteRequest),
    /// Run a program and account for it from outside.
    Command(CommandRequest),
    /// Touch the lines of a buffer by the published access function.
    Memory(MemoryRequest),
    /// Follow a random cycle of pointers.
    Chase(ChaseRequest),
    /// Use hot pages again and again while others stream by.
    Reclaim(ReclaimRequest),
    /// Count primes among random numbers.
    Primes(PrimesRequest),
    /// Cross between program and kernel again and again.
    Crossing(CrossingRequest),
    /// Send a file from one process to another.
    Transfer(TransferRequest),
    /// Work on files by their names.
    Files(FilesRequest),
}

/// Parameters of [`Workload::Copy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyRequest {
    /// How bytes are moved.
    pub method: CopyMethod,
    /// Where they come from.
    pub source: Source,
    /// Where they go.
    pub sink: Sink,
    /// State of the source's pages in the page cache before each iteration.
    /// Ignored for [`Source::Zero`], which has none.
    pub cache: CacheState,
    /// Bytes to move in one iteration.
    pub size_bytes: u64,
    /// Buffer (or chunk, for methods without one) in bytes, for the methods
    /// that let it be chosen; the others derive it and say so in a note.
    pub buffer_bytes: Option<u64>,
    /// Directory on the file system under test, for [`Sink::File`].
    pub directory: PathBuf,
}

/// Ways to move bytes from one descriptor to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyMethod {
    /// `read`/`write` of one byte (MeowLab cat1).
    Byte,
    /// `read`/`write` through a page-sized buffer from `malloc` (cat2).
    Page,
    /// The same with the buffer aligned to a page (cat3).
    PageAligned,
    /// Buffer of the least common multiple of page and `st_blksize` (cat4).
    FsBlock,
    /// Aligned buffer of `buffer_bytes` (cat5).
    Swept,
    /// As swept after `posix_fadvise(POSIX_FADV_SEQUENTIAL)`: what cat6 meant.
    Advised,
    /// As swept after `fcntl(fd, 0, 0, 2)`, the call cat6 really made: command
    /// 0 is `F_DUPFD`, so a descriptor is duplicated and nothing is advised.
    FcntlDupfd,
    /// `readv`/`writev` over four parts of `buffer_bytes` in all.
    Readv,
    /// `mmap` of the source and `write` from the mapping.
    Mmap,
    /// `sendfile`.
    Sendfile,
    /// `splice` through a pipe, or into it where the sink is one.
    Splice,
    /// `read` into a ring of pages that `vmsplice` lends to a pipe.
    Vmsplice,
    /// `copy_file_range`; needs a regular file as sink.
    CopyFileRange,
    /// io_uring with registered buffers and several reads and writes in flight.
    IoUring,
    /// The system's `cat` program, its start-up on an empty file deducted.
    SystemCat,
}

/// Where a copy's bytes come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `/dev/zero`.
    Zero,
    /// A regular file of at least the copy's size.
    File {
        /// The file.
        path: PathBuf,
        /// XXH3-64 of its first `size_bytes` bytes, against which what arrived
        /// is checked.
        xxh3: u64,
    },
}

/// Where a copy's bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sink {
    /// `/dev/null`.
    Null,
    /// A pipe whose reader, a thread of the probe, reads and drops the bytes.
    Pipe,
    /// A fresh regular file in the copy's directory.
    File,
    /// A TCP connection over loopback whose reader reads and drops the bytes.
    Socket,
}

/// State of a file's pages in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// None resident, checked by `mincore` or `cachestat`.
    Cold,
    /// All resident, checked likewise.
    Warm,
}

/// Parameters of [`Workload::Write`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteRequest {
    /// Directory on the file system under test; the probe makes and removes
    /// its file there.
    pub directory: PathBuf,
    /// Bytes given to one `write`; the last may be shorter.
    pub buffer_bytes: u64,
    /// Bytes written in one iteration.
    pub input_bytes: u64,
    /// When the bytes must have reached the device.
    pub durability: Durability,
    /// Whether blocks exist already.
    pub placement: Placement,
}

/// What is promised about bytes on the device when the timed region ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing: the page cache holds them.
    None,
    /// `O_SYNC`: every `write` waits for data and metadata.
    OSync,
    /// `O_DSYNC`: every `write` waits for data and what is needed to find it.
    ODsync,
    /// `O_DIRECT`: the page cache is bypassed; the device's own cache is not.
    ODirect,
    /// One `fsync` at the end.
    Fsync,
    /// One `fdatasync` at the end.
    Fdatasync,
}

/// Where writes go in their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// From offset 0 of a file whose blocks are allocated and on the device.
    Overwrite,
    /// Into an empty file, so that blocks are allocated on the way.
    Append,
}

/// Parameters of [`Workload::Command`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// The command line to measure.
    pub command: String,
    /// How it is started.
    pub shell: ShellChoice,
    /// Command run before every iteration, outside the timed region, always by
    /// `sh`.
    pub prepare: Option<String>,
    /// Where the command's standard output goes.
    pub output: OutputPolicy,
    /// Keep the start of both outputs in the sample, for metrics parsed from
    /// them; at most this many bytes of each. 0 keeps nothing.
    pub capture_bytes_max: u32,
    /// Take a non-zero exit status for a measurement all the same.
    pub ignore_failure: bool,
    /// Working directory; the probe's own if absent.
    pub directory: Option<PathBuf>,
}

/// How a command line becomes a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellChoice {
    /// Split into words and executed directly.
    None,
    /// Given to this program with `-c`.
    Program(PathBuf),
}

/// Where a measured command's standard output goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputPolicy {
    /// `/dev/null`. Programs that detect it may skip work.
    Null,
    /// A pipe that is read to its end and dropped.
    Pipe,
    /// Truncated and written anew by each iteration.
    File(PathBuf),
}
