//! Paths of the server, and names that come from it.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The longest name and the longest path that Linux knows.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4095;

/// The directory on the server that is the source's root: absolute, and
/// without symbolic links, so that it means the same in every session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root(PathBuf);

impl Root {
    /// A root as REALPATH tells it, unless that is no absolute path.
    pub fn new(path: &[u8]) -> Option<Self> {
        let is_absolute = path.starts_with(b"/") && !path.contains(&0);
        is_absolute.then(|| Self(OsStr::from_bytes(path).into()))
    }

    /// Where a path of the source lies on the server.
    pub fn join(&self, path: &Path) -> Vec<u8> {
        // Without a slash at the end, if the path is empty.
        let joined: PathBuf = self.0.components().chain(path.components()).collect();
        joined.into_os_string().into_vec()
    }
}

/// The directory that a path of the server lies in.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// Whether something can be a name in a directory. What cannot would lead
/// elsewhere, or hide what follows it.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// Whether a path is longer than Linux takes, in all or in one name.
pub(super) fn is_too_long(path: &[u8]) -> bool {
    path.len() > PATH_BYTES_MAX
        || path
            .split(|byte| *byte == b'/')
            .any(|name| name.len() > NAME_BYTES_MAX)
}
