//! Operations that a descriptor opened with `O_PATH` lacks: getting a path to its file,
//! and opening the file again.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use crate::source::{Error, Kind, Result};

/// Returns a path to a descriptor's file, for calls that do not accept a descriptor
/// opened with `O_PATH`.
pub(super) fn by_descriptor(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}

/// Opens the regular file of a descriptor that was opened with `O_PATH`. Opening
/// anything else could block forever, for example on the other end of a named pipe,
/// or have an effect on a device.
pub(super) fn open_again(file: &OwnedFd, kind: Kind, flags: OFlags) -> Result<OwnedFd> {
    match kind {
        Kind::File => {}
        Kind::Directory => return Err(Error::Errno(libc::EISDIR)),
        Kind::Symlink => return Err(Error::Errno(libc::ELOOP)),
        _ => return Err(Error::Errno(libc::EINVAL)),
    }
    let flags = flags | OFlags::CLOEXEC;
    Ok(rustix::fs::open(by_descriptor(file), flags, Mode::empty())?)
}
