//! Reads and changes extended attributes of a file, by a file descriptor.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::io::Errno;

use super::descriptor::by_descriptor;
use crate::source::{Extended, Result, XattrFlags};

/// A descriptor opened with `O_PATH`, possibly of a symbolic link. Its path below
/// `/proc/self/fd` leads to its file, even if that is a link.
pub(super) struct ExtendedAttributes(pub OwnedFd);

impl Extended for ExtendedAttributes {
    fn value(&self, name: &OsStr) -> Result<Vec<u8>> {
        let path = by_descriptor(&self.0);
        grown(|buffer| rustix::fs::getxattr(&path, name, buffer))
    }

    fn set(&self, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        let path = by_descriptor(&self.0);
        Ok(rustix::fs::setxattr(path, name, value, flags)?)
    }

    fn names(&self) -> Result<Vec<OsString>> {
        let path = by_descriptor(&self.0);
        let names = grown(|buffer| rustix::fs::listxattr(&path, buffer))?;
        let names = names.split(|byte| *byte == 0);
        let names = names.filter(|name| !name.is_empty());
        Ok(names
            .map(|name| OsString::from_vec(name.to_vec()))
            .collect())
    }

    fn remove(&self, name: &OsStr) -> Result<()> {
        Ok(rustix::fs::removexattr(by_descriptor(&self.0), name)?)
    }
}

/// Returns what `fill` writes to a buffer. The buffer grows until it is large enough.
fn grown(mut fill: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match fill(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < (1 << 20) => buffer.resize(buffer.len() * 8, 0),
            Err(error) => return Err(error.into()),
        }
    }
}
