//! Moving bytes from a source to a sink.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::BUFFER_BYTES_MAX;
use crate::levels::{from_levels, size, sizes};
use crate::work_request::{DiskNeeds, WorkRequest};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CopyRequest {
    pub method: CopyMethod,
    pub source: Source,
    pub sink: Sink,
    /// State of the source's pages in the page cache before each iteration. Ignored for
    /// [`Source::Zero`], which has no pages.
    pub cache: CacheState,
    /// How the source is read.
    pub io: SourceIo,
    /// State of [`Sink::File`] before it is written.
    pub sink_file: SinkFile,
    #[serde(rename = "size", deserialize_with = "size")]
    pub size_bytes: u64,
    /// Size in bytes of the buffer, or of a chunk for methods without a buffer. A method that
    /// allows no choice derives its size and records it in a note.
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

/// Ways to move bytes from one file descriptor to another. The names cat1 to cat6 are those of the
/// MeowLab report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyMethod {
    /// `read`/`write` of one byte (cat1).
    Byte,
    /// `read`/`write` through a page-sized buffer from `malloc` (cat2).
    Page,
    /// Like `Page`, with the buffer aligned to a page (cat3).
    PageAligned,
    /// `read`/`write` through a buffer whose size is the least common multiple of the page size and
    /// `st_blksize` (cat4).
    FsBlock,
    /// `read`/`write` through an aligned buffer of `buffer_bytes` (cat5).
    Swept,
    /// Like `Swept`, after `fcntl(fd, 0, 0, 2)` (cat6). Command 0 is `F_DUPFD`, so the call
    /// duplicates a file descriptor and gives no advice.
    FcntlDupfd,
    /// Like `Swept`, after `posix_fadvise(POSIX_FADV_SEQUENTIAL)`: what cat6 intended.
    Advised,
    /// Like `Swept`, after `posix_fadvise(POSIX_FADV_RANDOM)`.
    AdvisedRandom,
    /// `readv`/`writev` with four parts that have `buffer_bytes` in total.
    Readv,
    /// `mmap` of the source and `write` from the mapping.
    Mmap,
    Sendfile,
    /// `splice` through a pipe, or directly into the sink if that is a pipe.
    Splice,
    /// `read` into a ring of pages that `vmsplice` lends to a pipe.
    Vmsplice,
    /// `copy_file_range`; needs a regular file as sink.
    CopyFileRange,
    /// io_uring with registered buffers and several reads and writes in flight.
    IoUring,
    /// The system's `cat` program, less its start-up time on an empty file.
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
        /// XXH3-64 hash of the file's first `size_bytes` bytes, to check what arrived.
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
    /// Bypasses the page cache (`O_DIRECT`); only for methods that read into one buffer.
    Direct,
}

/// State of a regular file used as the sink, before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SinkFile {
    /// An empty file, created for the copy.
    New,
    /// A file of the copy's length whose blocks are on the device and not in the page cache, so
    /// that the copy overwrites them.
    Cold,
}

/// State of a file's pages in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// No page is resident; `mincore` or `cachestat` checks it.
    Cold,
    Warm,
}

impl WorkRequest for CopyRequest {
    const SURROUNDINGS: &'static [&'static str] = &["fs"];

    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn disk_needs(&self) -> DiskNeeds {
        let has_source = self.source != Source::Zero;
        DiskNeeds {
            source_bytes: has_source.then_some(self.size_bytes),
            scratch_bytes: self.size_bytes,
            ..DiskNeeds::default()
        }
    }

    fn begins_cold(&self) -> bool {
        let has_cold_source = self.source != Source::Zero && self.cache == CacheState::Cold;
        has_cold_source || (self.sink == Sink::File && self.sink_file == SinkFile::Cold)
    }

    fn place(&mut self, directory: &Path, _seed: u64) {
        self.directory = directory.to_owned();
    }
}
