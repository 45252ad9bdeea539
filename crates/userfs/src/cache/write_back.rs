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
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Mode;
use super::copy::data_ranges;
use super::file::CachedFile;
use crate::part::read_full;
use crate::ranges::Ranges;
use crate::source::{
    Attributes, Error, Handle, OpenFlags, Part, Result, SetAttributes, SetTime, Time,
};
use crate::tree::Version;

/// Content of this length goes in one request over SFTP, so nobody can see
/// a part of it.
pub(super) const ONE_REQUEST_BYTES: u64 = 32 << 10;
/// Up to this length a file read by block is replaced whatever has changed.
const SMALL_BYTES: u64 = 1 << 20;
/// The last range is written with the end of a write-back if it is no longer.
const LAST_BYTES_MAX: u64 = 8 << 20;

/// What a write-back brings to the source. Taken out of the state, so that
/// what is written meanwhile is for the next one.
pub(super) struct Changes {
    pub dirty: Ranges,
    pub size_bytes: u64,
    pub mtime: Option<Time>,
    pub atime: Option<Time>,
}

impl Changes {
    pub(super) fn times(&self) -> SetAttributes {
        SetAttributes {
            atime: self.atime.map(SetTime::At),
            mtime: self.mtime.map(SetTime::At),
            ..SetAttributes::default()
        }
    }
}

/// Where a write-back goes.
pub(super) struct Target {
    /// None if no name is left that this mount knows.
    pub path: Option<PathBuf>,
    /// What is at the path, if anything.
    pub found: Option<Attributes>,
}

impl CachedFile {
    /// Brings all changes to the source, and to its device with `is_sync`.
    /// After an error all are still here.
    ///
    /// # Errors
    ///
    /// What the source says.
    pub fn write_back(&self, is_sync: bool) -> Result<()> {
        let _whole = self.hold_whole();
        let mut state = self.state();
        // Of a source that does not count links it is not known whether the
        // last one is gone; without any here, no handle to write through can
        // be had any more.
        if !state.is_writable && self.shared.tree.path(self.ino).is_err() {
            state.is_removed = true;
        }
        if state.is_removed {
            drop(state);
            self.stop_sending();
            return Ok(());
        }
        if !state.is_changed() {
            let handle = state.handle.clone().filter(|_| state.is_unsynced);
            drop(state);
            if let Some(handle) = handle.filter(|_| is_sync) {
                handle.sync()?;
                self.state().is_unsynced = false;
            }
            return Ok(());
        }
        let changes = Changes {
            dirty: std::mem::take(&mut state.dirty),
            size_bytes: state.size_bytes,
            mtime: state.mtime,
            atime: state.atime,
        };
        state.is_in_transit = true;
        drop(state);
        self.shared.touch(self.ino, false);
        let outcome = self.bring(&changes, is_sync);
        self.shared.touch(self.ino, false);
        let mut state = self.state();
        state.is_in_transit = false;
        self.shared.settle();
        match outcome {
            Ok(()) => state.forget_times(&changes),
            // What did not reach the source is a change again.
            Err(_) => changes
                .dirty
                .iter()
                .for_each(|range| state.dirty.insert(range)),
        }
        outcome
    }

    fn bring(&self, changes: &Changes, is_sync: bool) -> Result<()> {
        let draft = self.take_draft();
        if let Some(handle) = self.new_at_source(changes) {
            draft.into_iter().for_each(|draft| self.discard(draft));
            return self.write_through(&*handle, changes, is_sync);
        }
        let found = self.target();
        let is_replaced = found
            .as_ref()
            .is_ok_and(|target| self.wants_replacement(target, changes));
        let draft = match draft {
            Some(draft) if !is_replaced => {
                self.discard(draft);
                None
            }
            draft => draft,
        };
        let target = found?;
        if self.is_times_alone(changes) {
            return self.bring_times(&target, changes);
        }
        if is_replaced {
            match self.replace(&target, draft, changes, is_sync) {
                Err(error) if is_refusal(error) => {}
                outcome => return outcome,
            }
        }
        self.write_in_place(&target, changes, is_sync)
    }

    fn target(&self) -> Result<Target> {
        let Ok(held) = self.shared.path(self.ino) else {
            return Ok(Target {
                path: None,
                found: None,
            });
        };
        let found = match self.shared.source.attributes(held.path()) {
            Ok(found) => Some(found),
            Err(error) if error.is(libc::ENOENT) => None,
            Err(error) => return Err(error),
        };
        Ok(Target {
            path: Some(held.path().to_path_buf()),
            found,
        })
    }

    fn is_times_alone(&self, changes: &Changes) -> bool {
        let state = self.state();
        changes.dirty.is_empty()
            && changes.size_bytes == state.source_bytes
            && state.valid_bytes >= state.source_bytes
    }

    fn bring_times(&self, target: &Target, changes: &Changes) -> Result<()> {
        let Some(path) = target.path.as_deref() else {
            return Ok(());
        };
        self.shared.source.set_attributes(path, &changes.times())?;
        let now = self.shared.source.attributes(path)?;
        self.state().version = Some(Version::of(&now));
        Ok(())
    }

    fn wants_replacement(&self, target: &Target, changes: &Changes) -> bool {
        let Some(path) = &target.path else {
            return false;
        };
        let Some(found) = target.found else {
            // Somebody removed the name at the source; only a new file can
            // have it again.
            return !path.as_os_str().is_empty();
        };
        if found.links > 1 || found.kind != crate::source::Kind::File {
            return false;
        }
        if found.size_bytes == 0 && changes.size_bytes <= ONE_REQUEST_BYTES {
            return false;
        }
        let state = self.state();
        match self.mode {
            Mode::Whole => true,
            _ => state.valid_bytes == 0 || changes.size_bytes <= SMALL_BYTES,
        }
    }

    /// A handle to write through to what is at the target.
    fn writable(&self, target: &Target) -> Result<Arc<dyn Handle>> {
        let held = {
            let state = self.state();
            state.handle.clone().filter(|_| state.is_writable)
        };
        let Some(path) = &target.path else {
            return held.ok_or(Error::Errno(libc::EIO));
        };
        if let Some(held) = held {
            let identity = target.found.and_then(|found| found.identity);
            let is_there = match identity {
                Some(_) => held.attributes()?.identity == identity,
                None => target.found.is_some(),
            };
            if is_there {
                return Ok(held);
            }
        }
        let held = self.shared.paths(|| Ok(vec![path.clone()]))?;
        let opened: Arc<dyn Handle> = Arc::from(self.open_writable(held.path())?);
        drop(held);
        let mut state = self.state();
        state.handle = Some(Arc::clone(&opened));
        state.is_writable = true;
        Ok(opened)
    }

    /// For reading, too, where the source allows that.
    fn open_writable(&self, path: &Path) -> Result<Box<dyn Handle>> {
        let both = OpenFlags {
            read: true,
            ..OpenFlags::WRITE
        };
        match self.shared.source.open(path, both) {
            Err(error) if error.is(libc::EACCES) => self.shared.source.open(path, OpenFlags::WRITE),
            opened => opened,
        }
    }

    /// A handle to a file with a name that was empty at the source when it was
    /// opened, if its content goes in one request: nothing can be lost, so
    /// nothing has to be asked before.
    fn new_at_source(&self, changes: &Changes) -> Option<Arc<dyn Handle>> {
        let state = self.state();
        let is_new = state.source_bytes == 0
            && state.is_writable
            && changes.size_bytes > 0
            && changes.size_bytes <= ONE_REQUEST_BYTES
            && self.shared.tree.path(self.ino).is_ok();
        state.handle.clone().filter(|_| is_new)
    }

    fn write_in_place(&self, target: &Target, changes: &Changes, is_sync: bool) -> Result<()> {
        let handle = self.writable(target)?;
        self.write_through(&*handle, changes, is_sync)
    }

    fn write_through(&self, handle: &dyn Handle, changes: &Changes, is_sync: bool) -> Result<()> {
        let (valid_bytes, source_bytes) = {
            let state = self.state();
            (state.valid_bytes, state.source_bytes)
        };
        // Zeros, or changes, come after what is valid; nothing of the old
        // content may show there.
        let mut length = source_bytes;
        if valid_bytes < source_bytes {
            handle.truncate(valid_bytes)?;
            length = valid_bytes;
            self.state().source_bytes = valid_bytes;
        }
        let before = length;
        let ranges = tail_first(&changes.dirty, length);
        let (ranges, last) = split_last(&ranges, LAST_BYTES_MAX);
        for range in ranges {
            length = length.max(range.end);
            // What of it arrives is not valid until all has.
            self.state().source_bytes = length;
            if let Err(error) = self.write_range(handle, range.clone()) {
                self.shrink(handle, before);
                return Err(error);
            }
        }
        let bytes = self.read_copy(&last)?;
        self.state().source_bytes = length.max(last.end);
        // The length also where it should be right: somebody else may have
        // written more to the same file.
        let rest = SetAttributes {
            size_bytes: Some(changes.size_bytes),
            ..changes.times()
        };
        let finished = handle.finish(&bytes, last.start, &rest, is_sync);
        if finished.is_err() && !bytes.is_empty() {
            self.shrink(handle, before);
        }
        let version = Version::of(&finished?);
        let mut state = self.state();
        state.settle(changes.size_bytes, version);
        state.is_unsynced = !is_sync;
        Ok(())
    }

    /// A range of the copy in memory.
    pub(super) fn read_copy(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if !bytes.is_empty() {
            let file = self.state().copy.file();
            // What the copy lacks at its end is a hole.
            read_full(&file, &mut bytes, range.start)?;
        }
        Ok(bytes)
    }

    /// Takes back what has made a file longer than it was, which may be what
    /// has filled the disk.
    fn shrink(&self, handle: &dyn Handle, size_bytes: u64) {
        if handle.truncate(size_bytes).is_ok() {
            self.state().source_bytes = size_bytes;
        }
    }

    /// Brings a range of the copy to a file of the source.
    pub(super) fn write_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state().copy.file();
        let part = Part { file: &file, range };
        part.copy(&mut |bytes, at| handle.write_at(bytes, at))
    }

    /// The same; it may still be on its way.
    pub(super) fn send_range(&self, handle: &dyn Handle, range: Range<u64>) -> Result<()> {
        let file = self.state().copy.file();
        handle.write_part_later(&Part { file: &file, range })
    }

    /// What of the copy is data.
    pub(super) fn data(&self, size_bytes: u64) -> Vec<Range<u64>> {
        data_ranges(&self.state().copy.file(), 0..size_bytes)
    }
}

impl super::file::State {
    /// The source knows the times, unless they have changed meanwhile.
    fn forget_times(&mut self, changes: &Changes) {
        if self.mtime == changes.mtime {
            self.mtime = None;
        }
        if self.atime == changes.atime {
            self.atime = None;
        }
    }

    /// The source has everything up to a length.
    pub(super) fn settle(&mut self, size_bytes: u64, version: Version) {
        self.source_bytes = size_bytes;
        self.is_cut = false;
        self.ahead.begin();
        self.valid_bytes = size_bytes.min(self.size_bytes);
        self.version = Some(version);
        self.copy.let_go();
    }
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
