//! Opening files, old and new.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::diagnosis::{Asked, diagnose};
use super::directory::adjust;
use super::handle::{Opened, Seen, SftpHandle};
use super::packet::{kind, open};
use super::path::parent;
use super::session::Session;
use super::source::Sftp;
use super::stat::Stat;
use super::status::Failure;
use crate::source::{Creation, Error, Handle, Kind, OpenFlags, Owner, Result};

/// A file may be made and removed by others between two attempts; not for
/// ever.
const ATTEMPTS_MAX: usize = 8;

/// What an opened path is.
pub(super) struct Looked {
    opened: Opened,
    pub stat: Stat,
    /// The file was made, and not found.
    is_made: bool,
    /// What the directory is, if the file was made.
    pub directory: Option<Stat>,
}

/// Opens a regular file, with what it is then.
pub(super) fn open(
    source: &Sftp,
    path: &Path,
    flags: OpenFlags,
) -> Result<(Box<dyn Handle>, Looked)> {
    let session = source.link.session()?;
    let remote = source.root.join(path);
    let looked = match flags.create {
        None => open_existing(&session, &remote, flags)?,
        Some(creation) => open_or_make(source, &session, &remote, flags, &creation)?,
    };
    let seen = Seen {
        stat: looked.stat,
        is_made: looked.is_made,
    };
    let opened = looked.opened.clone();
    let handle = SftpHandle::new(source.belonging(), path, opened, access(flags), seen);
    Ok((Box::new(handle), looked))
}

/// A file that is there, or else a new one, so that it is known which of the
/// two it was: only a new one gets permissions and an owner.
fn open_or_make(
    source: &Sftp,
    session: &Arc<Session>,
    remote: &[u8],
    flags: OpenFlags,
    creation: &Creation,
) -> Result<Looked> {
    for _ in 0..ATTEMPTS_MAX {
        match make(source, session, remote, flags, creation) {
            Err(Error::Errno(libc::EEXIST)) if !flags.exclusive => {}
            made => return made,
        }
        match open_existing(session, remote, flags) {
            Err(Error::Errno(libc::ENOENT)) => {}
            opened => return opened,
        }
    }
    Err(Error::Errno(libc::ENOENT))
}

/// READ and WRITE in the protocol's bits.
fn access(flags: OpenFlags) -> u32 {
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    bit(flags.read, open::READ) | bit(flags.write, open::WRITE)
}

/// Opens a path and looks at it in the same round trip, and at its directory
/// if the path is to be made.
fn open_and_look(
    session: &Arc<Session>,
    remote: &[u8],
    bits: u32,
    stat: &Stat,
) -> std::result::Result<Looked, Failure> {
    let is_made = bits & open::EXCLUSIVE != 0;
    let mut exchange = session.exchange();
    let opened = exchange.request(kind::OPEN, |packet| {
        packet.string(remote).u32(bits);
        stat.encode(packet);
    })?;
    let seen = exchange.lstat(remote)?;
    let above = match is_made {
        true => Some(exchange.lstat(parent(remote))?),
        false => None,
    };
    let id = exchange.handle(opened)?;
    let opened = Opened {
        session: Arc::clone(session),
        id,
    };
    match exchange.stat(seen) {
        Ok(stat) => Ok(Looked {
            opened,
            stat,
            is_made,
            directory: above.and_then(|tag| exchange.stat(tag).ok()),
        }),
        Err(failure) => {
            // It was removed or renamed since.
            exchange.close(&opened.id)?;
            exchange.send()?;
            Err(failure)
        }
    }
}

fn open_existing(session: &Arc<Session>, remote: &[u8], flags: OpenFlags) -> Result<Looked> {
    let truncate = if flags.truncate { open::TRUNCATE } else { 0 };
    let bits = access(flags) | truncate;
    let looked = open_and_look(session, remote, bits, &Stat::default());
    let looked = looked.map_err(|failure| {
        let asked = Asked::Open {
            path: remote,
            writes: flags.write || flags.truncate,
            exclusive: false,
        };
        diagnose(session, asked, failure)
    })?;
    let errno = match looked.stat.kind() {
        Some(Kind::File) => return Ok(looked),
        Some(Kind::Directory) => libc::EISDIR,
        Some(Kind::Symlink) => libc::ELOOP,
        _ => libc::EINVAL,
    };
    let mut exchange = session.exchange();
    let closed = exchange
        .close(&looked.opened.id)
        .and_then(|()| exchange.send());
    closed.map_err(Failure::plain)?;
    Err(Error::Errno(errno))
}

fn make(
    source: &Sftp,
    session: &Arc<Session>,
    remote: &[u8],
    flags: OpenFlags,
    creation: &Creation,
) -> Result<Looked> {
    let mode = creation.mode & 0o7777;
    let stat = Stat {
        permissions: Some(mode),
        ..Stat::default()
    };
    // A server opens a new file for something, even if nothing is meant.
    let access = match access(flags) {
        0 => open::WRITE,
        access => access,
    };
    let bits = access | open::CREATE | open::EXCLUSIVE;
    let made = open_and_look(session, remote, bits, &stat);
    let made = made.map_err(|failure| {
        let asked = Asked::Open {
            path: remote,
            writes: true,
            exclusive: true,
        };
        diagnose(session, asked, failure)
    })?;
    let may_give = source.gives_away.load(Ordering::Relaxed);
    let is_owner = |owner: Owner| made.stat.owner == Some((owner.uid, owner.gid));
    let is_given = !may_give || creation.owner.is_none_or(is_owner);
    if made.stat.mode() != Some(mode) || !is_given {
        let adjusted = adjust(source, session, remote, creation, &made.stat);
        let mut exchange = session.exchange();
        let look = |()| {
            let now = exchange.lstat(remote).and_then(|tag| exchange.stat(tag));
            now.map_err(Failure::plain)
        };
        return match adjusted.and_then(look) {
            Ok(now) => Ok(Looked { stat: now, ..made }),
            Err(error) => {
                // What failed before is what is told.
                let _ = exchange
                    .close(&made.opened.id)
                    .and_then(|()| exchange.send());
                Err(error)
            }
        };
    }
    Ok(made)
}
