//! Directories: their names, new ones, and changes of names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

use super::diagnosis::{Asked, diagnose};
use super::packet::{escaped, extension, kind, status};
use super::path::{is_name, parent};
use super::requests::{Failure, HandleId, Name, Reply, RequestBatch};
use super::session::Session;
use super::source::Sftp;
use super::stat::Stat;
use crate::source::{
    Creation, Entry, Error, Kind, Listing, Owner, RenameFlags, Result, SetAttributes,
};

/// READDIRs in flight at first, and from the second on that brings names twice
/// as many with each: OpenSSH's server tells at most 100 names in one.
const READS_FIRST: usize = 2;
const READS_MAX: usize = 32;

type Requested<T> = std::result::Result<T, Failure>;

/// A directory that is open, and the READDIRs in flight for it.
type Begun = (HandleId, VecDeque<Reply>);

/// All names in a directory with their attributes, and those of the
/// directories in `next` as far as they come in the same two round trips.
pub(super) fn list(
    source: &Sftp,
    path: &Path,
    next: &[&Path],
    names_max: usize,
) -> Result<Listing> {
    let session = source.shared.link.session()?;
    let remote = source.shared.root.join(path);
    let mut batch = session.batch();
    let open = |path: &&Path| batch.ask(kind::OPENDIR, &[&source.shared.root.join(path)]);
    let asked: Vec<_> = std::iter::once(&path).chain(next).map(open).collect();
    let open = |tag: Requested<Reply>| tag.and_then(|tag| batch.handle(tag));
    let handles: Vec<_> = asked.into_iter().map(open).collect();
    let begin = |handle: Requested<HandleId>| handle.and_then(|handle| begin(&mut batch, handle));
    let listings: Vec<_> = handles.into_iter().map(begin).collect();
    // Of the directories ahead only what was asked for now is waited for.
    let limits = std::iter::once(names_max).chain(std::iter::repeat(0));
    let mut names = listings
        .into_iter()
        .zip(limits)
        .map(|(listing, names_max)| {
            let (handle, in_flight) = listing?;
            let names = read_names(&mut batch, &handle, in_flight, names_max);
            session.close(&handle);
            names
        });
    let first = names.next().expect("there is one directory at least");
    let ahead: Vec<_> = names.collect();
    let first = first.map_err(|failure| diagnose(&session, Asked::List, &[&remote], failure))?;
    let first = first.ok_or(Error::Errno(libc::EFBIG))?;
    let entries_of = |(names, path): (Requested<Option<Vec<Name>>>, &&Path)| {
        let names = names.ok().flatten()?;
        entries(source, path, names).ok()
    };
    let ahead = ahead.into_iter().zip(next).map(entries_of).collect();
    Ok(Listing {
        entries: entries(source, path, first)?,
        directory: None,
        ahead,
    })
}

fn begin(batch: &mut RequestBatch, handle: HandleId) -> Requested<Begun> {
    let ask = |_| batch.ask(kind::READDIR, &[&handle.0]);
    let in_flight = (0..READS_FIRST).map(ask).collect::<Requested<_>>()?;
    Ok((handle, in_flight))
}

/// Reads names from the first READDIRs on, and asks for more as long as there
/// are no more than `names_max`. None if these are not all.
fn read_names(
    batch: &mut RequestBatch,
    handle: &HandleId,
    mut in_flight: VecDeque<Reply>,
    names_max: usize,
) -> Requested<Option<Vec<Name>>> {
    let (mut names, mut reads, mut is_over) = (Vec::new(), READS_FIRST, false);
    while let Some(tag) = in_flight.pop_front() {
        let more = batch.names(tag)?;
        is_over |= more.is_empty();
        // Of most directories the first brings all, and the second the end.
        let is_first = names.is_empty();
        names.extend(more);
        reads = (reads * 2).min(READS_MAX);
        while !is_over && !is_first && names.len() <= names_max && in_flight.len() < reads {
            in_flight.push_back(batch.ask(kind::READDIR, &[&handle.0])?);
        }
    }
    Ok(is_over.then_some(names))
}

/// What a server has told of a directory.
fn entries(source: &Sftp, path: &Path, names: Vec<Name>) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(names.len());
    for name in names.into_iter().filter(|name| !name.is_special()) {
        if !is_name(&name.name) {
            let (name, directory) = (escaped(&name.name), escaped(&source.shared.root.join(path)));
            source.shared.link.tell(&format!(
                "cannot list {directory}: the server names a file \"{name}\", which cannot be"
            ));
            return Err(Error::Errno(libc::EIO));
        }
        let mut attributes = name.stat.attributes();
        let kind = name.stat.kind();
        let name = OsString::from_vec(name.name);
        if let Some(attributes) = &mut attributes {
            source.shared.names.complete(&path.join(&name), attributes);
        }
        entries.push(Entry {
            kind,
            attributes,
            name,
        });
    }
    Ok(entries)
}

/// Makes a directory with just these permissions, whatever the server's
/// umask.
pub(super) fn make(source: &Sftp, path: &Path, creation: &Creation) -> Result<()> {
    let session = source.shared.link.session()?;
    let remote = source.shared.root.join(path);
    let mut batch = session.batch();
    let stat = Stat {
        permissions: Some(creation.mode & 0o7777),
        ..Stat::default()
    };
    let mut ask = || {
        let made = stat.request(&mut batch, kind::MKDIR, &[&remote])?;
        let seen = batch.ask(kind::LSTAT, &[&remote])?;
        batch.status(made)?;
        batch.stat(seen)
    };
    let seen = ask().map_err(|failure| diagnose(&session, Asked::Make, &[&remote], failure))?;
    adjust(source, &session, &remote, creation, &seen)
}

/// Makes what was just made what it was to be.
pub(super) fn adjust(
    source: &Sftp,
    session: &Arc<Session>,
    remote: &[u8],
    creation: &Creation,
    seen: &Stat,
) -> Result<()> {
    const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
    let owner = match creation.owner {
        Some(owner) if seen.owner != Some((owner.uid, owner.gid)) => {
            Some(within(session, remote, owner, seen))
        }
        _ => None,
    };
    source.give(session, remote, owner)?;
    let mode = creation.mode & 0o7777;
    let inherited = match seen.kind() {
        Some(Kind::Directory) => seen.mode().unwrap_or(0) & libc::S_ISGID,
        _ => 0,
    };
    // A change of owner clears them.
    let is_cleared = owner.is_some() && mode & SET_ID != 0;
    if seen.mode() == Some(mode | inherited) && !is_cleared {
        return Ok(());
    }
    let changes = SetAttributes {
        mode: Some(mode | inherited),
        ..SetAttributes::default()
    };
    source
        .change(session, remote, &changes)
        .map_err(Failure::plain)
}

/// The owner of a new file, whose group in a directory with set-group-id is
/// the directory's.
fn within(session: &Arc<Session>, remote: &[u8], owner: Owner, seen: &Stat) -> Owner {
    let Some((_, group)) = seen.owner.filter(|(_, group)| *group != owner.gid) else {
        return owner;
    };
    let above = session.batch().look_up(kind::LSTAT, parent(remote));
    let mode = above.ok().and_then(|above| above.mode()).unwrap_or(0);
    match mode & libc::S_ISGID {
        0 => owner,
        _ => Owner {
            gid: group,
            ..owner
        },
    }
}

/// Changes a name. A server without `posix-rename@openssh.com` replaces
/// nothing: its RENAME would need the old name to be removed first, and what
/// stops between leaves none.
pub(super) fn rename(source: &Sftp, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
    let session = source.shared.link.session()?;
    let root = &source.shared.root;
    let (from, to) = (root.join(from), root.join(to));
    let exists = match flags {
        flags if flags.is_empty() && session.has(extension::POSIX_RENAME) => None,
        flags if flags.is_empty() => Some(Error::Errno(libc::EOPNOTSUPP)),
        RenameFlags::NOREPLACE => Some(Error::Errno(libc::EEXIST)),
        _ => return Err(Error::Errno(libc::EINVAL)),
    };
    let mut batch = session.batch();
    let Some(exists) = exists else {
        let done = batch.run(kind::EXTENDED, &[extension::POSIX_RENAME, &from, &to]);
        return done.map_err(|failure| diagnose(&session, Asked::Rename, &[&to, &from], failure));
    };
    // OpenSSH's RENAME keeps a regular file that is there by a hard link; for
    // others it looks first, and through links, so the name is looked for here.
    let done = match batch.look_up(kind::LSTAT, &to) {
        Ok(_) => return Err(exists),
        Err(failure) if failure.is(status::NO_SUCH_FILE) => batch.run(kind::RENAME, &[&from, &to]),
        Err(failure) => Err(failure),
    };
    done.map_err(|failure| {
        // Somebody else may have made it meanwhile.
        match failure.is(status::FAILURE) && batch.look_up(kind::LSTAT, &to).is_ok() {
            true => exists,
            false => diagnose(&session, Asked::Rename, &[&to, &from], failure),
        }
    })
}
