//! Writing a file back as a whole: a temporary file beside it, synchronised,
//! that takes its name.

use std::path::Path;
use std::sync::Arc;

use super::file::CachedFile;
use super::write_back::{Changes, Target, split_last};
use crate::source::{
    Attributes, Creation, Error, Handle, OpenFlags, RenameFlags, Result, SetAttributes,
    SetExtended, Source,
};
use crate::tree::Version;

/// Permissions of a file that has vanished from the source.
const MODE_OF_A_NEW_FILE: u32 = 0o600;

impl CachedFile {
    pub(super) fn replace(&self, target: &Target, changes: &Changes, is_sync: bool) -> Result<()> {
        let path = target.path.as_deref().ok_or(Error::Errno(libc::EPERM))?;
        let valid_bytes = self.state().valid_bytes;
        self.fetch(0..valid_bytes)?;
        let source = &*self.shared.source;
        let temporary = self.shared.journal.temporary_beside(path)?;
        self.shared.touch(self.ino, true);
        let outcome = self
            .fill(&temporary, target, changes)
            .and_then(|handle| self.take_name(&temporary, handle, target, changes, is_sync));
        if let Err(error) = outcome {
            self.shared.touch(self.ino, true);
            return match source.unlink(&temporary) {
                // Else the journal still says that it is there.
                Err(left) if !left.is(libc::ENOENT) => Err(error),
                _ => {
                    self.shared.journal.done();
                    Err(error)
                }
            };
        }
        self.shared.touch(self.ino, true);
        self.shared.journal.done();
        Ok(())
    }

    /// A temporary file that is in all but its name what the target is to be.
    fn fill(
        &self,
        temporary: &Path,
        target: &Target,
        changes: &Changes,
    ) -> Result<Arc<dyn Handle>> {
        let source = &*self.shared.source;
        let flags = OpenFlags {
            read: true,
            create: Some(Creation {
                mode: MODE_OF_A_NEW_FILE,
                owner: None,
            }),
            exclusive: true,
            ..OpenFlags::WRITE
        };
        let (handle, new) = source.open_found(temporary, flags)?;
        let data = self.data(changes.size_bytes);
        let length = data.last().map_or(0, |range| range.end);
        let (ranges, last) = split_last(&data, length == changes.size_bytes);
        for range in ranges {
            self.write_range(&*handle, range.clone())?;
        }
        if length < changes.size_bytes {
            handle.truncate(changes.size_bytes)?;
        }
        let settings = match (&target.found, &target.path) {
            (Some(found), Some(path)) => {
                copy_extended(source, path, temporary)?;
                as_before(found, &new, changes)
            }
            _ => changes.times(),
        };
        let bytes = self.read_copy(&last)?;
        handle.finish(&bytes, last.start, &settings, true)?;
        Ok(Arc::from(handle))
    }

    /// Gives a complete temporary file the name that the file has by now.
    fn take_name(
        &self,
        temporary: &Path,
        handle: Arc<dyn Handle>,
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
            .paths_to_change(|| Ok(vec![tree.path(self.ino)?]))
            .map_err(|_| Error::Errno(libc::EPERM))?;
        let path = held.path();
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
        state.handle = Some(handle);
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
