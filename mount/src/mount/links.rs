//! Symbolic links. The kernel follows them where the mount is: what a server
//! writes into one leads to files of this machine, to be read and written by
//! whoever follows it.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};
use std::sync::atomic::Ordering;

use super::Volume;
use crate::source::{Error, Result};

impl Volume {
    /// How many directories a file is in, by the shortest of its names.
    fn depth(&self, ino: u64) -> usize {
        let tree = &self.shared.tree;
        let depth = |(directory, _)| Some(tree.path(directory).ok()?.components().count());
        tree.names(ino)
            .into_iter()
            .filter_map(depth)
            .min()
            .unwrap_or(0)
    }

    /// The target of a link; `EACCES` if it leads out of the mount and links are
    /// contained.
    pub fn read_link(&self, ino: u64) -> Result<OsString> {
        self.by_path(ino, |source, path| {
            let target = source.read_link(path)?;
            if !self.options.contains_links || is_contained(self.depth(ino), &target) {
                return Ok(target);
            }
            // One message is enough: a server may have any number of links.
            if !self.has_refused_link.swap(true, Ordering::Relaxed) {
                self.shared.note(&format!(
                    "cannot follow {}: the link leads out of the mount; --symlinks raw shows such \
                     links",
                    self.shared.full_name(ino)
                ));
            }
            Err(Error::Errno(libc::EACCES))
        })
    }
}

/// Whether a link in a directory of this depth leads to something below the root,
/// whatever else is there. After a name, `..` may lead anywhere: the name may be
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
