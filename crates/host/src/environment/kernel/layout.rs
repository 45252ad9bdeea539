//! Directories whose files have names that this program chooses.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;

use super::hash::hex;

/// A file of a directory that [`lay_out`] makes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    LinkTo(&'a Path),
}

/// Lays out files below a directory whose name is a hash of their content, and returns that
/// directory. The directory gets its name once it is complete.
pub(super) fn lay_out(place: &Path, files: &[(&str, Content<'_>)]) -> io::Result<PathBuf> {
    let mut digest = Hash::new();
    for (path, content) in files {
        digest.update(Hash::hash(path.as_bytes()));
        match content {
            Content::Bytes(bytes) => digest.update(Hash::hash(bytes)),
            Content::LinkTo(target) => {
                digest.update(b"link");
                digest.update(Hash::hash(target.as_os_str().as_bytes()));
            }
        }
    }
    let directory = place.join(hex(&digest.finalize()[..8]));
    if directory.is_dir() {
        return Ok(directory);
    }
    let partial = place.join(format!("partial-{}", std::process::id()));
    match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for (path, content) in files {
        let file = partial.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&partial))?;
        match content {
            Content::Bytes(bytes) => fs::write(&file, bytes)?,
            Content::LinkTo(target) => symlink(target, &file)?,
        }
    }
    match fs::rename(&partial, &directory) {
        // Another process has made the directory meanwhile.
        Err(_) if directory.is_dir() => fs::remove_dir_all(&partial)?,
        renamed => renamed?,
    }
    Ok(directory)
}
