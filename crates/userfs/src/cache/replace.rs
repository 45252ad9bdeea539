//! Writing a file back as a whole: a temporary file beside it, synchronised,
//! that takes its name.

use std::path::Path;
use std::sync::Arc;

use super::draft::Draft;
use super::file::CachedFile;
use super::write_back::{Changes, ONE_REQUEST_BYTES, Target, split_last};
use crate::source::{Attributes, Error, RenameFlags, Result, SetAttributes, SetExtended, Source};
use crate::tree::Version;

impl CachedFile {
    /// `draft` has what was sent before.
    pub(super) fn replace(
        &self,
        target: &Target,
        draft: Option<Draft>,
        changes: &Changes,
        is_sync: bool,
    ) -> Result<()> {
        if target.path.is_none() {
            return Err(Error::Errno(libc::EPERM));
        }
        let valid_bytes = self.state().valid_bytes;
        let draft = match (self.fetch(0..valid_bytes), draft) {
            (Ok(()), Some(draft)) => draft,
            (Ok(()), None) => self.begin_draft()?,
            (Err(error), draft) => {
                draft.into_iter().for_each(|draft| self.discard(draft));
                return Err(error);
            }
        };
        let outcome = self
            .fill(&draft, target, changes)
            .and_then(|()| self.take_name(&draft, target, changes, is_sync));
        match outcome {
            Ok(()) => self.shared.journal.done(),
            Err(_) => self.discard(draft),
        }
        self.shared.touch(self.ino, true);
        outcome
    }

    /// Makes a temporary file in all but its name what the target is to be.
    fn fill(&self, draft: &Draft, target: &Target, changes: &Changes) -> Result<()> {
        let source = &*self.shared.source;
        let handle = &*draft.handle;
        let data = self.data(changes.size_bytes);
        let length = data.last().map_or(0, |range| range.end);
        let left: Vec<_> = data
            .into_iter()
            .flat_map(|range| draft.sent.missing(range))
            .collect();
        let reaches_end = left
            .last()
            .is_some_and(|last| last.end == changes.size_bytes);
        // More is sent without being copied.
        let bytes_max = if reaches_end { ONE_REQUEST_BYTES } else { 0 };
        let (ranges, last) = split_last(&left, bytes_max);
        for range in ranges {
            self.send_range(handle, range.clone())?;
        }
        if length < changes.size_bytes {
            handle.truncate(changes.size_bytes)?;
        }
        let settings = match (&target.found, &target.path) {
            (Some(found), Some(path)) => {
                copy_extended(source, path, &self.draft_path(draft)?)?;
                as_before(found, &draft.new, changes)
            }
            _ => changes.times(),
        };
        let bytes = self.read_copy(&last)?;
        handle.finish(&bytes, last.start, &settings, true)?;
        Ok(())
    }

    /// Gives a complete temporary file the name that the file has by now.
    fn take_name(
        &self,
        draft: &Draft,
        target: &Target,
        changes: &Changes,
        is_sync: bool,
    ) -> Result<()> {
        let source = &*self.shared.source;
        // Whoever opens the name meanwhile must find the tree knowing the new
        // file. Its last name may have gone: then it is nobody's.
        let tree = &self.shared.tree;
        let held = self
            .shared
            .paths_to_change(|| Ok(vec![tree.path(self.ino)?, self.draft_path(draft)?]))
            .map_err(|_| Error::Errno(libc::EPERM))?;
        let (path, temporary) = (&*held.paths[0], &*held.paths[1]);
        let handle = &draft.handle;
        match (source.attributes(path), target.found) {
            (Ok(now), _) if now.links > 1 => return Err(Error::Errno(libc::EPERM)),
            (Ok(now), Some(before)) if now.ctime != before.ctime || now.mode != before.mode => {
                // Somebody changed attributes while the content was written.
                copy_extended(source, path, temporary)?;
                handle.set_attributes(&as_before(&now, &handle.attributes()?, changes))?;
            }
            _ => {}
        }
        source.rename(temporary, path, RenameFlags::Replace)?;
        if is_sync {
            source.sync_directory(path.parent().unwrap_or(Path::new("")))?;
        }
        let now = handle.attributes()?;
        self.shared.tree.set_identity(self.ino, now.identity);
        let mut state = self.state();
        state.handle = Some(Arc::clone(handle));
        state.is_writable = true;
        state.is_unsynced = false;
        state.present.insert(0..changes.size_bytes);
        state.settle(changes.size_bytes, Version::of(&now));
        Ok(())
    }
}

/// What a new file needs to have permissions, owner and times of the one that
/// it replaces, but for the changes.
fn as_before(before: &Attributes, new: &Attributes, changes: &Changes) -> SetAttributes {
    SetAttributes {
        mode: (before.mode != new.mode).then_some(before.mode),
        uid: (before.uid != new.uid).then_some(before.uid),
        gid: (before.gid != new.gid).then_some(before.gid),
        ..changes.times()
    }
}

fn copy_extended(source: &dyn Source, from: &Path, to: &Path) -> Result<()> {
    let names = match source.list_extended(from) {
        Ok(names) => names,
        Err(error) if error.is(libc::ENOTSUP) => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in names {
        let value = source.extended(from, &name)?;
        source.set_extended(to, &name, &value, SetExtended::Any)?;
    }
    Ok(())
}
