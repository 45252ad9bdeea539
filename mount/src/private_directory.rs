//! A directory that no other user can enter. It holds copies of files that others may
//! not read, and journals that say which files to remove.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

/// Creates a directory and its missing parents. An existing directory is accepted
/// only if it belongs to this user and is private.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    if let Some(above) = path.parent() {
        builder.recursive(true).create(above)?;
    }
    match builder.recursive(false).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let refused = |why: &str| {
        let path = path.display();
        let text = format!(
            "cannot keep copies of files in {path}: {why}, or name another directory with --copies"
        );
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    };
    let directory = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(refused("it is a link or not a directory; remove it"));
        }
        opened => opened?,
    };
    match obstacle(&rustix::fs::fstat(&directory)?) {
        Some(why) => Err(refused(&why)),
        None => Ok(()),
    }
}

fn obstacle(found: &Stat) -> Option<String> {
    let (own, mode) = (rustix::process::geteuid().as_raw(), found.st_mode & 0o7777);
    if found.st_uid != own {
        return Some(format!(
            "it belongs to user {}, not to {own}; change its owner",
            found.st_uid
        ));
    }
    (mode & 0o077 != 0)
        .then(|| format!("others can enter it (mode {mode:o}); make it private with `chmod 700`"))
}
