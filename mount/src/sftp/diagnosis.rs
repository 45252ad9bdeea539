//! Finds the error number of a refusal if the protocol's code does not show it. For
//! this, it looks at the files again, in one round trip.
//!
//! OpenSSH's server returns FAILURE for `EEXIST`, `ENOTEMPTY`, `EISDIR`, `EXDEV`,
//! `EROFS`, `ENOSPC` and everything else that has no code. It returns
//! `NO_SUCH_FILE` also for `ENOTDIR` and `ELOOP`, and `PERMISSION_DENIED` also for
//! `EPERM` (`errno_to_portable` in `sftp-server.c`). Errors that cannot be
//! distinguished in this way become `EIO`: a quota, too many links, a running
//! program.

use std::sync::Arc;

use rustix::fs::StatVfsMountFlags;

use super::failure::Failure;
use super::packet::{Decoder, Malformed, extension, is_too_long, kind, parent, status};
use super::session::Session;
use super::stat::Stat;
use crate::source::{Error, Kind, StatVfs};

/// The operation that the server refused. For an operation on two paths, the new path
/// shows the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Open { writes: bool, exclusive: bool },
    List,
    ReadLink,
    Make,
    RemoveDirectory,
    Unlink,
    Link,
    Rename,
    SetAttributes { resizes: bool },
    Write { bytes: usize },
    Other,
}

/// Decodes the reply to STATVFS (OpenSSH's PROTOCOL, section 3.4).
pub(super) fn decode_space(packet: &mut Decoder<'_>) -> Result<StatVfs, Malformed> {
    let (block, fragment) = (packet.u64()?.max(1), packet.u64()?);
    Ok(StatVfs {
        f_bsize: block,
        f_frsize: if fragment == 0 { block } else { fragment },
        f_blocks: packet.u64()?,
        f_bfree: packet.u64()?,
        f_bavail: packet.u64()?,
        f_files: packet.u64()?,
        f_ffree: packet.u64()?,
        f_favail: packet.u64()?,
        f_fsid: packet.u64()?,
        f_flag: StatVfsMountFlags::from_bits_retain(packet.u64()?),
        f_namemax: packet.u64()?,
    })
}

#[derive(Default)]
struct Facts {
    target: Option<Stat>,
    parent: Option<Stat>,
    file_system: Option<StatVfs>,
}

fn kind_of(stat: Option<Stat>) -> Option<Kind> {
    stat.and_then(|stat| stat.kind())
}

fn is_directory(stat: Option<Stat>) -> bool {
    kind_of(stat) == Some(Kind::Directory)
}

fn is_other_than_directory(stat: Option<Stat>) -> bool {
    stat.is_some() && !is_directory(stat)
}

impl Facts {
    /// Gathers facts about one or two paths. The first path decides.
    fn gather(session: &Arc<Session>, paths: &[&[u8]]) -> [Self; 2] {
        let mut batch = session.batch();
        let has_statvfs = session.has(extension::STATVFS);
        let mut ask = |kind: u8, strings: &[&[u8]]| batch.ask(kind, strings).ok();
        let mut ask_about = |path: &&[u8]| {
            let above = parent(path);
            let (target, parent) = (ask(kind::LSTAT, &[path]), ask(kind::LSTAT, &[above]));
            let mut statvfs = || ask(kind::EXTENDED, &[extension::STATVFS, above]);
            (target, parent, has_statvfs.then(&mut statvfs).flatten())
        };
        let asked: Vec<_> = paths.iter().map(&mut ask_about).collect();
        let mut facts = <[Self; 2]>::default();
        for (facts, (target, parent, file_system)) in facts.iter_mut().zip(asked) {
            facts.target = target.and_then(|reply| batch.stat(reply).ok());
            facts.parent = parent.and_then(|reply| batch.stat(reply).ok());
            let mut read = |reply| {
                batch
                    .read_answer(reply, kind::EXTENDED_REPLY, decode_space)
                    .ok()
            };
            facts.file_system = file_system.and_then(&mut read);
        }
        facts
    }

    fn is_in_a_file(&self) -> bool {
        is_other_than_directory(self.parent)
    }

    fn is_in_sticky(&self) -> bool {
        let mode = self.parent.and_then(|stat| stat.mode());
        mode.is_some_and(|mode| mode & libc::S_ISVTX != 0)
    }

    fn is_read_only(&self) -> bool {
        let there = self.file_system.as_ref();
        there.is_some_and(|there| there.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    fn is_full(&self, bytes: usize) -> bool {
        self.file_system.as_ref().is_some_and(|there| {
            let has_no_inode = there.f_files > 0 && there.f_ffree == 0;
            let free_bytes = there.f_bavail.saturating_mul(there.f_frsize);
            free_bytes < (bytes as u64).max(1) || has_no_inode
        })
    }
}

/// Returns the error that a refusal stands for. `paths` are paths at the server: the
/// path of the operation, or the new path and the old one.
pub(super) fn diagnose(
    session: &Arc<Session>,
    operation: Operation,
    paths: &[&[u8]],
    failure: Failure,
) -> Error {
    let Failure::Refused(code) = failure else {
        return failure.plain();
    };
    let facts = || Facts::gather(session, paths);
    Error::Errno(match code {
        status::BAD_MESSAGE if paths.iter().any(|path| is_too_long(path)) => libc::ENAMETOOLONG,
        status::NO_SUCH_FILE => of_no_such_file(operation, facts()),
        status::PERMISSION_DENIED => of_permission_denied(operation, facts),
        status::FAILURE => of_failure(operation, facts()),
        _ => return failure.plain(),
    })
}

fn of_no_such_file(operation: Operation, [path, other]: [Facts; 2]) -> i32 {
    let is_not_directory = match operation {
        Operation::List | Operation::RemoveDirectory => is_other_than_directory(path.target),
        Operation::Rename => is_directory(other.target) && is_other_than_directory(path.target),
        _ => false,
    };
    match operation {
        _ if is_not_directory || path.is_in_a_file() || other.is_in_a_file() => libc::ENOTDIR,
        Operation::Open { .. } if kind_of(path.target) == Some(Kind::Symlink) => libc::ELOOP,
        Operation::Write { .. } => libc::EBADF,
        _ => libc::ENOENT,
    }
}

fn of_permission_denied(operation: Operation, facts: impl Fn() -> [Facts; 2]) -> i32 {
    let is_in_sticky = || facts().iter().any(Facts::is_in_sticky);
    match operation {
        Operation::SetAttributes { resizes: false } => libc::EPERM,
        Operation::Link if is_directory(facts()[1].target) => libc::EPERM,
        Operation::Unlink | Operation::RemoveDirectory | Operation::Rename if is_in_sticky() => {
            libc::EPERM
        }
        _ => libc::EACCES,
    }
}

/// Returns the error number for the code FAILURE. Checks in the same order as Linux:
/// for an existing name (`filename_create` in `fs/namei.c`), then for a read-only file
/// system, then for everything else.
fn of_failure(operation: Operation, [found, other]: [Facts; 2]) -> i32 {
    use Operation::{
        Link, List, Make, Open, Other, ReadLink, RemoveDirectory, Rename, SetAttributes,
    };
    let is_new = match operation {
        Open { exclusive, .. } => exclusive,
        _ => matches!(operation, Make | Link),
    };
    let changes = match operation {
        Open { writes, .. } => writes,
        _ => !matches!(operation, List | ReadLink | Other),
    };
    let file_systems = found.file_system.as_ref().zip(other.file_system.as_ref());
    let is_directory_there = is_directory(found.target);
    match operation {
        _ if is_new && found.target.is_some() => libc::EEXIST,
        Open { writes: true, .. } if is_directory_there => libc::EISDIR,
        _ if changes && found.is_read_only() => libc::EROFS,
        Link | Rename if file_systems.is_some_and(|(a, b)| a.f_fsid != b.f_fsid) => libc::EXDEV,
        // A mount point is refused in the same way, but that case is rare.
        RemoveDirectory => libc::ENOTEMPTY,
        Rename if is_directory_there && !is_directory(other.target) => libc::EISDIR,
        Rename if is_directory_there => libc::ENOTEMPTY,
        Operation::Unlink | SetAttributes { resizes: true } if is_directory_there => libc::EISDIR,
        Operation::Write { bytes } if found.is_full(bytes) => libc::ENOSPC,
        Open { .. } | Make | Link | Rename | SetAttributes { .. } if found.is_full(0) => {
            libc::ENOSPC
        }
        _ => libc::EIO,
    }
}
