//! Opening files, old and new.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::diagnosis::{Asked, diagnose};
use super::directory::adjust;
use super::open_file::{Opened, Seen, SftpFile};
use super::packet::{kind, open};
use super::path::parent;
use super::requests::{Failure, HandleId};
use super::session::Session;
use super::source::Sftp;
use super::stat::Stat;
use crate::source::{Creation, Error, Found, Kind, OpenFlags, Owner, Result};

/// A file may be made and removed by others between two attempts; not for
/// ever.
const ATTEMPTS_MAX: usize = 8;

/// What is brought of a file while it is opened: all of a small one.
const BEGIN_BYTES: usize = 32 << 10;

/// What an opened path is.
struct Looked {
    opened: Opened,
    seen: Seen,
    /// What the directory is, if the file was made.
    directory: Option<Stat>,
    /// What the file begins with.
    begin: Vec<u8>,
}

/// Opens a regular file, with what it is then.
pub(super) fn open(source: &Sftp, path: &Path, flags: OpenFlags) -> Result<Found> {
    let shared = &source.shared;
    let session = shared.link.session()?;
    let remote = shared.root.join(path);
    let looked = match flags.create {
        None => open_existing(&session, &remote, flags)?,
        Some(creation) => open_or_make(source, &session, &remote, flags, &creation)?,
    };
    let found = looked.seen.stat.attributes();
    let file = SftpFile::new(shared, path, looked.opened, access(flags), looked.seen);
    let mut attributes = found.ok_or(Error::Errno(libc::EIO))?;
    shared.names.complete(path, &mut attributes);
    Ok(Found {
        handle: Box::new(file),
        attributes,
        directory: looked.directory.and_then(|stat| stat.attributes()),
        begin: looked.begin,
    })
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
/// if the path is to be made. With `reads` also reads its beginning, from the
/// handle that it probably gets: what comes by another is of another file.
fn open_and_look(
    session: &Arc<Session>,
    remote: &[u8],
    bits: u32,
    stat: &Stat,
    reads: bool,
) -> Result<Looked> {
    let is_made = bits & open::EXCLUSIVE != 0;
    let next = session.take_next_handle().filter(|_| reads);
    let mut batch = session.batch();
    let mut ask = || {
        let opened = batch.request(kind::OPEN, |packet| {
            packet.string(remote).u32(bits);
            stat.encode(packet);
        })?;
        let seen = batch.ask(kind::LSTAT, &[remote])?;
        let mut look_above = || batch.ask(kind::LSTAT, &[parent(remote)]);
        let above = is_made.then(&mut look_above).transpose()?;
        let ask_begin = |next: &HandleId| batch.ask_data(next, 0, &(0..BEGIN_BYTES));
        let asked = next.as_ref().map(ask_begin).transpose()?;
        let id = batch.handle(opened)?;
        // Without attributes it was removed or renamed since.
        let stat = batch.stat(seen).inspect_err(|_| session.close(&id))?;
        let mut begin = vec![0; BEGIN_BYTES];
        let read = match asked.filter(|_| next.as_ref() == Some(&id)) {
            // What is refused now is asked for, and refused, again.
            Some(tag) => batch.data(tag, &mut begin).unwrap_or(0),
            None => 0,
        };
        begin.truncate(read);
        Ok::<_, Failure>(Looked {
            opened: Opened {
                session: Arc::clone(session),
                id,
            },
            seen: Seen { stat, is_made },
            directory: above.and_then(|tag| batch.stat(tag).ok()),
            begin,
        })
    };
    ask().map_err(|failure| {
        let asked = Asked::Open {
            writes: bits & (open::WRITE | open::TRUNCATE) != 0,
            exclusive: is_made,
        };
        diagnose(session, asked, &[remote], failure)
    })
}

fn open_existing(session: &Arc<Session>, remote: &[u8], flags: OpenFlags) -> Result<Looked> {
    let truncate = if flags.truncate { open::TRUNCATE } else { 0 };
    let bits = access(flags) | truncate;
    let looked = open_and_look(session, remote, bits, &Stat::default(), flags.begin)?;
    let errno = match looked.seen.stat.kind() {
        Some(Kind::File) => return Ok(looked),
        Some(Kind::Directory) => libc::EISDIR,
        Some(Kind::Symlink) => libc::ELOOP,
        _ => libc::EINVAL,
    };
    session.close(&looked.opened.id);
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
    let wanted = Stat {
        permissions: Some(mode),
        ..Stat::default()
    };
    // A server opens a new file for something, even if nothing is meant.
    let access = match access(flags) {
        0 => open::WRITE,
        access => access,
    };
    let bits = access | open::CREATE | open::EXCLUSIVE;
    let mut made = open_and_look(session, remote, bits, &wanted, false)?;
    let may_give = source.gives_away.load(Ordering::Relaxed);
    let is_owner = |owner: Owner| made.seen.stat.owner == Some((owner.uid, owner.gid));
    let is_given = !may_give || creation.owner.is_none_or(is_owner);
    if made.seen.stat.mode() == Some(mode) && is_given {
        return Ok(made);
    }
    let adjusted = adjust(source, session, remote, creation, &made.seen.stat);
    let look = |()| {
        session
            .batch()
            .look_up(kind::LSTAT, remote)
            .map_err(Failure::plain)
    };
    let now = adjusted.and_then(look);
    made.seen.stat = now.inspect_err(|_| session.close(&made.opened.id))?;
    Ok(made)
}
