//! Sends the copies that earlier mounts kept. The next mount of the same source puts
//! each copy into its retry queue, unless the file at the source has changed.

use std::path::{Component, Path};
use std::sync::Arc;

use super::Mode;
use super::file::CachedFile;
use super::kept::{self, Claimed};
use super::retry_queue::RetryQueue;
use crate::mount::{PathTurn, Shared};
use crate::source::{Attributes, Error, Kind, OpenFlags, Result};
use crate::tree::ROOT;

/// The reason why a kept copy is not sent.
enum Left {
    Conflict,
    Failed(Error),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Moves the kept copies of a source to the retry queue. A copy that cannot be sent
/// stays, and a message says so.
pub(crate) fn take_kept(shared: &Arc<Shared>, queue: &Arc<RetryQueue>, mode: Mode) {
    let name = shared.source.name();
    let claimed = match kept::claim(&shared.directory, &name) {
        Ok(claimed) => claimed,
        Err(error) => {
            return shared.note(&format!("cannot look for kept copies of {name}: {error}"));
        }
    };
    for copy in claimed {
        let path = Path::new(&copy.record.path);
        let shown = format!("{}/{}", name.trim_end_matches('/'), path.display());
        let place = copy.place.display().to_string();
        match take(shared, queue, mode, copy) {
            Ok(()) => shared.note(&format!("sending the kept content of {shown} again")),
            Err(Left::Conflict) => shared.note(&format!(
                "cannot send the kept content of {shown}: the file at the source has changed \
                 since; copy the content from {place}, or discard it with `rm {place}`"
            )),
            Err(Left::Failed(error)) => shared.note(&format!(
                "cannot send the kept content of {shown}: {error}; it stays in {place} for the \
                 next mount"
            )),
        }
    }
}

fn take(
    shared: &Arc<Shared>,
    queue: &Arc<RetryQueue>,
    mode: Mode,
    copy: Claimed,
) -> Result<(), Left> {
    let path = Path::new(&copy.record.path);
    let ino = find(shared, path)?;
    let file = adopt(shared, mode, ino, copy);
    if let Ok(file) = &file {
        queue.take(file);
    }
    shared.tree.forget(ino, 1);
    file.map(drop)
}

/// Returns the inode number of a path, and counts one lookup. Looks up one name at a
/// time, as the kernel does, so that no link and no `..` leads elsewhere.
fn find(shared: &Shared, path: &Path) -> Result<u64, Left> {
    let mut way = vec![ROOT];
    let found = path
        .components()
        .try_for_each(|component| look_up(shared, &mut way, component));
    let last = match found {
        Ok(()) if way.len() > 1 => way.pop(),
        _ => None,
    };
    // The node of the file keeps its parent directories.
    let passed = way.iter().skip(1);
    passed.for_each(|directory| shared.tree.forget(*directory, 1));
    found?;
    last.ok_or(Left::Conflict)
}

fn look_up(shared: &Shared, way: &mut Vec<u64>, component: Component<'_>) -> Result<(), Left> {
    let Component::Normal(name) = component else {
        return Err(Left::Conflict);
    };
    let parent = *way.last().unwrap_or(&ROOT);
    let below = shared.tree.path_below(parent, name)?;
    let found = match shared.source.attributes(&below) {
        Err(Error::Errno(libc::ENOENT | libc::ENOTDIR)) => return Err(Left::Conflict),
        found => found?,
    };
    if !matches!(found.kind, Kind::Directory | Kind::File) {
        return Err(Left::Conflict);
    }
    way.push(shared.tree.looked_up(parent, name, &found));
    Ok(())
}

fn adopt(
    shared: &Arc<Shared>,
    mode: Mode,
    ino: u64,
    copy: Claimed,
) -> Result<Arc<CachedFile>, Left> {
    let flags = OpenFlags {
        read: true,
        expected: shared.tree.identity(ino),
        ..OpenFlags::WRITE
    };
    let mut turn = PathTurn::begin();
    let guard = shared.path(&mut turn, ino)?;
    let is_base = |found: &Attributes| {
        found.kind == Kind::File && copy.record.base.is_some_and(|base| base.is(found))
    };
    if !is_base(&shared.source.attributes(guard.path())?) {
        return Err(Left::Conflict);
    }
    let opened = shared.open(guard.path(), flags, false)?;
    if !is_base(&opened.attributes) {
        return Err(Left::Conflict);
    }
    let file = CachedFile::new(shared, ino, mode)?;
    file.adopt(copy, opened)?;
    Ok(Arc::new(file))
}
