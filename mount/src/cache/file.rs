//! An open file with a local copy, shared by everything that has it open.
//!
//! Each byte below the file's length is in one of three states:
//!
//! - *present* in the copy
//! - not present, below `valid_bytes`: the source has the byte at the same offset
//! - not present, at or above `valid_bytes`: the byte is zero, as in the copy

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::fs::FallocateFlags;

use super::Mode;
use super::copy::Copy;
use super::staged_upload::StagedUpload;
use super::write_back_state::WriteBackState;
use crate::content::read_full;
use crate::descriptors::Kept;
use crate::mount::{PathTurn, Shared};
use crate::ranges::Ranges;
use crate::source::{
    Attributes, Error, Handle, OpenFlags, OpenReply, Result, SeekFrom, Timespec, seek_in_data,
};
use crate::tree::Version;

/// How long a file counts as new after an open found it empty. Nobody else is assumed
/// to write to a new file, which saves a round trip for each.
const NEW_MAX: Duration = Duration::from_secs(1);

pub(crate) struct CachedFile {
    pub(super) shared: Arc<Shared>,
    pub(super) ino: u64,
    pub(super) mode: Mode,
    pub(super) state: Mutex<State>,
    /// Notified when a fetch or a staged upload has ended.
    pub(super) fetched: Condvar,
    /// Held during a write-back and during a change of length, so that a write-back
    /// sees one length. This lock is taken before any path lock.
    pub(super) write_back_lock: Mutex<()>,
    /// Reserves the descriptors of the copy and of the file at the source.
    _kept: Kept,
}

pub(super) struct State {
    pub copy: Copy,
    pub present: Ranges,
    /// State of the changes: how far they have been written back.
    pub progress: WriteBackState,
    pub in_flight: Ranges,
    pub source_bytes: u64,
    /// Below this offset, the source has the bytes that are not present in the copy.
    pub valid_bytes: u64,
    /// Whether a write-back in place has failed, so that the source's file may have
    /// part of the new content.
    pub is_torn: bool,
    /// Whether the changes are from a copy that an earlier mount kept.
    pub is_of_earlier_mount: bool,
    /// Changed when the copy starts over, so that content fetched for the previous copy
    /// is dropped.
    pub epoch: u64,
    /// Handle at the source, for fetching.
    pub handle: Option<Arc<dyn Handle>>,
    /// Handle at the source for writing in place. It may be of another file than
    /// `handle` if somebody has replaced the file at the source.
    pub writer: Option<Arc<dyn Handle>>,
    /// Version of the source's file that the copy was fetched from, or that was written
    /// back last.
    pub version: Option<Version>,
    /// Time of the last comparison of the version with the source's.
    pub compared: Instant,
    /// Access time of the source's file, as last reported.
    pub source_atime: Option<Timespec>,
    /// Offset where a sequential reader would continue. The next `ahead_bytes` are
    /// fetched early.
    pub next_read: u64,
    pub ahead_bytes: u64,
    /// Content that is sent ahead of the write-back.
    pub upload: StagedUpload,
    /// Number of the directory that holds a temporary file for this file.
    pub temporary_in: Option<u64>,
}

impl State {
    pub(super) fn begin(&mut self, attributes: &Attributes) -> Result<()> {
        // A file of this length may not fit. Until it does, there is no copy.
        self.handle = None;
        (self.valid_bytes, self.version) = (0, None);
        self.copy.set_len(0)?;
        self.copy.set_len(attributes.size_bytes)?;
        self.present = Ranges::default();
        self.progress.begin_anew(attributes.size_bytes);
        self.upload.begin();
        self.epoch += 1;
        self.source_bytes = attributes.size_bytes;
        self.valid_bytes = attributes.size_bytes;
        self.version = Some(Version::from_attributes(attributes));
        self.source_atime = Some(attributes.atime);
        if attributes.identity.is_none() {
            // The writer may be of a file that had the name earlier.
            self.writer = None;
        }
        Ok(())
    }

    /// Returns `EIO` if the copy could not start. Writing such a copy back would erase
    /// the content that it lacks.
    fn check_begun(&self) -> Result<()> {
        match &self.handle {
            Some(_) => Ok(()),
            None => Err(Error::Errno(libc::EIO)),
        }
    }

    fn overlay(&mut self, attributes: &mut Attributes) {
        self.source_atime = Some(attributes.atime);
        attributes.size_bytes = self.progress.size_bytes();
        let (atime, mtime) = self.progress.times();
        if let Some(mtime) = mtime {
            attributes.mtime = mtime;
            attributes.ctime = attributes.ctime.max(mtime);
        }
        attributes.atime = atime.unwrap_or(attributes.atime);
        if self.progress.is_changed() {
            attributes.blocks = attributes.blocks.max(self.present.bytes().div_ceil(512));
        }
    }
}

impl CachedFile {
    pub fn new(shared: &Arc<Shared>, ino: u64, mode: Mode) -> Result<Self> {
        Ok(Self {
            _kept: Kept::new(1 + shared.descriptors())?,
            shared: Arc::clone(shared),
            ino,
            mode,
            state: Mutex::new(State {
                copy: Copy::new(&shared.directory)?,
                present: Ranges::default(),
                progress: WriteBackState::default(),
                in_flight: Ranges::default(),
                source_bytes: 0,
                valid_bytes: 0,
                is_torn: false,
                is_of_earlier_mount: false,
                epoch: 0,
                handle: None,
                writer: None,
                version: None,
                compared: Instant::now(),
                source_atime: None,
                next_read: 0,
                ahead_bytes: 0,
                upload: StagedUpload::default(),
                temporary_in: None,
            }),
            fetched: Condvar::new(),
            write_back_lock: Mutex::new(()),
        })
    }

    /// Opens the file at the source by `open`. An unchanged copy starts over if the
    /// source's file has another version. `check` gets the attributes that the mount
    /// will show, and may refuse them. Returns the copy's version and those attributes.
    pub fn open(
        &self,
        is_writable: bool,
        truncate: bool,
        open: impl FnOnce() -> Result<OpenReply>,
        check: impl FnOnce(&Attributes) -> Result<()>,
    ) -> Result<(Option<Version>, Attributes)> {
        // The source's reply must not be older than the result of a write-back that
        // ends meanwhile.
        let writing_back = self.write_back_lock.lock();
        let found = open()?;
        let (mut attributes, begin) = (found.attributes, found.begin);
        let handle: Arc<dyn Handle> = Arc::from(found.handle);
        let mut state = self.state.lock();
        let is_same = state.version == Some(Version::from_attributes(&attributes))
            && self.shared.source.is_settled(attributes.ctime);
        if state.handle.is_none() || (!is_same && !state.progress.is_changed()) {
            state.begin(&attributes)?;
            state.handle = Some(Arc::clone(&handle));
            state.take(&(0..begin.len() as u64), &begin, begin.len())?;
        }
        // The copy has started over by now, so a lookup shows its length.
        let mut shown = attributes;
        state.overlay(&mut shown);
        check(&shown)?;
        if is_writable {
            state.writer = Some(handle);
        }
        if truncate {
            self.resize(&mut state, 0)?;
            state.progress.emptied();
        }
        if self.mode == Mode::Whole {
            let missing = state.present.missing(0..state.valid_bytes);
            let missing_bytes = missing.iter().map(|range| range.end - range.start).sum();
            // A local source does not count holes.
            let stored_bytes = attributes.blocks.saturating_mul(512);
            state.copy.check_space(stored_bytes.min(missing_bytes))?;
        }
        state.overlay(&mut attributes);
        state.compared = Instant::now();
        let version = state.version;
        drop(state);
        drop(writing_back);
        if self.mode == Mode::Whole {
            self.fetch(0..u64::MAX)?;
        }
        Ok((version, attributes))
    }

    /// Starts an unchanged copy over, as an open does, if the source's file has another
    /// version. The caller does this before a change, so that content written by others
    /// is not replaced. Returns whether the copy started over. If the version cannot be
    /// found out, for example without a connection, the copy stays.
    pub fn follow(&self, turn: &mut PathTurn, is_append: bool) -> Result<bool> {
        {
            let state = self.state.lock();
            let is_new = state.source_bytes == 0 && state.compared.elapsed() < NEW_MAX;
            // A write-back under way means that there are changes, and waiting for it
            // may take long.
            if (is_new && !is_append) || state.progress.is_changed() {
                return Ok(false);
            }
        }
        let _writing_back = self.write_back_lock.lock();
        let Some(news) = self.news(turn).unwrap_or(None) else {
            return Ok(false);
        };
        let mut state = self.state.lock();
        if state.progress.is_changed() || !self.shared.tree.is(self.ino, &news.attributes) {
            return Ok(false);
        }
        state.begin(&news.attributes)?;
        state.handle = Some(Arc::from(news.handle));
        Ok(true)
    }

    fn news(&self, turn: &mut PathTurn) -> Result<Option<OpenReply>> {
        let guard = self.shared.path(turn, self.ino)?;
        let found = self.shared.source.attributes(guard.path())?;
        let version = self.state.lock().version;
        if version == Some(Version::from_attributes(&found))
            || !self.shared.tree.is(self.ino, &found)
        {
            return Ok(None);
        }
        let flags = OpenFlags {
            expected: self.shared.tree.identity(self.ino),
            ..OpenFlags::READ
        };
        self.shared.open(guard.path(), flags, true).map(Some)
    }

    /// Turns the source's attributes into those that the mount shows. For this, adds
    /// changes that the source does not know yet.
    pub fn overlay(&self, attributes: &mut Attributes) {
        self.state.lock().overlay(attributes);
    }

    /// Returns the handle at the source. It gives access to the attributes of a file
    /// without a name.
    pub fn handle(&self) -> Option<Arc<dyn Handle>> {
        self.state.lock().handle.clone()
    }

    /// Returns whether the file is open for writing on this mount.
    pub fn has_writer(&self) -> bool {
        self.state.lock().writer.is_some()
    }

    /// Reads into `buffer`. Returns less than the length of `buffer` only at the end of
    /// the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let wanted = offset..offset.saturating_add(buffer.len() as u64);
        self.make_present(&wanted)?;
        let (file, size_bytes) = {
            let state = self.state.lock();
            (state.copy.file(), state.progress.size_bytes())
        };
        let length = size_bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        // The copy is as long as the file, unless another thread is truncating it.
        Ok(read_full(&file, &mut buffer[..length], offset)?)
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write(&mut self.state.lock(), bytes, offset)
    }

    /// Writes at the end of the file. Returns the offset of the write.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        let mut state = self.state.lock();
        let end = state.progress.size_bytes();
        self.write(&mut state, bytes, end)?;
        Ok(end)
    }

    fn write(&self, state: &mut State, bytes: &[u8], offset: u64) -> Result<()> {
        state.check_begun()?;
        let end = offset
            .checked_add(bytes.len() as u64)
            .filter(|end| i64::try_from(*end).is_ok())
            .ok_or(Error::Errno(libc::EFBIG))?;
        state.copy.write_at(bytes, offset)?;
        state.present.insert(offset..end);
        state.progress.written(offset..end, self.shared.now());
        state.upload.written(offset..end);
        Ok(())
    }

    pub fn truncate(&self, size_bytes: u64) -> Result<()> {
        let _writing_back = self.write_back_lock.lock();
        let mut state = self.state.lock();
        self.resize(&mut state, size_bytes)
    }

    fn resize(&self, state: &mut State, size_bytes: u64) -> Result<()> {
        state.check_begun()?;
        if size_bytes == 0 {
            // Fetches under way are for content that is not wanted any more.
            state.epoch += 1;
        }
        state.copy.set_len(size_bytes)?;
        state.present.cut(size_bytes);
        state.progress.resized(size_bytes, self.shared.now());
        state.upload.cut(size_bytes);
        state.valid_bytes = state.valid_bytes.min(size_bytes);
        Ok(())
    }

    pub fn set_times(&self, atime: Option<Timespec>, mtime: Option<Timespec>) {
        self.state.lock().progress.set_times(atime, mtime);
    }

    /// Does `fallocate` on the copy: extends the file, or makes zeros or holes. Returns
    /// `EOPNOTSUPP` for other modes.
    pub fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length);
        let keeps_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let zeros = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !(zeros | libc::FALLOC_FL_KEEP_SIZE) != 0 {
            return Err(Error::Errno(libc::EOPNOTSUPP));
        }
        let _writing_back = self.write_back_lock.lock();
        let mut state = self.state.lock();
        state.check_begun()?;
        if end > state.progress.size_bytes() && !keeps_size {
            self.resize(&mut state, end)?;
        }
        let range = offset..end.min(state.progress.size_bytes());
        if mode & zeros != 0 && !range.is_empty() {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let length = range.end - range.start;
            rustix::fs::fallocate(&*state.copy.file(), flags, offset, length)?;
            state.present.insert(range.clone());
            state.upload.cut(offset);
            state.progress.written(range, self.shared.now());
        }
        Ok(())
    }

    /// Does `lseek` for data and holes. The result is exact only if all content is
    /// present.
    pub fn seek(&self, from: SeekFrom) -> Result<u64> {
        let state = self.state.lock();
        if state.present.missing(0..state.valid_bytes).is_empty() {
            state.copy.file().seek(from)
        } else {
            // Content that is not here yet counts as data, which is always allowed.
            seek_in_data(from, state.progress.size_bytes())
        }
    }

    /// Forgets the version after this mount has set the source's times. Otherwise the
    /// new version would look like a change by somebody else.
    pub fn forget_version(&self) {
        self.state.lock().version = None;
    }

    /// Records that the source has no name left for the file, so that nothing is
    /// written back any more.
    pub fn removed(&self) {
        self.state.lock().progress.removed();
    }

    pub fn is_changed(&self) -> bool {
        self.state.lock().progress.is_changed()
    }

    /// Returns whether closing a descriptor should send nothing to the source. For
    /// `command >file`, a shell truncates the file and closes a descriptor before the
    /// command writes. The source keeps the old content until there is new content or
    /// nobody has the file open.
    pub fn awaits_content(&self) -> bool {
        self.state.lock().progress.is_emptied()
    }
}
