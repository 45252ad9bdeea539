//! Writes the copy back to the source: decides whether to replace the file or write in
//! place, and implements writing in place.
//!
//! A file is replaced as a whole, by a temporary file in the same directory that takes
//! its name, wherever that loses nothing. A lost connection or a full disk then leaves
//! the old content intact. A file is written in place
//!
//! - if it has further hard links, or an owner that a new file cannot be given, or
//!   is in a directory where no file can be created;
//! - if it is empty at the source and the new content fits in one request;
//! - in `blocks`, if only parts of a larger file have changed.
//!
//! In place, the part that makes the file longer is written first: a full disk
//! refuses that part, and then nothing has been overwritten yet. The file is
//! truncated when all of the new content has arrived. Only the owner may set times.
//! A user who may only write the file leaves the source's own times.

use std::iter::once;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::Mode;
use super::file::CachedFile;
use super::write_back_state::{Changes, Outcome, Reached, WriteBack, WriteBackState, write_back};
use crate::content::{read_full, zeroed};
use crate::mount::PathTurn;
use crate::ranges::Ranges;
use crate::source::{
    Attributes, Content, Error, Finish, Handle, Kind, OpenFlags, Result, SetAttributes, SetTime,
};
use crate::tree::Version;

/// Longest content that fits in one request over SFTP, so that nobody can see part of
/// it.
pub(super) const ONE_REQUEST_BYTES: u64 = 32 << 10;
/// A file that is read by block is replaced as a whole up to this length, no matter
/// which part has changed.
const SMALL_BYTES: u64 = 1 << 20;
/// Longest last range that is sent together with the end of a write-back.
const LAST_BYTES_MAX: u64 = 8 << 20;
/// Errors that a change of name can cause.
const NAME_ERRORS: [i32; 3] = [libc::ENOENT, libc::ESTALE, libc::ENOTDIR];
/// Errors of a source that does not allow a file to be replaced, but may allow it
/// to be written.
const REFUSALS: [i32; 5] = [
    libc::EACCES,
    libc::EPERM,
    libc::ENOTSUP,
    libc::ENAMETOOLONG,
    // A file that is a mount point.
    libc::EBUSY,
];
/// Maximum number of attempts at a write-back. If a name changes during an attempt,
/// another is needed.
const ATTEMPTS_MAX: usize = 8;

enum Way {
    /// Fill a temporary file and give it the name. The attributes belong to the file that
    /// has the name now, if any.
    Replace(Option<Attributes>),
    /// Write through an open file. The number is the file's length if somebody else has
    /// changed it.
    InPlace(Arc<dyn Handle>, Option<u64>),
    /// The file has neither a name nor an open handle any more.
    Gone,
}

/// One write-back of a file, by a thread that has a [`PathTurn`] to lock paths.
struct Attempt<'a> {
    file: &'a CachedFile,
    turn: &'a mut PathTurn,
}

impl WriteBack for Attempt<'_> {
    type Error = Error;

    fn with<T>(&self, call: impl FnOnce(&mut WriteBackState) -> T) -> T {
        call(&mut self.file.state.lock().progress)
    }

    fn send(&mut self, changes: &Changes, is_sync: bool) -> Result<Reached> {
        self.file.send(self.turn, changes, is_sync)
    }

    fn sync(&mut self) -> Result<()> {
        let handle = {
            let state = self.file.state.lock();
            state.writer.clone().or_else(|| state.handle.clone())
        };
        handle.map_or(Ok(()), |handle| handle.sync())?;
        let shared = &self.file.shared;
        match shared.path(self.turn, self.file.ino) {
            Ok(guard) => shared.source.sync_directory(parent(guard.path())),
            // A file without a name cannot be found after a crash, whatever its
            // directory says.
            Err(_) => Ok(()),
        }
    }
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl CachedFile {
    /// Sends all changes to the source. If `is_sync`, also brings the file and its name
    /// to the device. After an error, the copy still has all changes.
    pub fn write_back(&self, turn: &mut PathTurn, is_sync: bool) -> Result<Outcome> {
        let _writing_back = self.write_back_lock.lock();
        let outcome = write_back(&mut Attempt { file: self, turn }, is_sync);
        match outcome {
            Ok(Outcome::Removed) => {
                self.stop_sending(turn);
                self.release_kept(&mut self.state.lock());
            }
            Ok(Outcome::Done) => {
                // The lock is still held, because the next open must not take this
                // version for somebody else's.
                let mut state = self.state.lock();
                let version = state.version.filter(|_| !state.progress.is_changed());
                self.shared.tree.set_seen(self.ino, version);
                if !state.progress.is_changed() {
                    self.release_kept(&mut state);
                }
            }
            Err(_) => {}
        }
        outcome
    }

    fn send(&self, turn: &mut PathTurn, changes: &Changes, is_sync: bool) -> Result<Reached> {
        self.shared.touch(self.ino, false);
        let mut further_attempts = 1..ATTEMPTS_MAX;
        let outcome = loop {
            match self.send_once(turn, changes, is_sync) {
                // A name changed between two steps. The next attempt sees the new
                // name, or that none is left.
                Err(error)
                    if NAME_ERRORS.contains(&error.errno())
                        && further_attempts.next().is_some() => {}
                outcome => break outcome,
            }
        };
        self.shared.touch(self.ino, false);
        self.shared.settle();
        outcome
    }

    fn send_once(&self, turn: &mut PathTurn, changes: &Changes, is_sync: bool) -> Result<Reached> {
        let is_short = (1..=ONE_REQUEST_BYTES).contains(&changes.size_bytes);
        if let Some(writer) = self.writer_of_new().filter(|_| is_short)
            && let Ok(_guard) = self.shared.path(turn, self.ino)
            && self.write_through(&*writer, changes, None, (is_sync, true))?
        {
            return Ok(Reached::Source);
        }
        let mut temporary = self.take_temporary(turn);
        let mut way = self.way(turn, changes, true);
        if let Ok(Way::Replace(found)) = way {
            match self.replace(turn, found, temporary.take(), changes) {
                Err(error) if REFUSALS.contains(&error.errno()) => {
                    way = self.way(turn, changes, false)
                }
                outcome => return outcome,
            }
        }
        if let Some(temporary) = temporary {
            self.discard(turn, temporary);
        }
        match way? {
            Way::InPlace(handle, changed) => self
                .write_through(&*handle, changes, changed, (is_sync, false))
                .map(|_| Reached::Source),
            Way::Gone => {
                self.removed();
                Ok(Reached::Source)
            }
            Way::Replace(_) => unreachable!("a file that may not be replaced"),
        }
    }

    /// Returns a handle of a remote file that was empty when it was opened. Short
    /// content is sent through it in one round trip, even if the file has lost its
    /// name: there was no content to lose.
    fn writer_of_new(&self) -> Option<Arc<dyn Handle>> {
        let state = self.state.lock();
        let is_new = state.source_bytes == 0 && self.shared.source.is_remote();
        state.writer.clone().filter(|_| is_new)
    }

    /// Chooses how to send changes, depending on the file that has the name now.
    fn way(&self, turn: &mut PathTurn, changes: &Changes, may_replace: bool) -> Result<Way> {
        let Ok(guard) = self.shared.path(turn, self.ino) else {
            // If the source does not count links, the file may have further names.
            let writer = self.state.lock().writer.clone();
            return Ok(writer.map_or(Way::Gone, |writer| Way::InPlace(writer, None)));
        };
        let found = match self.shared.source.attributes(guard.path()) {
            Ok(found) => Some(found),
            Err(error) if error.is(libc::ENOENT) => None,
            Err(error) => return Err(error),
        };
        self.refuse_conflict(found.as_ref())?;
        let is_news = found.as_ref().is_some_and(|found| self.note_news(found));
        if may_replace && self.wants_replacement(found.as_ref(), changes) {
            Ok(Way::Replace(found))
        } else {
            let changed = found.filter(|_| is_news).map(|found| found.size_bytes);
            let writer = self.writer_of(guard.path(), found)?;
            Ok(Way::InPlace(writer, changed))
        }
    }

    /// Returns `ECANCELED` for changes that an earlier mount kept, if the source's file
    /// has changed since. Nobody has seen both versions.
    fn refuse_conflict(&self, found: Option<&Attributes>) -> Result<()> {
        let known = {
            let mut state = self.state.lock();
            let is_same = state.version == found.map(Version::from_attributes);
            if is_same || !state.is_of_earlier_mount {
                return Ok(());
            }
            state.version.take()
        };
        if known.is_some() {
            let name = self.shared.full_name(self.ino);
            self.shared.note(&format!(
                "cannot send the kept content of {name}: the file at the source has changed \
                 since; see `toll mount --kept`"
            ));
        }
        Err(Error::Errno(libc::ECANCELED))
    }

    /// Returns whether somebody else has changed the file that has the name. If so,
    /// prints a message, because this write-back replaces that change.
    fn note_news(&self, found: &Attributes) -> bool {
        let is_news =
            |known: &mut Version| known.has_other_content(&Version::from_attributes(found));
        let known = self.state.lock().version.take_if(is_news);
        if known.is_some() {
            let name = self.shared.full_name(self.ino);
            self.shared.note(&format!(
                "{name} was changed at the source while it was open here; the content written here \
                 replaces that change"
            ));
        }
        known.is_some()
    }

    fn is_times_alone(&self, changes: &Changes) -> bool {
        let state = self.state.lock();
        changes.dirty.is_empty()
            && changes.size_bytes == state.source_bytes
            && state.valid_bytes >= state.source_bytes
    }

    fn wants_replacement(&self, found: Option<&Attributes>, changes: &Changes) -> bool {
        // Somebody removed the name at the source; only a new file can take it.
        let Some(found) = found else {
            return true;
        };
        if found.links > 1 || found.kind != Kind::File || self.is_times_alone(changes) {
            return false;
        }
        let size_bytes = changes.size_bytes;
        if found.size_bytes == 0 && size_bytes <= ONE_REQUEST_BYTES {
            return false;
        }
        match self.mode {
            Mode::Whole => true,
            _ => self.state.lock().valid_bytes == 0 || size_bytes <= SMALL_BYTES,
        }
    }

    /// Returns a handle for writing to the file at a locked path. If another file has
    /// taken the name since the open, that file is written, because the last close
    /// wins.
    fn writer_of(&self, path: &Path, found: Option<Attributes>) -> Result<Arc<dyn Handle>> {
        let (writer, version) = {
            let state = self.state.lock();
            (state.writer.clone(), state.version)
        };
        if let (Some(writer), Some(found)) = (writer, found) {
            let is_there = match found.identity {
                Some(_) => writer.attributes()?.identity == found.identity,
                // Without identities, another file is recognised by its length or
                // time, unless both files have the same.
                None => {
                    let is_settled = self.shared.source.is_settled(found.ctime);
                    version == Some(Version::from_attributes(&found)) && is_settled
                }
            };
            if is_there {
                return Ok(writer);
            }
        }
        let both = OpenFlags {
            read: true,
            ..OpenFlags::WRITE
        };
        let opened: Arc<dyn Handle> = Arc::from(self.shared.open(path, both, false)?.handle);
        self.state.lock().writer = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Writes to an open file. If `looks_at_name`, the file may have lost its name, and
    /// the result says whether the file certainly still has it.
    fn write_through(
        &self,
        handle: &dyn Handle,
        changes: &Changes,
        changed: Option<u64>,
        (is_sync, looks_at_name): (bool, bool),
    ) -> Result<bool> {
        let changed = changed.filter(|_| !self.is_times_alone(changes));
        let is_all = changed.is_some() && self.mode == Mode::Whole;
        if is_all {
            self.fetch(0..u64::MAX)?;
        }
        if let Some(length) = changed {
            self.state.lock().source_bytes = length;
        }
        let source_bytes = self.state.lock().source_bytes;
        let ranges = if looks_at_name {
            // This range is sent with the end of the write-back, which also checks the
            // name.
            once(0..changes.size_bytes).collect()
        } else {
            self.differing(changes, is_all).tail_first(source_bytes)
        };
        let sent = self.send_in_place(handle, changes, &ranges, is_sync, looks_at_name);
        if let Err(error) = sent {
            self.failed_in_place(handle, source_bytes, error);
        }
        let (now, is_named) = sent?;
        let mut state = self.state.lock();
        if is_named || !looks_at_name {
            state.settle(changes.size_bytes, &now)
        } else {
            // The file that has the name lacks all of the changes.
            state.source_bytes = source_bytes
        }
        Ok(is_named)
    }

    /// Returns the ranges in which the source's file differs, or will differ once it is
    /// longer. Old content past `valid_bytes` is overwritten and not truncated first,
    /// so that nothing else is lost before all new content has arrived. If `is_all`,
    /// somebody else may have changed any part.
    fn differing(&self, changes: &Changes, is_all: bool) -> Ranges {
        let state = self.state.lock();
        let mut ranges = changes.dirty.clone();
        if is_all {
            ranges.insert(0..changes.size_bytes);
        }
        let end = state.source_bytes.min(changes.size_bytes);
        ranges.insert(state.valid_bytes.min(end)..end);
        ranges
    }

    /// Writes ranges in this order, and sets the length when all ranges have arrived.
    fn send_in_place(
        &self,
        handle: &dyn Handle,
        changes: &Changes,
        ranges: &[Range<u64>],
        is_sync: bool,
        looks_at_name: bool,
    ) -> Result<(Attributes, bool)> {
        let has_content = !self.is_times_alone(changes);
        let source_bytes = self.state.lock().source_bytes;
        let is_shorter = changes.size_bytes < source_bytes;
        if is_shorter {
            // A server may allow a file to be written but not truncated.
            handle.truncate(source_bytes)?;
        }
        let (mut rest, mut last) = split_last(ranges, LAST_BYTES_MAX);
        if is_shorter {
            // Nothing is truncated before everything written has arrived.
            (rest, last) = (ranges, 0..0);
        }
        let file = self.state.lock().copy.file();
        for range in rest.iter().cloned() {
            self.state.lock().begin_range(&range, source_bytes);
            let content = Content::File(&file, range.start, (range.end - range.start) as usize);
            content.copy(range.start, &mut |bytes, at| handle.write_at(bytes, at))?;
        }
        let bytes = self.read_copy(&last)?;
        self.state.lock().begin_range(&last, source_bytes);
        // The length is set even where it should be right: somebody else may have
        // written more to the same file. If only times are set, that content stays.
        let settings = SetAttributes {
            size_bytes: has_content.then_some(changes.size_bytes),
            ..self.times(changes)
        };
        handle.finish(&Finish {
            bytes: &bytes,
            offset: last.start,
            changes: &settings,
            is_sync,
            looks_at_name,
        })
    }

    /// Truncates a file that became longer, because the longer file may have filled the
    /// disk. Overwritten content is not restored.
    fn failed_in_place(&self, handle: &dyn Handle, source_bytes: u64, error: Error) {
        let is_longer = self.state.lock().source_bytes > source_bytes;
        let is_shrunk = is_longer && handle.truncate(source_bytes).is_ok();
        // Without a connection, the previous version will show whether anything has
        // arrived.
        let now = match error {
            Error::Lost => None,
            Error::Errno(_) => handle.attributes().ok(),
        };
        let mut state = self.state.lock();
        if is_shrunk {
            state.source_bytes = source_bytes
        } else {
            state.is_torn |= is_longer
        }
        if let Some(now) = now {
            // This mount made the change.
            state.version = Some(Version::from_attributes(&now));
        }
    }

    /// Returns the times to set for `changes`. SFTP sets both times or none: if `mtime`
    /// alone were set, asking for `atime` would take another round trip.
    pub(super) fn times(&self, changes: &Changes) -> SetAttributes {
        let is_remote = self.shared.source.is_remote();
        let access_time = self.state.lock().source_atime;
        let access_time = access_time.filter(|_| is_remote && changes.mtime.is_some());
        SetAttributes {
            atime: changes.atime.or(access_time).map(SetTime::At),
            mtime: changes.mtime.map(SetTime::At),
            ..SetAttributes::default()
        }
    }

    pub(super) fn read_copy(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = zeroed((range.end - range.start) as usize)?;
        if !bytes.is_empty() {
            let file = self.state.lock().copy.file();
            // The copy may end earlier; the rest is a hole.
            read_full(&file, &mut bytes, range.start)?;
        }
        Ok(bytes)
    }

    /// Sends a range of the copy to a file at the source. The bytes may still be in
    /// flight on return.
    pub(super) fn send_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state.lock().copy.file();
        let content = Content::File(&file, range.start, (range.end - range.start) as usize);
        handle.write_later(content, range.start)
    }
}

impl super::file::State {
    /// Records that the source has all of the content, up to this length.
    pub(super) fn settle(&mut self, size_bytes: u64, now: &Attributes) {
        self.source_bytes = size_bytes;
        self.upload.begin();
        self.valid_bytes = size_bytes.min(self.progress.size_bytes());
        self.version = Some(Version::from_attributes(now));
        self.source_atime = Some(now.atime);
        self.is_torn = false;
        self.is_of_earlier_mount = false;
    }

    /// Records that a range is about to be written to the source's file, which was
    /// `source_bytes` long. The range is not valid before all of it has arrived.
    fn begin_range(&mut self, range: &Range<u64>, source_bytes: u64) {
        self.source_bytes = self.source_bytes.max(range.end);
        self.is_torn |= !range.is_empty() && range.start < source_bytes;
    }
}

/// Splits off the last range, if it is no longer than `bytes_max` and so can be sent
/// with the end of a write-back. Otherwise the second part is empty.
pub(super) fn split_last(ranges: &[Range<u64>], bytes_max: u64) -> (&[Range<u64>], Range<u64>) {
    match ranges.split_last() {
        Some((last, rest)) if last.end - last.start <= bytes_max => (rest, last.clone()),
        _ => (ranges, 0..0),
    }
}
