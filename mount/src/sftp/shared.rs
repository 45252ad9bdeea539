//! State that a source shares with its open files: the connection, and known facts
//! about the server's files.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::diagnosis::{Operation, diagnose};
use super::failure::Requested;
use super::link::Link;
use super::names::Names;
use super::requests::RequestBatch;
use super::server_clock::ServerClock;
use crate::source::Result;

pub(super) struct Shared {
    pub link: Link,
    /// The directory on the server. The path is absolute and without symbolic links, so
    /// that it means the same in every session.
    pub root: PathBuf,
    pub names: Names,
    pub clock: ServerClock,
}

impl Shared {
    pub fn remote(&self, path: &Path) -> Vec<u8> {
        // Joining an empty path must not add a slash at the end.
        let remote: PathBuf = self.root.components().chain(path.components()).collect();
        remote.into_os_string().into_vec()
    }

    /// Calls `work` with the server's paths. If the server refuses, finds out which
    /// error it was.
    pub fn ask<T, const N: usize>(
        &self,
        operation: Operation,
        paths: [&Path; N],
        work: impl FnOnce(&mut RequestBatch, [&[u8]; N]) -> Requested<T>,
    ) -> Result<T> {
        let session = self.link.session()?;
        let remote = paths.map(|path| self.remote(path));
        let remote = remote.each_ref().map(Vec::as_slice);
        let done = work(&mut session.batch(), remote);
        done.map_err(|failure| diagnose(&session, operation, &remote, failure))
    }
}
