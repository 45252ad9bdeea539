//! Moving bytes from a source to a sink.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::BUFFER_BYTES_MAX;
use crate::levels::{size, sizes};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CopyRequest {
    pub method: CopyMethod,
    pub source: Source,
    pub sink: Sink,
    /// State of the source's pages in the page cache before each iteration.
    /// Ignored for [`Source::Zero`], which has none.
    pub cache: CacheState,
    /// How the source is read.
    pub io: SourceIo,
    /// What [`Sink::File`] is before it is written.
    pub sink_file: SinkFile,
    #[serde(rename = "size", deserialize_with = "size")]
    pub size_bytes: u64,
    /// Buffer (or chunk, for methods without one) in bytes, for the methods
    /// that let it be chosen; the others derive it and say so in a note.
    #[serde(rename = "buffer", deserialize_with = "buffer_size")]
    pub buffer_bytes: Option<u64>,
    /// Directory on the file system under test, for [`Sink::File`].
    #[serde(rename = "@directory")]
    pub directory: PathBuf,
}

sizes! {
    buffer_size: 1..=BUFFER_BYTES_MAX, "1 byte to 1 GiB";
}

impl Default for CopyRequest {
    fn default() -> Self {
        Self {
            method: CopyMethod::Swept,
            source: Source::File {
                path: PathBuf::new(),
                xxh3: 0,
            },
            sink: Sink::Null,
            cache: CacheState::Warm,
            io: SourceIo::Buffered,
            sink_file: SinkFile::New,
            size_bytes: 16 << 20,
            buffer_bytes: None,
            directory: PathBuf::new(),
        }
    }
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
    /// As swept after `fcntl(fd, 0, 0, 2)` (cat6): command 0 is `F_DUPFD`, so a
    /// descriptor is duplicated and nothing is advised.
    FcntlDupfd,
    /// As swept after `posix_fadvise(POSIX_FADV_SEQUENTIAL)`: what cat6 meant.
    Advised,
    /// As swept after `posix_fadvise(POSIX_FADV_RANDOM)`.
    AdvisedRandom,
    /// `readv`/`writev` over four parts of `buffer_bytes` in all.
    Readv,
    /// `mmap` of the source and `write` from the mapping.
    Mmap,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Zero,
    /// A regular file of at least the copy's size.
    File {
        #[serde(default)]
        path: PathBuf,
        /// XXH3-64 of its first `size_bytes` bytes, against which what arrived
        /// is checked.
        #[serde(default)]
        xxh3: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sink {
    Null,
    /// A pipe whose reader, a thread of the probe, reads and drops the bytes.
    Pipe,
    /// A fresh regular file in the copy's directory.
    File,
    /// A TCP connection over loopback whose reader reads and drops the bytes.
    Socket,
}

/// Whether a source is read through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceIo {
    Buffered,
    /// Past it (`O_DIRECT`), by the methods that read into one buffer.
    Direct,
}

/// What a regular file as the sink is before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SinkFile {
    /// Empty, and made for the copy.
    New,
    /// As long as the copy, on the device and not in the page cache, so that its
    /// blocks are overwritten.
    Cold,
}

/// State of a file's pages in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// None resident, checked by `mincore` or `cachestat`.
    Cold,
    Warm,
}
