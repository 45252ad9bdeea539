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
//! disk refuses, and nothing has been overwritten then. Nothing is ever cut
//! off before the copy has what comes after it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::Mode;
use super::copy::data_ranges;
use super::file::CachedFile;
use super::write_back_state::{Changes, Outcome, Reached, WriteBack, WriteBackState, write_back};
use crate::content::read_full;
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
/// How often a write-back begins again because a name changed under it.
const ATTEMPTS_MAX: usize = 8;

impl Changes {
    pub(super) fn times(&self) -> SetAttributes {
        SetAttributes {
            atime: self.atime.map(SetTime::At),
            mtime: self.mtime.map(SetTime::At),
            ..SetAttributes::default()
        }
    }
}

/// How changes go to the source.
enum Way {
    /// By a temporary file that takes the name; of the file there, if any.
    Replace(Option<Attributes>),
    /// Through an open file.
    InPlace(Arc<dyn Handle>),
    /// Only times have changed, and are set by name.
    Times,
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
        if let Some(handle) = handle {
            handle.sync()?;
        }
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
    ///
    /// # Errors
    ///
    /// What the source says.
    pub fn write_back(&self, turn: &mut PathTurn, is_sync: bool) -> Result<Outcome> {
        let _writing_back = self.write_back_lock.lock();
        let outcome = write_back(&mut Attempt { file: self, turn }, is_sync);
        match outcome {
            Ok(Outcome::Removed) => {
                self.stop_sending(turn);
                self.state.lock().copy.release_name();
            }
            Ok(Outcome::Done) => {
                // Still under the lock: who opens the file next must not take
                // this version for somebody else's.
                self.shared.tree.set_seen(self.ino, self.version());
                let mut state = self.state.lock();
                if !state.progress.is_changed() {
                    state.copy.release_name();
                }
            }
            Err(_) => {}
        }
        outcome
    }

    fn send(&self, turn: &mut PathTurn, changes: &Changes, is_sync: bool) -> Result<Reached> {
        self.shared.touch(self.ino, false);
        let mut attempts = 0;
        let outcome = loop {
            attempts += 1;
            match self.send_once(turn, changes, is_sync) {
                // A name changed between two steps: the next attempt sees the
                // new one, or that there is none.
                Err(error) if attempts < ATTEMPTS_MAX && is_of_names(error) => {}
                outcome => break outcome,
            }
        };
        self.shared.touch(self.ino, false);
        self.shared.settle();
        outcome
    }

    fn send_once(&self, turn: &mut PathTurn, changes: &Changes, is_sync: bool) -> Result<Reached> {
        if let Some(reached) = self.send_new(turn, changes, is_sync)? {
            return Ok(reached);
        }
        let temporary = self.take_temporary(turn);
        let way = self.way(turn, changes);
        if !matches!(way, Ok(Way::Replace(_)))
            && let Some(temporary) = temporary
        {
            self.discard(turn, temporary);
            return self.send_by(turn, way?, changes, is_sync);
        }
        match way? {
            Way::Replace(found) => match self.replace(turn, found, temporary, changes) {
                Err(error) if is_refusal(error) => {
                    let way = self.way_in_place(turn)?;
                    self.send_by(turn, way, changes, is_sync)
                }
                outcome => outcome,
            },
            way => self.send_by(turn, way, changes, is_sync),
        }
    }

    /// Sends a short content to a file that was empty when it was opened, in one
    /// round trip. None if the file has lost its name: what arrived is in a file
    /// that had no content before, and the name gets the content another way.
    fn send_new(
        &self,
        turn: &mut PathTurn,
        changes: &Changes,
        is_sync: bool,
    ) -> Result<Option<Reached>> {
        let size_bytes = changes.size_bytes;
        let is_short = (1..=ONE_REQUEST_BYTES).contains(&size_bytes);
        let writer = {
            let state = self.state.lock();
            let is_new = is_short && state.source_bytes == 0 && self.shared.source.is_remote();
            state.writer.clone().filter(|_| is_new)
        };
        let (Some(writer), Ok(_guard)) = (writer, self.shared.path(turn, self.ino)) else {
            return Ok(None);
        };
        let bytes = self.read_copy(&(0..size_bytes))?;
        let rest = SetAttributes {
            size_bytes: Some(size_bytes),
            ..changes.times()
        };
        let sent = writer.finish(&Finish {
            bytes: &bytes,
            offset: 0,
            changes: &rest,
            is_sync,
            looks_at_name: true,
        });
        if sent.is_err() {
            self.state.lock().source_bytes = size_bytes;
            self.shrink(&*writer, 0);
        }
        Ok(match sent? {
            (now, true) => {
                self.state.lock().settle(size_bytes, Version::of(&now));
                Some(Reached::Source)
            }
            _ => None,
        })
    }

    fn send_by(
        &self,
        turn: &mut PathTurn,
        way: Way,
        changes: &Changes,
        is_sync: bool,
    ) -> Result<Reached> {
        match way {
            Way::InPlace(handle) => self.write_through(&*handle, changes, is_sync),
            Way::Times => {
                let guard = self.shared.path(turn, self.ino)?;
                let source = &self.shared.source;
                source.set_attributes(guard.path(), &changes.times())?;
                let now = source.attributes(guard.path())?;
                self.state.lock().version = Some(Version::of(&now));
                Ok(Reached::Source)
            }
            Way::Gone => {
                self.removed();
                Ok(Reached::Source)
            }
            Way::Replace(_) => unreachable!("a file is replaced by its own function"),
        }
    }

    /// How to send changes, by what is at the name now.
    fn way(&self, turn: &mut PathTurn, changes: &Changes) -> Result<Way> {
        let Ok(guard) = self.shared.path(turn, self.ino) else {
            return Ok(self.way_without_name());
        };
        let found = self.found(guard.path())?;
        if self.is_times_alone(changes) {
            return Ok(Way::Times);
        }
        match self.wants_replacement(found.as_ref(), changes.size_bytes) {
            true => Ok(Way::Replace(found)),
            false => self.writer_of(guard.path(), found).map(Way::InPlace),
        }
    }

    fn way_in_place(&self, turn: &mut PathTurn) -> Result<Way> {
        let Ok(guard) = self.shared.path(turn, self.ino) else {
            return Ok(self.way_without_name());
        };
        let found = self.found(guard.path())?;
        self.writer_of(guard.path(), found).map(Way::InPlace)
    }

    /// A source that does not count links may have further names of the file.
    fn way_without_name(&self) -> Way {
        let writer = self.state.lock().writer.clone();
        writer.map_or(Way::Gone, Way::InPlace)
    }

    /// What is at a path, if anything.
    fn found(&self, path: &Path) -> Result<Option<Attributes>> {
        match self.shared.source.attributes(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_times_alone(&self, changes: &Changes) -> bool {
        let state = self.state.lock();
        changes.dirty.is_empty()
            && changes.size_bytes == state.source_bytes
            && state.valid_bytes >= state.source_bytes
    }

    fn wants_replacement(&self, found: Option<&Attributes>, size_bytes: u64) -> bool {
        // Somebody removed the name at the source; only a new file can have it
        // again.
        let Some(found) = found else {
            return true;
        };
        if found.links > 1 || found.kind != Kind::File {
            return false;
        }
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
                None => version == Some(Version::of(&found)) && self.shared.is_settled(found.mtime),
            };
            if is_there {
                return Ok(writer);
            }
        }
        let opened: Arc<dyn Handle> = Arc::from(self.open_writable(path)?);
        self.state.lock().writer = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// For reading, too, where the source allows that.
    fn open_writable(&self, path: &Path) -> Result<Box<dyn Handle>> {
        let both = OpenFlags {
            read: true,
            ..OpenFlags::WRITE
        };
        let opened = match self.shared.source.open(path, both) {
            Err(error) if error.is(libc::EACCES) => self.shared.source.open(path, OpenFlags::WRITE),
            opened => opened,
        };
        opened.map(|found| found.handle)
    }

    fn write_through(
        &self,
        handle: &dyn Handle,
        changes: &Changes,
        is_sync: bool,
    ) -> Result<Reached> {
        let (valid_bytes, source_bytes) = {
            let state = self.state.lock();
            (state.valid_bytes, state.source_bytes)
        };
        // Zeros, or changes, come after what is valid; nothing of the old
        // content may show there.
        let mut length = source_bytes;
        if valid_bytes < source_bytes {
            handle.truncate(valid_bytes)?;
            length = valid_bytes;
            self.state.lock().source_bytes = valid_bytes;
        }
        let before = length;
        let ranges = tail_first(&changes.dirty, length);
        let (ranges, last) = split_last(&ranges, LAST_BYTES_MAX);
        for range in ranges {
            length = length.max(range.end);
            // What of it arrives is not valid until all has.
            self.state.lock().source_bytes = length;
            if let Err(error) = self.write_range(handle, range.clone()) {
                self.shrink(handle, before);
                return Err(error);
            }
        }
        let bytes = self.read_copy(&last)?;
        self.state.lock().source_bytes = length.max(last.end);
        // The length also where it should be right: somebody else may have
        // written more to the same file.
        let rest = SetAttributes {
            size_bytes: Some(changes.size_bytes),
            ..changes.times()
        };
        let finished = handle.finish(&Finish {
            bytes: &bytes,
            offset: last.start,
            changes: &rest,
            is_sync,
            looks_at_name: false,
        });
        if finished.is_err() && !bytes.is_empty() {
            self.shrink(handle, before);
        }
        let version = Version::of(&finished?.0);
        self.state.lock().settle(changes.size_bytes, version);
        // The directory of a new file is synchronised apart.
        Ok(Reached::Source)
    }

    /// A range of the copy in memory.
    pub(super) fn read_copy(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if !bytes.is_empty() {
            let file = self.state.lock().copy.file();
            // What the copy lacks at its end is a hole.
            read_full(&file, &mut bytes, range.start)?;
        }
        Ok(bytes)
    }

    /// Takes back what has made a file longer than it was, which may be what
    /// has filled the disk.
    fn shrink(&self, handle: &dyn Handle, size_bytes: u64) {
        if handle.truncate(size_bytes).is_ok() {
            self.state.lock().source_bytes = size_bytes;
        }
    }

    /// Brings a range of the copy to a file of the source.
    pub(super) fn write_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state.lock().copy.file();
        let content = Content::File(&file, range.start, (range.end - range.start) as usize);
        content.copy(range.start, &mut |bytes, at| handle.write_at(bytes, at))
    }

    /// The same; it may still be on its way.
    pub(super) fn send_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state.lock().copy.file();
        let content = Content::File(&file, range.start, (range.end - range.start) as usize);
        handle.write_later(content, range.start)
    }

    /// What of the copy is data.
    pub(super) fn data(&self, size_bytes: u64) -> Vec<Range<u64>> {
        data_ranges(&self.state.lock().copy.file(), 0..size_bytes)
    }
}

impl super::file::State {
    /// The source has everything up to a length.
    pub(super) fn settle(&mut self, size_bytes: u64, version: Version) {
        self.source_bytes = size_bytes;
        self.upload.begin();
        self.valid_bytes = size_bytes.min(self.progress.size_bytes());
        self.version = Some(version);
    }
}

/// Whether an error can come from a name that changed meanwhile.
fn is_of_names(error: Error) -> bool {
    matches!(
        error,
        Error::Errno(libc::ENOENT | libc::ESTALE | libc::ENOTDIR)
    )
}

/// Whether a source refuses to let a file be replaced, which may be allowed
/// to be written.
fn is_refusal(error: Error) -> bool {
    matches!(
        error,
        Error::Errno(libc::EACCES | libc::EPERM | libc::ENOTSUP | libc::ENAMETOOLONG)
    )
}

/// Ranges but for the last, and that, if it can be written with the end of a
/// write-back, as it is when it is no longer than `bytes_max`; else an empty one.
pub(super) fn split_last(ranges: &[Range<u64>], bytes_max: u64) -> (&[Range<u64>], Range<u64>) {
    match ranges.split_last() {
        Some((last, rest)) if last.end - last.start <= bytes_max => (rest, last.clone()),
        _ => (ranges, 0..0),
    }
}

/// The parts of ranges at and after `length`, then those before.
fn tail_first(ranges: &Ranges, length: u64) -> Vec<Range<u64>> {
    let (mut tail, mut rest) = (Vec::new(), Vec::new());
    for range in ranges.iter() {
        let cut = length.clamp(range.start, range.end);
        if cut < range.end {
            tail.push(cut..range.end);
        }
        if range.start < cut {
            rest.push(range.start..cut);
        }
    }
    tail.append(&mut rest);
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_file_longer_is_written_first() {
        let mut ranges = Ranges::default();
        ranges.insert(0..4);
        ranges.insert(8..16);
        assert_eq!(tail_first(&ranges, 10), [10..16, 0..4, 8..10]);
        assert_eq!(tail_first(&ranges, 0), [0..4, 8..16]);
        assert_eq!(tail_first(&ranges, 99), [0..4, 8..16]);
    }
}
