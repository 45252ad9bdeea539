//! The source of a copy.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use toll_wire::{CacheState, CopyRequest, Failure, Source, SourceIo};

use crate::buffer::page_bytes;
use crate::failure::{self, OrFail};
use crate::page_cache::{self, Residency};
use crate::scratch::{open_laid_out, open_laid_out_with};

const OPEN: &str = "open the source";

pub struct OpenSource {
    path: PathBuf,
    file: File,
    /// The state to bring the source's pages into, and the bytes that these pages cover; `None` for
    /// a source without pages.
    pages: Option<(CacheState, u64)>,
    /// Residency of the source's pages at the start of the last iteration.
    residency: Cell<Option<Residency>>,
    io: SourceIo,
}

pub struct Input(File);

impl Input {
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn into_file(self) -> File {
        self.0
    }
}

impl OpenSource {
    pub fn open(copy: &CopyRequest) -> Result<Self, Failure> {
        match &copy.source {
            Source::File { path, .. } => Ok(Self {
                io: copy.io,
                ..Self::of_file(path, copy.size_bytes, copy.cache)?
            }),
            Source::Zero => open_zero(),
        }
    }

    /// Opens a file, and checks that it is regular and has at least `size_bytes`. Its
    /// pages are in the state `cache` when an iteration begins.
    pub fn of_file(path: &Path, size_bytes: u64, cache: CacheState) -> Result<Self, Failure> {
        let file = open_laid_out(path).failed_with(OPEN, path)?;
        let metadata = file.metadata().failed_with(OPEN, path)?;
        let shown = path.display();
        if !metadata.is_file() {
            return Err(failure::failed(format!(
                "cannot copy {shown}: it is not a regular file; choose a regular file"
            )));
        }
        if metadata.len() < size_bytes {
            return Err(failure::failed(format!(
                "cannot copy {size_bytes} bytes of {shown}: it has only {}; choose a longer file",
                metadata.len()
            )));
        }
        page_cache::check_state(&file, cache)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            pages: Some((cache, size_bytes)),
            residency: Cell::new(None),
            io: SourceIo::Buffered,
        })
    }

    /// Brings the source's pages into their state and reopens it, because a descriptor
    /// keeps its position and its read-ahead state.
    pub fn ready(&self) -> Result<Input, Failure> {
        if let Some((state, size_bytes)) = self.pages {
            let residency = page_cache::establish(&self.file, size_bytes, state)?;
            self.residency.set(Some(residency));
        }
        let opened = match self.io {
            SourceIo::Buffered => open_laid_out(&self.path).failed_with(OPEN, &self.path),
            SourceIo::Direct => open_laid_out_with(&self.path, libc::O_DIRECT).unsupported_by(
                format_args!("open {} with O_DIRECT", self.path.display()),
                "this file system has no direct I/O",
            ),
        };
        opened.map(Input)
    }

    /// Whether the content is checked before the timed iterations. A cold source
    /// must not be read before them.
    pub fn verifies_first(&self, copy: &CopyRequest) -> bool {
        self.pages.is_none() || copy.cache == CacheState::Warm
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a note on how much of the source was in the page cache, and how that is known;
    /// `None` for a source without pages.
    pub fn note(&self) -> Option<String> {
        let (state, size_bytes) = self.pages?;
        let residency = self.residency.get()?;
        let pages = size_bytes.div_ceil(page_bytes() as u64);
        Some(format!(
            "{} of the source's {pages} pages were resident when the last iteration began, {}",
            residency.pages,
            residency.proof(state)
        ))
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

fn open_zero() -> Result<OpenSource, Failure> {
    let path = PathBuf::from("/dev/zero");
    let file = File::open(&path).failed_with(OPEN, &path)?;
    Ok(OpenSource {
        path,
        file,
        pages: None,
        residency: Cell::new(None),
        io: SourceIo::Buffered,
    })
}
