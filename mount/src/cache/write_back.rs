//! From the copy to the source: which way, and the way in place.
//!
//! A file is replaced as a whole, by a temporary file beside it that takes
//! its name, wherever that loses nothing: then a connection that is cut or a
//! disk that is full in between leaves the old content as it was. It is
//! written in place
//!
//! - if it has further hard links, or an owner that a new file cannot be
//!   given, or lies in a directory where no file can be made;
//! - if it is empty at the source and the new content goes in one request;
//! - in `blocks`, if only parts of a larger file have changed.
//!
//! In place, what makes the file longer is written first: that is what a full
//! disk refuses, and nothing has been overwritten then. The file is cut when all
//! of the new content is there. Whoever may write may not always set times, which
//! only the owner may: then the source's own stay.

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

/// Content of this length goes in one request over SFTP, so nobody can see
/// a part of it.
pub(super) const ONE_REQUEST_BYTES: u64 = 32 << 10;
/// Up to this length a file read by block is replaced whatever has changed.
const SMALL_BYTES: u64 = 1 << 20;
/// The last range is written with the end of a write-back if it is no longer.
const LAST_BYTES_MAX: u64 = 8 << 20;
/// Errors that can come from a name that changed meanwhile.
const NAME_ERRORS: [i32; 3] = [libc::ENOENT, libc::ESTALE, libc::ENOTDIR];
/// Errors of a source that does not let a file be replaced, which may let it be
/// written.
const REFUSALS: [i32; 5] = [
    libc::EACCES,
    libc::EPERM,
    libc::ENOTSUP,
    libc::ENAMETOOLONG,
    // A file that something is mounted on.
    libc::EBUSY,
];
/// How often a write-back begins again because a name changed under it.
const ATTEMPTS_MAX: usize = 8;

enum Way {
    /// By a temporary file that takes the name; of the file there, if any.
    Replace(Option<Attributes>),
    /// Through an open file; with its length if somebody else has changed it.
    InPlace(Arc<dyn Handle>, Option<u64>),
    /// No name and no open file leads to it any more.
    Gone,
}

/// One write-back of a file, by a thread with a turn to lock paths.
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
            // Nobody can find it after a crash, whatever its directory says.
            Err(_) => Ok(()),
        }
    }
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl CachedFile {
    /// Brings all changes to the source, and with `is_sync` the file and its
    /// name to the device. After an error all are still here.
    pub fn write_back(&self, turn: &mut PathTurn, is_sync: bool) -> Result<Outcome> {
        let _writing_back = self.write_back_lock.lock();
        let outcome = write_back(&mut Attempt { file: self, turn }, is_sync);
        match outcome {
            Ok(Outcome::Removed) => {
                self.stop_sending(turn);
                self.release_kept(&mut self.state.lock());
            }
            Ok(Outcome::Done) => {
                // Still under the lock: who opens the file next must not take
                // this version for somebody else's.
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
                // A name changed between two steps: the next attempt sees the
                // new one, or that there is none.
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

    /// A handle of a file that was empty when it was opened. A short content goes
    /// there in one round trip, whether or not the file still has its name: what
    /// arrived is in a file that had no content before.
    fn writer_of_new(&self) -> Option<Arc<dyn Handle>> {
        let state = self.state.lock();
        let is_new = state.source_bytes == 0 && self.shared.source.is_remote();
        state.writer.clone().filter(|_| is_new)
    }

    /// How to send changes, by what is at the name now.
    fn way(&self, turn: &mut PathTurn, changes: &Changes, may_replace: bool) -> Result<Way> {
        let Ok(guard) = self.shared.path(turn, self.ino) else {
            // A source that does not count links may have further names of it.
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
        match may_replace && self.wants_replacement(found.as_ref(), changes) {
            true => Ok(Way::Replace(found)),
            false => {
                let changed = found.filter(|_| is_news).map(|found| found.size_bytes);
                let writer = self.writer_of(guard.path(), found)?;
                Ok(Way::InPlace(writer, changed))
            }
        }
    }

    /// `ECANCELED` for what an earlier mount has kept, once the source's file is
    /// another than then: nobody has seen both.
    fn refuse_conflict(&self, found: Option<&Attributes>) -> Result<()> {
        let known = {
            let mut state = self.state.lock();
            let is_same = state.version == found.map(Version::of);
            if is_same || !state.is_of_earlier_mount {
                return Ok(());
            }
            state.version.take()
        };
        if known.is_some() {
            let name = self.shared.full_name(self.ino);
            self.shared.note(&format!(
                "does not send the kept content of {name}: that file has changed since; see \
                 `toll mount --kept`"
            ));
        }
        Err(Error::Errno(libc::ECANCELED))
    }

    /// Returns whether somebody else has changed what is at the name, and says so: the
    /// last close wins, but not silently.
    fn note_news(&self, found: &Attributes) -> bool {
        let is_news = |known: &mut Version| known.has_other_content(&Version::of(found));
        let known = self.state.lock().version.take_if(is_news);
        if known.is_some() {
            let name = self.shared.full_name(self.ino);
            self.shared.note(&format!(
                "{name} was changed at its source while it was open here; what was written here \
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
        // Somebody removed the name at the source; only a new file can have it
        // again.
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

    /// A handle to write to what is at a locked path. The last to close wins, so
    /// a file that has taken the name meanwhile is written, and not the one that
    /// was opened.
    fn writer_of(&self, path: &Path, found: Option<Attributes>) -> Result<Arc<dyn Handle>> {
        let (writer, version) = {
            let state = self.state.lock();
            (state.writer.clone(), state.version)
        };
        if let (Some(writer), Some(found)) = (writer, found) {
            let is_there = match found.identity {
                Some(_) => writer.attributes()?.identity == found.identity,
                // A source without identities: another file has another length or
                // time, unless both are of the same moment.
                None => {
                    let is_settled = self.shared.source.is_settled(found.ctime);
                    version == Some(Version::of(&found)) && is_settled
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

    /// Writes to an open file. With `looks_at_name` it may have lost its name, and
    /// the answer is whether it certainly has it.
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
        let ranges = match looks_at_name {
            // With the end of the write-back, where the name is looked at.
            true => once(0..changes.size_bytes).collect(),
            false => self.differing(changes, is_all).tail_first(source_bytes),
        };
        let sent = self.send_in_place(handle, changes, &ranges, is_sync, looks_at_name);
        if let Err(error) = sent {
            self.failed_in_place(handle, source_bytes, error);
        }
        let (now, is_named) = sent?;
        let mut state = self.state.lock();
        match is_named || !looks_at_name {
            true => state.settle(changes.size_bytes, &now),
            // What is at the name lacks all of it.
            false => state.source_bytes = source_bytes,
        }
        Ok(is_named)
    }

    /// What the source's file has otherwise, or will have once it is longer. Its old
    /// content beyond `valid_bytes` is overwritten by the copy's, and not cut off
    /// first: until all of the new content is there, nothing else is lost. `is_all`
    /// if somebody else may have changed any of it.
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

    /// Writes ranges in their order, and sets the length once all have arrived.
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
            // A server may let a file be written, and not be cut.
            handle.truncate(source_bytes)?;
        }
        let (mut rest, mut last) = split_last(ranges, LAST_BYTES_MAX);
        if is_shorter {
            // Nothing is cut off before all that was written has arrived.
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
        // The length also where it should be right: somebody else may have
        // written more to the same file, which stays if only times are set.
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

    /// Takes back what has made a file longer than it was, which may be what has
    /// filled the disk. What was overwritten stays so.
    fn failed_in_place(&self, handle: &dyn Handle, source_bytes: u64, error: Error) {
        let is_longer = self.state.lock().source_bytes > source_bytes;
        let is_shrunk = is_longer && handle.truncate(source_bytes).is_ok();
        // Without a connection, the version before is what tells whether anything
        // has arrived.
        let now = match error {
            Error::Lost => None,
            Error::Errno(_) => handle.attributes().ok(),
        };
        let mut state = self.state.lock();
        match is_shrunk {
            true => state.source_bytes = source_bytes,
            false => state.is_torn |= is_longer,
        }
        if let Some(now) = now {
            // This mount has made it so.
            state.version = Some(Version::of(&now));
        }
    }

    /// The times of changes. SFTP sets both or none: with the time of change
    /// alone it would take another round trip to ask for the other.
    pub(super) fn times(&self, changes: &Changes) -> SetAttributes {
        let is_remote = self.shared.source.is_remote();
        let told = self.state.lock().source_atime;
        let told = told.filter(|_| is_remote && changes.mtime.is_some());
        SetAttributes {
            atime: changes.atime.or(told).map(SetTime::At),
            mtime: changes.mtime.map(SetTime::At),
            ..SetAttributes::default()
        }
    }

    pub(super) fn read_copy(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = zeroed((range.end - range.start) as usize)?;
        if !bytes.is_empty() {
            let file = self.state.lock().copy.file();
            // What the copy lacks at its end is a hole.
            read_full(&file, &mut bytes, range.start)?;
        }
        Ok(bytes)
    }

    /// Brings a range of the copy to a file of the source; it may still be on its
    /// way.
    pub(super) fn send_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state.lock().copy.file();
        let content = Content::File(&file, range.start, (range.end - range.start) as usize);
        handle.write_later(content, range.start)
    }
}

impl super::file::State {
    /// The source has everything up to a length.
    pub(super) fn settle(&mut self, size_bytes: u64, now: &Attributes) {
        self.source_bytes = size_bytes;
        self.upload.begin();
        self.valid_bytes = size_bytes.min(self.progress.size_bytes());
        self.version = Some(Version::of(now));
        self.source_atime = Some(now.atime);
        self.is_torn = false;
        self.is_of_earlier_mount = false;
    }

    /// A range is about to be written to the source's file, which had a length
    /// before. What of it arrives is not valid until all has.
    fn begin_range(&mut self, range: &Range<u64>, source_bytes: u64) {
        self.source_bytes = self.source_bytes.max(range.end);
        self.is_torn |= !range.is_empty() && range.start < source_bytes;
    }
}

/// Ranges but for the last, and that, if it can be written with the end of a
/// write-back, as it is when it is no longer than `bytes_max`; else an empty one.
pub(super) fn split_last(ranges: &[Range<u64>], bytes_max: u64) -> (&[Range<u64>], Range<u64>) {
    match ranges.split_last() {
        Some((last, rest)) if last.end - last.start <= bytes_max => (rest, last.clone()),
        _ => (ranges, 0..0),
    }
}
