//! Directories: their names, new ones, and changes of names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::diagnosis::{Asked, diagnose};
use super::exchange::{Exchange, HandleId, Name, Tag};
use super::packet::{escaped, kind, status};
use super::path::{is_name, parent};
use super::session::Session;
use super::source::Sftp;
use super::stat::Stat;
use super::status::Failure;
use crate::source::{
    Creation, Entry, Error, Kind, Listings, Owner, RenameFlags, Result, SetAttributes,
};

/// READDIRs in flight at first, and from the second on that brings names twice
/// as many with each: OpenSSH's server tells at most 100 names in one.
const READS_FIRST: usize = 2;
const READS_MAX: usize = 32;

/// All names in a directory with their attributes; none if more are told than
/// `names_max`, and there are still others.
pub(super) fn list(source: &Sftp, path: &Path, names_max: usize) -> Result<Option<Vec<Entry>>> {
    let session = source.link.session()?;
    let remote = source.root.join(path);
    let mut exchange = session.exchange();
    let opened = open(&mut exchange, &remote).and_then(|tag| exchange.handle(tag));
    let handle = opened.map_err(|failure| diagnose(&session, Asked::List(&remote), failure))?;
    let mut names = Vec::new();
    let asked = ask_first(&mut exchange, &handle);
    let read = asked.and_then(|asked| {
        let limits = (READS_FIRST, names_max);
        read_names(&mut exchange, &handle, asked, &mut names, limits)
    });
    let closed = exchange.close(&handle);
    exchange.send_later();
    let is_all = closed
        .and(read)
        .map_err(|failure| diagnose(&session, Asked::List(&remote), failure))?;
    match is_all {
        true => entries(source, path, names).map(Some),
        false => Ok(None),
    }
}

/// All names in a directory, and those of others as far as they come in the
/// same two round trips.
pub(super) fn list_ahead(source: &Sftp, path: &Path, next: &[&Path]) -> Result<Listings> {
    let session = source.link.session()?;
    let remote = source.root.join(path);
    let mut exchange = session.exchange();
    let failed = |failure| diagnose(&session, Asked::List(&remote), failure);
    let mut ask = || {
        let first = open(&mut exchange, &remote)?;
        let open = |path: &&Path| open(&mut exchange, &source.root.join(path));
        let others: Vec<Tag> = next
            .iter()
            .map(open)
            .collect::<std::result::Result<_, _>>()?;
        let first = exchange.handle(first);
        let others: Vec<_> = others.into_iter().map(|tag| exchange.handle(tag)).collect();
        Ok((first, others))
    };
    let (first, others) = ask().map_err(failed)?;
    let mut read = || {
        let (mut names, mut ahead) = (Vec::new(), Vec::new());
        let handle = first.as_ref().map_err(|failure| *failure)?;
        let asked = ask_first(&mut exchange, handle)?;
        let mut ask_other = |handle| ask_first(&mut exchange, handle);
        let others: Vec<_> = others
            .iter()
            .map(|handle| handle.as_ref().ok().map(&mut ask_other).transpose())
            .collect::<std::result::Result<_, _>>()?;
        let limits = (READS_FIRST, usize::MAX);
        read_names(&mut exchange, handle, asked, &mut names, limits)?;
        for asked in others {
            ahead.push(match asked {
                Some(asked) => all_of(&mut exchange, asked)?,
                None => None,
            });
        }
        Ok((names, ahead))
    };
    let found = read();
    for handle in std::iter::once(&first).chain(&others).flatten() {
        // A session that ends closes all of them.
        let _ = exchange.close(handle);
    }
    exchange.send_later();
    let (names, ahead) = found.map_err(failed)?;
    let others = ahead.into_iter().zip(next);
    let others =
        others.map(|(names, path)| names.and_then(|names| entries(source, path, names).ok()));
    Ok((entries(source, path, names)?, others.collect()))
}

fn open(exchange: &mut Exchange<'_>, remote: &[u8]) -> std::result::Result<Tag, Failure> {
    exchange.request(kind::OPENDIR, |packet| {
        packet.string(remote);
    })
}

fn ask_names(exchange: &mut Exchange<'_>, handle: &HandleId) -> std::result::Result<Tag, Failure> {
    exchange.request(kind::READDIR, |packet| {
        packet.string(handle.bytes());
    })
}

fn ask_first(
    exchange: &mut Exchange<'_>,
    handle: &HandleId,
) -> std::result::Result<VecDeque<Tag>, Failure> {
    (0..READS_FIRST)
        .map(|_| ask_names(exchange, handle))
        .collect()
}

/// What the first READDIRs bring, if that is all.
fn all_of(
    exchange: &mut Exchange<'_>,
    asked: VecDeque<Tag>,
) -> std::result::Result<Option<Vec<Name>>, Failure> {
    let (mut names, mut is_over) = (Vec::new(), false);
    for tag in asked {
        match exchange.names(tag) {
            Ok(some) if some.is_empty() => is_over = true,
            Ok(some) => names.extend(some),
            Err(failure) if failure.is(status::EOF) => is_over = true,
            Err(Failure::Lost) => return Err(Failure::Lost),
            Err(_) => return Ok(None),
        }
    }
    Ok(is_over.then_some(names))
}

/// What a server has told of a directory.
fn entries(source: &Sftp, path: &Path, names: Vec<Name>) -> Result<Vec<Entry>> {
    let is_listed = |name: &Name| name.name != b"." && name.name != b"..";
    let mut entries = Vec::with_capacity(names.len());
    for name in names.into_iter().filter(is_listed) {
        if !is_name(&name.name) {
            let (name, directory) = (escaped(&name.name), escaped(&source.root.join(path)));
            source.link.tell(&format!(
                "cannot list {directory}: the server names a file \"{name}\", which cannot be"
            ));
            return Err(Error::Errno(libc::EIO));
        }
        let mut attributes = name.stat.attributes();
        let kind = name.stat.kind();
        let name = OsString::from_vec(name.name);
        if let Some(attributes) = &mut attributes {
            source.links.complete(&path.join(&name), attributes);
        }
        entries.push(Entry {
            kind,
            attributes,
            name,
        });
    }
    Ok(entries)
}

/// Reads names from the first READDIRs on, with `reads` in flight at first. Whether
/// these are all, and not more than `names_max`.
fn read_names(
    exchange: &mut Exchange<'_>,
    handle: &HandleId,
    mut in_flight: VecDeque<Tag>,
    names: &mut Vec<Name>,
    (mut reads, names_max): (usize, usize),
) -> std::result::Result<bool, Failure> {
    let (mut is_over, mut is_all, mut is_long) = (false, true, false);
    loop {
        // Of most directories the first brings all, and the second the end.
        while !is_over && is_long && in_flight.len() < reads {
            in_flight.push_back(ask_names(exchange, handle)?);
        }
        let Some(tag) = in_flight.pop_front() else {
            return Ok(is_all);
        };
        match exchange.names(tag) {
            // No name would be asked for again for ever.
            Ok(some) if some.is_empty() => is_over = true,
            Ok(some) => {
                is_long = !names.is_empty();
                names.extend(some);
                reads = (reads * 2).min(READS_MAX);
                if names.len() > names_max {
                    (is_over, is_all) = (true, false);
                }
            }
            Err(failure) if failure.is(status::EOF) => is_over = true,
            Err(failure) => return Err(failure),
        }
    }
}

/// Makes a directory with just these permissions, whatever the server's
/// umask.
pub(super) fn make(source: &Sftp, path: &Path, creation: &Creation) -> Result<()> {
    let session = source.link.session()?;
    let remote = source.root.join(path);
    let mut exchange = session.exchange();
    let mut ask = || {
        let stat = Stat {
            permissions: Some(creation.mode & 0o7777),
            ..Stat::default()
        };
        let made = exchange.request(kind::MKDIR, |packet| {
            packet.string(&remote);
            stat.encode(packet);
        })?;
        let seen = exchange.lstat(&remote)?;
        exchange.status(made)?;
        exchange.stat(seen)
    };
    let seen = ask().map_err(|failure| diagnose(&session, Asked::Make(&remote), failure))?;
    drop(exchange);
    adjust(source, &session, &remote, creation, &seen)
}

/// Makes what was just made what it was to be.
pub(super) fn adjust(
    source: &Sftp,
    session: &Session,
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
fn within(session: &Session, remote: &[u8], owner: Owner, seen: &Stat) -> Owner {
    let Some((_, group)) = seen.owner.filter(|(_, group)| *group != owner.gid) else {
        return owner;
    };
    let mut exchange = session.exchange();
    let above = exchange.lstat(parent(remote));
    let above = above.and_then(|tag| exchange.stat(tag));
    let mode = above.ok().and_then(|above| above.mode()).unwrap_or(0);
    match mode & libc::S_ISGID {
        0 => owner,
        _ => Owner {
            gid: group,
            ..owner
        },
    }
}

/// Changes a name.
pub(super) fn rename(source: &Sftp, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
    let session = source.link.session()?;
    let (from, to) = (source.root.join(from), source.root.join(to));
    let done = match flags {
        RenameFlags::Exchange => return Err(Error::Errno(libc::EINVAL)),
        RenameFlags::NoReplace => rename_to_new(&session, &from, &to),
        RenameFlags::Replace if session.extensions.posix_rename => {
            let mut exchange = session.exchange();
            posix_rename(&mut exchange, &from, &to).and_then(|tag| exchange.status(tag))
        }
        RenameFlags::Replace => replace_in_steps(&session, &from, &to),
    };
    done.map_err(|failure| {
        let is_new = flags == RenameFlags::NoReplace && failure.is(status::FAILURE);
        match is_new && exists(&session, &to) == Ok(true) {
            true => Error::Errno(libc::EEXIST),
            false => diagnose(
                &session,
                Asked::Rename {
                    from: &from,
                    to: &to,
                },
                failure,
            ),
        }
    })
}

/// `rename(2)` on the server.
pub(super) fn posix_rename(
    exchange: &mut Exchange<'_>,
    from: &[u8],
    to: &[u8],
) -> std::result::Result<Tag, Failure> {
    exchange.extended("posix-rename@openssh.com", |packet| {
        packet.string(from).string(to);
    })
}

fn draft_rename(session: &Session, from: &[u8], to: &[u8]) -> std::result::Result<(), Failure> {
    let mut exchange = session.exchange();
    let tag = exchange.request(kind::RENAME, |packet| {
        packet.string(from).string(to);
    })?;
    exchange.status(tag)
}

fn exists(session: &Session, path: &[u8]) -> std::result::Result<bool, Failure> {
    let mut exchange = session.exchange();
    let tag = exchange.lstat(path)?;
    match exchange.stat(tag) {
        Ok(_) => Ok(true),
        Err(failure) if failure.is(status::NO_SUCH_FILE) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// The draft's RENAME never replaces. OpenSSH's server keeps that for regular
/// files by a hard link; for others it looks first, and through links, so
/// that a name is looked for here, too.
fn rename_to_new(session: &Session, from: &[u8], to: &[u8]) -> std::result::Result<(), Failure> {
    match exists(session, to)? {
        true => Err(Failure::Refused(status::FAILURE)),
        false => draft_rename(session, from, to),
    }
}

/// Replaces a file on a server that cannot in one step: what is there gets
/// another name until the new file has its own. Whatever happens between,
/// neither is lost.
pub(super) fn replace_in_steps(
    session: &Session,
    from: &[u8],
    to: &[u8],
) -> std::result::Result<(), Failure> {
    match draft_rename(session, from, to) {
        Err(failure) if failure.is(status::FAILURE) && exists(session, to)? => {}
        done => return done,
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let aside = [to, format!(".{:x}~", now.as_nanos()).as_bytes()].concat();
    draft_rename(session, to, &aside)?;
    if let Err(failure) = draft_rename(session, from, to) {
        draft_rename(session, &aside, to)?;
        return Err(failure);
    }
    let mut exchange = session.exchange();
    let tag = exchange.request(kind::REMOVE, |packet| {
        packet.string(&aside);
    })?;
    exchange.status(tag)
}
