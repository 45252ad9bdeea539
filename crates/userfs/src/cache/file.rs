//! An open file with a local copy, shared by all who have it open.
//!
//! Of each byte below the file's length one thing holds: it is *present* in
//! the copy; or it is not and lies below `valid_bytes`, and the source has it
//! at the same offset; or it lies above, and is zero, as the copy is there.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::Mode;
use super::copy::{Copy, data_ranges};
use super::draft::Ahead;
use crate::mount::Shared;
use crate::part::read_full;
use crate::ranges::Ranges;
use crate::source::{Attributes, Error, Handle, Result, Seek, Time};
use crate::tree::Version;

/// A file and its copy.
pub(crate) struct CachedFile {
    pub(super) shared: Arc<Shared>,
    pub(super) ino: u64,
    pub(super) mode: Mode,
    pub(super) state: Mutex<State>,
    /// Told when a fetch under way has ended.
    pub(super) fetched: Condvar,
    /// Held during a write-back and a change of length: a write-back sees one
    /// length from its begin to its end.
    pub(super) whole: Mutex<()>,
}

pub(super) struct State {
    pub copy: Copy,
    pub size_bytes: u64,
    pub present: Ranges,
    /// What the source does not have yet; part of `present`.
    pub dirty: Ranges,
    /// A write-back has taken changes and not yet brought them.
    pub is_in_transit: bool,
    /// What somebody is fetching.
    pub in_flight: Ranges,
    /// The source's length.
    pub source_bytes: u64,
    /// Below, the source has what is not present.
    pub valid_bytes: u64,
    /// Changed when the copy begins anew, so that what is fetched for the one
    /// before is not taken.
    pub epoch: u64,
    /// Time of the last change that the source does not know.
    pub mtime: Option<Time>,
    pub atime: Option<Time>,
    /// Open at the source, for fetching and for writing in place.
    pub handle: Option<Arc<dyn Handle>>,
    pub is_writable: bool,
    /// What the copy was made from, or was written back as.
    pub version: Option<Version>,
    /// Opened to be overwritten, and nothing has been written yet.
    pub is_cut: bool,
    /// No name is left at the source, so nothing needs to go there.
    pub is_removed: bool,
    /// Where a sequential reader would go on, and how far ahead is fetched.
    pub next_read: u64,
    pub ahead_bytes: u64,
    /// What is sent before the file is written back.
    pub ahead: Ahead,
    /// The source was told of changes by this mount that may not have reached
    /// its device.
    pub is_unsynced: bool,
}

impl State {
    /// Whether the source has to be told of changes of the content.
    pub fn is_changed(&self) -> bool {
        !self.dirty.is_empty()
            || self.is_in_transit
            || self.size_bytes != self.source_bytes
            || self.valid_bytes < self.source_bytes
            || self.mtime.is_some()
            || self.atime.is_some()
    }

    /// Begins anew with what the source has.
    fn begin(&mut self, attributes: &Attributes) -> std::io::Result<()> {
        self.copy.set_len(0)?;
        self.copy.set_len(attributes.size_bytes)?;
        self.present = Ranges::default();
        self.ahead.begin();
        self.epoch += 1;
        self.size_bytes = attributes.size_bytes;
        self.source_bytes = attributes.size_bytes;
        self.valid_bytes = attributes.size_bytes;
        self.version = Some(Version::of(attributes));
        Ok(())
    }
}

impl CachedFile {
    /// A file of which nothing is known yet.
    pub fn new(shared: &Arc<Shared>, ino: u64, mode: Mode) -> Result<Self> {
        Ok(Self {
            shared: Arc::clone(shared),
            ino,
            mode,
            state: Mutex::new(State {
                copy: Copy::new(&shared.directory)?,
                size_bytes: 0,
                present: Ranges::default(),
                dirty: Ranges::default(),
                is_in_transit: false,
                in_flight: Ranges::default(),
                source_bytes: 0,
                valid_bytes: 0,
                epoch: 0,
                mtime: None,
                atime: None,
                handle: None,
                is_writable: false,
                version: None,
                is_cut: false,
                is_removed: false,
                next_read: 0,
                ahead_bytes: 0,
                ahead: Ahead::default(),
                is_unsynced: false,
            }),
            fetched: Condvar::new(),
            whole: Mutex::new(()),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    pub(super) fn hold_whole(&self) -> MutexGuard<'_, ()> {
        self.whole.lock().expect("no holder of the lock panics")
    }

    /// Opens it at the source, as `open` does: a copy without changes of its
    /// own begins anew if the source has another version by now. Returns what
    /// the source says of it.
    pub fn open(
        &self,
        is_writable: bool,
        truncate: bool,
        open: impl FnOnce() -> Result<(Box<dyn Handle>, Attributes)>,
    ) -> Result<Attributes> {
        // What the source says must not be older than what a write-back has
        // brought there meanwhile.
        let whole = self.hold_whole();
        let (handle, attributes) = open()?;
        let mut state = self.state();
        let is_same = state.version == Some(Version::of(&attributes))
            && self.shared.is_settled(attributes.mtime);
        if state.handle.is_none() || (!is_same && !state.is_changed()) {
            state.begin(&attributes)?;
            state.handle = Some(Arc::from(handle));
            state.is_writable = is_writable;
        } else if is_writable && !state.is_writable {
            state.handle = Some(Arc::from(handle));
            state.is_writable = true;
        }
        if truncate {
            self.resize(&mut state, 0)?;
            state.is_cut = true;
        }
        drop(state);
        drop(whole);
        if self.mode == Mode::Whole {
            self.fetch_all()?;
        }
        Ok(attributes)
    }

    /// The source's attributes as the mount shows them: with what the source
    /// does not know yet.
    pub fn overlay(&self, attributes: &mut Attributes) {
        let state = self.state();
        attributes.size_bytes = state.size_bytes;
        if let Some(mtime) = state.mtime {
            attributes.mtime = mtime;
            attributes.ctime = attributes.ctime.max(mtime);
        }
        if let Some(atime) = state.atime {
            attributes.atime = atime;
        }
        if state.is_changed() {
            attributes.blocks = attributes.blocks.max(state.present.bytes().div_ceil(512));
        }
    }

    /// Open at the source, for attributes of a file without a name.
    pub fn handle(&self) -> Option<Arc<dyn Handle>> {
        self.state().handle.clone()
    }

    /// The version that the copy stands for, if it is the source's.
    pub fn version(&self) -> Option<Version> {
        let state = self.state();
        state.version.filter(|_| !state.is_changed())
    }

    /// Reads; less than the buffer at the end of the file only.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = offset..offset.saturating_add(buffer.len() as u64);
        self.make_present(&wanted)?;
        let (file, size_bytes) = {
            let state = self.state();
            (state.copy.file(), state.size_bytes)
        };
        let length = size_bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let done = read_full(&file, &mut buffer[..length], offset)?;
        // The copy is as long as the file, unless somebody cuts it just now.
        Ok(done)
    }

    /// Writes into the copy.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .filter(|end| i64::try_from(*end).is_ok())
            .ok_or(Error::Errno(libc::EFBIG))?;
        let mut state = self.state();
        state.copy.write_at(bytes, offset)?;
        state.present.insert(offset..end);
        state.dirty.insert(offset..end);
        state.ahead.written(offset..end);
        state.size_bytes = state.size_bytes.max(end);
        state.mtime = Some(self.shared.now());
        state.is_cut = false;
        Ok(())
    }

    /// Sets the length.
    pub fn truncate(&self, size_bytes: u64) -> Result<()> {
        let _whole = self.hold_whole();
        let mut state = self.state();
        self.resize(&mut state, size_bytes)
    }

    fn resize(&self, state: &mut State, size_bytes: u64) -> Result<()> {
        if size_bytes == 0 {
            // Not even the blocks of what is fetched meanwhile are wanted.
            state.epoch += 1;
        }
        state.copy.set_len(size_bytes)?;
        state.present.cut(size_bytes);
        state.dirty.cut(size_bytes);
        state.ahead.cut(size_bytes);
        state.valid_bytes = state.valid_bytes.min(size_bytes);
        state.size_bytes = size_bytes;
        state.is_cut = false;
        state.mtime = Some(self.shared.now());
        Ok(())
    }

    /// Sets times, which the source is told when the file is written back.
    pub fn set_times(&self, atime: Option<Time>, mtime: Option<Time>) {
        let mut state = self.state();
        state.atime = atime.or(state.atime);
        state.mtime = mtime.or(state.mtime);
    }

    /// `fallocate` on the copy: room at the end, zeros, or holes.
    pub fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length);
        let keeps_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let zeros = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !(zeros | libc::FALLOC_FL_KEEP_SIZE) != 0 {
            return Err(Error::Errno(libc::EOPNOTSUPP));
        }
        let _whole = self.hold_whole();
        let mut state = self.state();
        if end > state.size_bytes && !keeps_size {
            self.resize(&mut state, end)?;
        }
        if mode & zeros != 0 {
            let end = end.min(state.size_bytes);
            self.zero(&mut state, offset..end.max(offset))?;
        }
        Ok(())
    }

    fn zero(&self, state: &mut State, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        let length = range.end - range.start;
        rustix::fs::fallocate(&*state.copy.file(), flags, range.start, length)?;
        state.present.insert(range.clone());
        state.ahead.cut(range.start);
        state.dirty.insert(range);
        state.mtime = Some(self.shared.now());
        Ok(())
    }

    /// `lseek` for data and holes, told exactly only of what is present.
    pub fn seek(&self, offset: u64, what: Seek) -> Result<u64> {
        let state = self.state();
        if offset >= state.size_bytes {
            return Err(Error::Errno(libc::ENXIO));
        }
        let is_complete = state.present.missing(0..state.valid_bytes).is_empty();
        if !is_complete {
            // What is not here yet counts as data, which is always right.
            return Ok(match what {
                Seek::Data => offset,
                Seek::Hole => state.size_bytes,
            });
        }
        let file = state.copy.file();
        let ranges = data_ranges(&file, offset..state.size_bytes);
        match what {
            Seek::Data => ranges
                .first()
                .map(|range| range.start)
                .ok_or(Error::Errno(libc::ENXIO)),
            Seek::Hole => Ok(match ranges.first() {
                Some(first) if first.start == offset => first.end,
                _ => offset,
            }),
        }
    }

    /// The last name is gone: nothing needs to go to the source any more.
    pub fn removed(&self) {
        self.state().is_removed = true;
    }

    /// Whether the source has to be told of changes.
    pub fn is_changed(&self) -> bool {
        let state = self.state();
        state.is_changed() && !state.is_removed
    }

    /// Whether closing a descriptor should leave the source alone: a shell
    /// opens what a command's output replaces, and closes that descriptor,
    /// before the command writes. The source keeps the old content until there
    /// is a new one, or nobody has the file open.
    pub fn awaits_content(&self) -> bool {
        self.state().is_cut
    }
}
