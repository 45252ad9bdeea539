//! Which error number a refusal stands for, where the protocol's code does
//! not tell: the files are looked at once more, all of them in one round
//! trip.
//!
//! OpenSSH's server says FAILURE for `EEXIST`, `ENOTEMPTY`, `EISDIR`,
//! `EXDEV`, `EROFS`, `ENOSPC` and all that it has no code for,
//! `NO_SUCH_FILE` for `ENOTDIR` and `ELOOP`, too, and `PERMISSION_DENIED`
//! for `EPERM` (`errno_to_portable` in `sftp-server.c`). What cannot be told
//! apart this way is `EIO`: a quota, too many links, a program that is
//! running.

use super::exchange::{Exchange, Tag};
use super::packet::{Decoder, Malformed, kind, status};
use super::path::{is_too_long, parent};
use super::session::Session;
use super::stat::Stat;
use super::status::Failure;
use crate::source::{Error, Kind, Space};

/// What the server refused to do. Paths are the server's.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked<'a> {
    Open {
        path: &'a [u8],
        writes: bool,
        exclusive: bool,
    },
    List(&'a [u8]),
    ReadLink(&'a [u8]),
    Make(&'a [u8]),
    RemoveDirectory(&'a [u8]),
    Unlink(&'a [u8]),
    Link {
        existing: &'a [u8],
        new: &'a [u8],
    },
    Rename {
        from: &'a [u8],
        to: &'a [u8],
    },
    SetAttributes {
        path: &'a [u8],
        resizes: bool,
    },
    Write {
        path: &'a [u8],
        bytes: u64,
    },
    Other(&'a [u8]),
}

impl<'a> Asked<'a> {
    /// The path that decides, and the other one of an operation on two.
    fn paths(self) -> (&'a [u8], Option<&'a [u8]>) {
        match self {
            Self::Open { path, .. }
            | Self::List(path)
            | Self::ReadLink(path)
            | Self::Make(path)
            | Self::RemoveDirectory(path)
            | Self::Unlink(path)
            | Self::SetAttributes { path, .. }
            | Self::Write { path, .. }
            | Self::Other(path) => (path, None),
            Self::Link { existing, new } => (new, Some(existing)),
            Self::Rename { from, to } => (to, Some(from)),
        }
    }
}

/// What STATVFS tells (OpenSSH's PROTOCOL, section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileSystem {
    pub space: Space,
    id: u64,
    is_read_only: bool,
}

impl FileSystem {
    pub fn decode(packet: &mut Decoder<'_>) -> Result<Self, Malformed> {
        const READ_ONLY: u64 = 1;
        let mut fields = [0; 11];
        for field in &mut fields {
            *field = packet.u64()?;
        }
        let [
            block,
            fragment,
            blocks,
            free,
            available,
            files,
            files_free,
            _,
            id,
            flags,
            name,
        ] = fields;
        let unit = if fragment == 0 { block } else { fragment };
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(Self {
            space: Space {
                block_bytes: narrow(unit),
                blocks,
                blocks_free: free,
                blocks_available: available,
                files,
                files_free,
                name_bytes_max: narrow(name),
            },
            id,
            is_read_only: flags & READ_ONLY != 0,
        })
    }

    fn is_full(&self, bytes: u64) -> bool {
        let available = self.space.blocks_available;
        let has_no_inode = self.space.files > 0 && self.space.files_free == 0;
        available.saturating_mul(u64::from(self.space.block_bytes)) < bytes.max(1) || has_no_inode
    }
}

/// Asks for a file system's state, if the server can tell.
pub(super) fn statvfs(exchange: &mut Exchange<'_>, path: &[u8]) -> Result<Tag, Failure> {
    exchange.extended("statvfs@openssh.com", |packet| {
        packet.string(path);
    })
}

/// What was found about the files of an operation.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    target: Option<Stat>,
    parent: Option<Stat>,
    other: Option<Stat>,
    other_parent: Option<Stat>,
    file_system: Option<FileSystem>,
    other_file_system: Option<FileSystem>,
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

fn is_sticky(stat: Option<Stat>) -> bool {
    stat.and_then(|stat| stat.mode())
        .is_some_and(|mode| mode & libc::S_ISVTX != 0)
}

impl Facts {
    fn gather(session: &Session, path: &[u8], other: Option<&[u8]>) -> Result<Self, Failure> {
        let mut exchange = session.exchange();
        let has_statvfs = session.extensions.statvfs;
        let mut ask = |path: &[u8]| -> Result<(Tag, Tag, Option<Tag>), Failure> {
            let target = exchange.lstat(path)?;
            let above = exchange.lstat(parent(path))?;
            let file_system = match has_statvfs {
                true => Some(statvfs(&mut exchange, parent(path))?),
                false => None,
            };
            Ok((target, above, file_system))
        };
        let first = ask(path)?;
        let second = other.map(&mut ask).transpose()?;
        let mut told = |(target, above, file_system): (Tag, Tag, Option<Tag>)| {
            let target = told(exchange.stat(target))?;
            let above = self::told(exchange.stat(above))?;
            let file_system = match file_system {
                Some(tag) => self::told(exchange.extended_reply(tag, FileSystem::decode))?,
                None => None,
            };
            Ok::<_, Failure>((target, above, file_system))
        };
        let (target, parent, file_system) = told(first)?;
        let (other, other_parent, other_file_system) = match second {
            Some(second) => told(second)?,
            None => (None, None, None),
        };
        Ok(Self {
            target,
            parent,
            other,
            other_parent,
            file_system,
            other_file_system,
        })
    }

    fn is_read_only(&self) -> bool {
        self.file_system.is_some_and(|there| there.is_read_only)
    }

    fn is_full(&self, bytes: u64) -> bool {
        self.file_system.is_some_and(|there| there.is_full(bytes))
    }

    fn is_across(&self) -> bool {
        match (self.file_system, self.other_file_system) {
            (Some(one), Some(two)) => one.id != two.id,
            _ => false,
        }
    }
}

/// What was told, nothing if that was refused.
fn told<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Refused(_)) => Ok(None),
        Err(Failure::Lost) => Err(Failure::Lost),
    }
}

/// The error that a refusal stands for.
pub(super) fn diagnose(session: &Session, asked: Asked<'_>, failure: Failure) -> Error {
    let Failure::Refused(code) = failure else {
        return Error::Lost;
    };
    let (path, other) = asked.paths();
    let facts = || Facts::gather(session, path, other).unwrap_or_default();
    match code {
        status::BAD_MESSAGE => {
            let too_long = is_too_long(path) || other.is_some_and(is_too_long);
            Error::Errno(if too_long {
                libc::ENAMETOOLONG
            } else {
                libc::EINVAL
            })
        }
        status::NO_SUCH_FILE => Error::Errno(of_no_such_file(asked, &facts())),
        status::PERMISSION_DENIED => Error::Errno(of_permission_denied(asked, facts)),
        status::FAILURE => Error::Errno(of_failure(session, asked, &facts())),
        _ => failure.plain(),
    }
}

fn of_no_such_file(asked: Asked<'_>, facts: &Facts) -> i32 {
    let is_not_directory = match asked {
        Asked::List(_) | Asked::RemoveDirectory(_) => is_other_than_directory(facts.target),
        Asked::Rename { .. } => is_directory(facts.other) && is_other_than_directory(facts.target),
        _ => false,
    };
    let is_in_a_file =
        is_other_than_directory(facts.parent) || is_other_than_directory(facts.other_parent);
    let is_link = kind_of(facts.target) == Some(Kind::Symlink);
    match asked {
        _ if is_not_directory || is_in_a_file => libc::ENOTDIR,
        Asked::Open { .. } if is_link => libc::ELOOP,
        Asked::Write { .. } => libc::EBADF,
        _ => libc::ENOENT,
    }
}

fn of_permission_denied(asked: Asked<'_>, facts: impl Fn() -> Facts) -> i32 {
    match asked {
        Asked::SetAttributes { resizes: false, .. } => libc::EPERM,
        Asked::Link { .. } if is_directory(facts().other) => libc::EPERM,
        Asked::Unlink(_) | Asked::RemoveDirectory(_) if is_sticky(facts().parent) => libc::EPERM,
        Asked::Rename { .. } => {
            let facts = facts();
            match is_sticky(facts.parent) || is_sticky(facts.other_parent) {
                true => libc::EPERM,
                false => libc::EACCES,
            }
        }
        _ => libc::EACCES,
    }
}

/// In the order in which Linux checks: a name that is there before a file
/// system that is read-only (`filename_create` in `fs/namei.c`), which goes
/// before all else.
fn of_failure(session: &Session, asked: Asked<'_>, facts: &Facts) -> i32 {
    let exists = facts.target.is_some();
    let changes = !matches!(
        asked,
        Asked::Open { writes: false, .. } | Asked::List(_) | Asked::ReadLink(_) | Asked::Other(_)
    );
    match asked {
        Asked::Open {
            exclusive: true, ..
        }
        | Asked::Make(_)
        | Asked::Link { .. }
            if exists =>
        {
            return libc::EEXIST;
        }
        Asked::Open { writes: true, .. } if is_directory(facts.target) => return libc::EISDIR,
        _ if changes && facts.is_read_only() => return libc::EROFS,
        Asked::Link { .. } | Asked::Rename { .. } if facts.is_across() => return libc::EXDEV,
        _ => {}
    }
    match asked {
        Asked::Open { .. } | Asked::List(_) if has_all_handles(session) => libc::EMFILE,
        Asked::Open { .. } | Asked::Make(_) | Asked::Link { .. } if facts.is_full(0) => {
            libc::ENOSPC
        }
        Asked::Unlink(_) if is_directory(facts.target) => libc::EISDIR,
        Asked::RemoveDirectory(path) => match is_empty(session, path) {
            Some(false) => libc::ENOTEMPTY,
            _ => libc::EBUSY,
        },
        Asked::Rename { to, .. } => match is_directory(facts.target) {
            true if !is_directory(facts.other) => libc::EISDIR,
            true if is_empty(session, to) == Some(false) => libc::ENOTEMPTY,
            _ if facts.is_full(0) => libc::ENOSPC,
            _ => libc::EIO,
        },
        Asked::SetAttributes { resizes: true, .. } if is_directory(facts.target) => libc::EISDIR,
        Asked::SetAttributes { .. } if facts.is_full(0) => libc::ENOSPC,
        Asked::Write { bytes, .. } if facts.is_full(bytes) => libc::ENOSPC,
        _ => libc::EIO,
    }
}

fn has_all_handles(session: &Session) -> bool {
    let open = session
        .handles_open
        .load(std::sync::atomic::Ordering::Relaxed);
    session.limits.handles.is_some_and(|most| open >= most)
}

/// Whether a directory has no names, if that can be told.
fn is_empty(session: &Session, path: &[u8]) -> Option<bool> {
    let mut exchange = session.exchange();
    let opened = exchange.request(kind::OPENDIR, |packet| {
        packet.string(path);
    });
    let handle = opened.and_then(|tag| exchange.handle(tag)).ok()?;
    let mut is_empty = Some(true);
    while is_empty == Some(true) {
        let asked = exchange.request(kind::READDIR, |packet| {
            packet.string(handle.bytes());
        });
        is_empty = match asked.and_then(|tag| exchange.names(tag)) {
            Ok(names) => Some(
                names
                    .iter()
                    .all(|name| name.name == b"." || name.name == b".."),
            ),
            Err(failure) if failure.is(status::EOF) => break,
            Err(_) => None,
        };
    }
    let closed = exchange.close(&handle).and_then(|()| exchange.send());
    closed.ok().and(is_empty)
}
