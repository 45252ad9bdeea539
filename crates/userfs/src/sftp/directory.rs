//! The names in directories, and changes of them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::diagnosis::{Asked, diagnose};
use super::packet::{escaped, extension, kind, status};
use super::path::is_name;
use super::requests::{Failure, HandleId, Name, Reply, RequestBatch, Requested};
use super::source::Shared;
use crate::source::{Entry, Error, Listing, RenameFlags, Result};

/// READDIRs in flight at first, and from the second on that brings names twice
/// as many with each: OpenSSH's server tells at most 100 names in one.
const READS_FIRST: usize = 2;
const READS_MAX: usize = 32;

/// A directory that is open, and the READDIRs in flight for it.
type Begun = (HandleId, VecDeque<Reply>);

/// All names in a directory with their attributes, and those of the
/// directories in `next` as far as they come in the same two round trips.
pub(super) fn list(
    shared: &Shared,
    path: &Path,
    next: &[&Path],
    names_max: usize,
) -> Result<Listing> {
    let session = shared.link.session()?;
    let remote = shared.root.join(path);
    let mut batch = session.batch();
    let open = |path: &&Path| batch.ask(kind::OPENDIR, &[&shared.root.join(path)]);
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
        entries(shared, path, names).ok()
    };
    let ahead = ahead.into_iter().zip(next).map(entries_of).collect();
    Ok(Listing {
        entries: entries(shared, path, first)?,
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
fn entries(shared: &Shared, path: &Path, names: Vec<Name>) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(names.len());
    for name in names.into_iter().filter(|name| !name.is_special()) {
        if !is_name(&name.name) {
            let (name, directory) = (escaped(&name.name), escaped(&shared.root.join(path)));
            shared.link.tell(&format!(
                "cannot list {directory}: the server names a file \"{name}\", which cannot be"
            ));
            return Err(Error::Errno(libc::EIO));
        }
        let file_name = OsString::from_vec(name.name);
        let known = shared
            .names
            .complete(Some(&path.join(&file_name)), &name.stat);
        entries.push(Entry {
            name: file_name,
            kind: name.stat.kind(),
            attributes: known.ok(),
        });
    }
    Ok(entries)
}

/// Changes a name. A server without `posix-rename@openssh.com` replaces
/// nothing: its RENAME would need the old name to be removed first, and what
/// stops between leaves none.
pub(super) fn rename(
    batch: &mut RequestBatch,
    from: &[u8],
    to: &[u8],
    flags: RenameFlags,
) -> Requested<()> {
    let exists = match flags {
        flags if flags.is_empty() && batch.session().has(extension::POSIX_RENAME) => {
            return batch.run(kind::EXTENDED, &[extension::POSIX_RENAME, from, to]);
        }
        flags if flags.is_empty() => Failure::Errno(libc::EOPNOTSUPP),
        RenameFlags::NOREPLACE => Failure::Errno(libc::EEXIST),
        _ => return Err(Failure::Errno(libc::EINVAL)),
    };
    // OpenSSH's RENAME keeps a regular file that is there by a hard link; for
    // others it looks first, and through links, so the name is looked for here.
    let done = match batch.look_up(kind::LSTAT, to) {
        Ok(_) => return Err(exists),
        Err(Failure::Refused(status::NO_SUCH_FILE)) => batch.run(kind::RENAME, &[from, to]),
        Err(failure) => Err(failure),
    };
    done.map_err(|failure| {
        // Somebody else may have made it meanwhile.
        let is_vague = failure == Failure::Refused(status::FAILURE);
        match is_vague && batch.look_up(kind::LSTAT, to).is_ok() {
            true => exists,
            false => failure,
        }
    })
}
