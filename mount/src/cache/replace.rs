//! Replaces a file as a whole: fills a temporary file in the same directory,
//! synchronises it, and renames it to the file's name.

use std::path::Path;
use std::sync::Arc;

use super::copy::data_ranges;
use super::file::CachedFile;
use super::staged_upload::TemporaryFile;
use super::write_back::{ONE_REQUEST_BYTES, parent, split_last};
use super::write_back_state::{Changes, Reached};
use crate::mount::{PathGuard, PathTurn};
use crate::source::{
    Attributes, Error, Finish, RenameFlags, Result, SetAttributes, Source, XattrFlags,
    set_but_times,
};

impl CachedFile {
    /// Replaces the file at the source. `found` is the file that has the name now;
    /// `temporary` has the content that was sent ahead. Everything reaches the device,
    /// except the name at a remote source: SFTP cannot synchronise a directory.
    pub(super) fn replace(
        &self,
        turn: &mut PathTurn,
        found: Option<Attributes>,
        temporary: Option<TemporaryFile>,
        changes: &Changes,
    ) -> Result<Reached> {
        let temporary = match temporary {
            Some(temporary) => temporary,
            None => self.make_temporary(turn)?,
        };
        let outcome = self
            .fill(turn, &temporary, found, changes)
            .and_then(|()| self.take_name(turn, &temporary, found, changes));
        match outcome {
            Ok(()) => self.shared.journal.done(),
            Err(_) => self.discard(turn, temporary),
        }
        self.shared.touch(self.ino, true);
        self.state.lock().temporary_in = None;
        outcome.map(|()| {
            if self.shared.source.is_remote() {
                Reached::Source
            } else {
                Reached::Device
            }
        })
    }

    /// Gives a temporary file the content and attributes of the target, but not its
    /// name.
    fn fill(
        &self,
        turn: &mut PathTurn,
        temporary: &TemporaryFile,
        found: Option<Attributes>,
        changes: &Changes,
    ) -> Result<()> {
        self.fetch(0..u64::MAX)?;
        let handle = &*temporary.handle;
        let data = data_ranges(&self.state.lock().copy.file(), 0..changes.size_bytes);
        let length = data.last().map_or(0, |range| range.end);
        let left: Vec<_> = data
            .into_iter()
            .flat_map(|range| temporary.sent.missing(range))
            .collect();
        let reaches_end = left
            .last()
            .is_some_and(|last| last.end == changes.size_bytes);
        // Longer content is sent directly, without being copied to memory.
        let bytes_max = if reaches_end { ONE_REQUEST_BYTES } else { 0 };
        let (ranges, last) = split_last(&left, bytes_max);
        for range in ranges {
            self.send_range(handle, range.clone())?;
        }
        if length < changes.size_bytes {
            handle.truncate(changes.size_bytes)?;
        }
        let settings = match found {
            Some(found) => {
                let guard = self.lock_both(turn, temporary, false)?;
                copy_extended(&*self.shared.source, &guard.paths[0], &guard.paths[1])?;
                as_before(&found, &temporary.new, self.times(changes))
            }
            None => self.times(changes),
        };
        let bytes = self.read_copy(&last)?;
        let end = Finish {
            bytes: &bytes,
            offset: last.start,
            changes: &settings,
            is_sync: true,
            looks_at_name: false,
        };
        handle.finish(&end).map(drop)
    }

    fn lock_both<'a>(
        &'a self,
        turn: &'a mut PathTurn,
        temporary: &TemporaryFile,
        is_exclusive: bool,
    ) -> Result<PathGuard<'a>> {
        let tree = &self.shared.tree;
        let find = || {
            // The directory of either file may have been renamed.
            let temporary = tree.path_below(temporary.directory, &temporary.name)?;
            Ok(vec![tree.path(self.ino)?, temporary])
        };
        self.shared.locks.lock(turn, is_exclusive, find)
    }

    /// Renames the temporary file to the target's name, which may have changed
    /// meanwhile.
    fn take_name(
        &self,
        turn: &mut PathTurn,
        temporary: &TemporaryFile,
        found: Option<Attributes>,
        changes: &Changes,
    ) -> Result<()> {
        let source = &*self.shared.source;
        // The lock is exclusive, so that an open of the name finds the new file in the
        // tree.
        let guard = self.lock_both(turn, temporary, true)?;
        let (path, temporary_path) = (&*guard.paths[0], &*guard.paths[1]);
        let handle = &temporary.handle;
        match (source.attributes(path), found) {
            (Ok(now), _) if now.links > 1 => return Err(Error::Errno(libc::EPERM)),
            (Ok(now), Some(before)) if now.ctime != before.ctime || now.mode != before.mode => {
                // Somebody changed attributes while the content was written.
                copy_extended(source, path, temporary_path)?;
                let times = self.times(changes);
                let settings = as_before(&now, &handle.attributes()?, times);
                set_but_times(&**handle, &settings)?;
            }
            _ => {}
        }
        source.rename(temporary_path, path, RenameFlags::empty())?;
        let now = handle.attributes()?;
        self.shared.tree.set_identity(self.ino, now.identity);
        {
            let mut state = self.state.lock();
            state.handle = Some(Arc::clone(handle));
            state.writer = Some(Arc::clone(handle));
            state.present.insert(0..changes.size_bytes);
            state.settle(changes.size_bytes, &now);
        }
        source.sync_directory(parent(path))
    }
}

/// Returns the attributes to set on a new file: permissions and owner of the file that
/// it replaces, and the given times.
fn as_before(before: &Attributes, new: &Attributes, times: SetAttributes) -> SetAttributes {
    SetAttributes {
        mode: (before.mode != new.mode).then_some(before.mode),
        uid: (before.uid != new.uid).then_some(before.uid),
        gid: (before.gid != new.gid).then_some(before.gid),
        ..times
    }
}

fn copy_extended(source: &dyn Source, from: &Path, to: &Path) -> Result<()> {
    if !source.has_extended() {
        return Ok(());
    }
    let (from, to) = (source.extended(from, None)?, source.extended(to, None)?);
    let names = match from.names() {
        Ok(names) => names,
        Err(error) if error.is(libc::ENOTSUP) => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in names {
        let value = from.value(&name)?;
        to.set(&name, &value, XattrFlags::empty())?;
    }
    Ok(())
}
