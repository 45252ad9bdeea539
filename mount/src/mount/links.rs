//! Symbolic links. The kernel follows them on the machine of the mount. So a link on a
//! server can lead a program to read or write files of this machine.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};
use std::sync::atomic::Ordering;

use super::Volume;
use crate::source::{Error, Result};

impl Volume {
    /// Returns the depth of the directory that a file is in. For a file with several
    /// names, returns the smallest depth.
    fn depth(&self, ino: u64) -> usize {
        let tree = &self.shared.tree;
        let depth = |(directory, _)| Some(tree.path(directory).ok()?.components().count());
        tree.names(ino)
            .into_iter()
            .filter_map(depth)
            .min()
            .unwrap_or(0)
    }

    /// Returns the target of a link. Returns `EACCES` if the link leads out of the
    /// mount and links are contained.
    pub fn read_link(&self, ino: u64) -> Result<OsString> {
        self.by_path(ino, |source, path| {
            let target = source.read_link(path)?;
            if !self.options.contains_links || is_contained(self.depth(ino), &target) {
                return Ok(target);
            }
            // One message is enough: a server may have any number of links.
            if !self.has_refused_link.swap(true, Ordering::Relaxed) {
                self.shared.note(&format!(
                    "cannot follow {}: the link leads out of the mount; use --symlinks raw to show \
                     such links",
                    self.shared.full_name(ino)
                ));
            }
            Err(Error::Errno(libc::EACCES))
        })
    }
}

/// Returns whether a link in a directory of this depth certainly leads to something
/// below the root. A `..` after a name may lead anywhere, because the name may belong to
/// a link.
fn is_contained(depth: usize, target: &OsStr) -> bool {
    let mut ups = 0;
    let mut has_names = false;
    Path::new(target)
        .components()
        .all(|component| match component {
            Component::Normal(_) => {
                has_names = true;
                true
            }
            Component::ParentDir => {
                ups += 1;
                !has_names && ups <= depth
            }
            Component::CurDir => true,
            Component::RootDir | Component::Prefix(_) => false,
        })
}
