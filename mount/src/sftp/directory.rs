//! Lists directories and renames files.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::iter::{once, repeat};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::diagnosis::Operation;
use super::failure::{Failure, Requested};
use super::packet::{escaped, extension, is_name, is_too_long, kind, status};
use super::requests::{Name, OpenHandle, Reply, RequestBatch};
use super::shared::Shared;
use crate::source::{Entry, Listing, RenameFlags, Result};

/// First number of READDIRs in flight. From the second reply on, each reply with names
/// doubles it, up to `READS_MAX`: OpenSSH's server sends at most 100 names in one
/// reply.
const READS_FIRST: usize = 2;
const READS_MAX: usize = 32;

/// Maximum number of names in a listing. A longer listing is refused, because it may never
/// end. This many names take about 200 MB here.
const LISTING_NAMES_MAX: usize = 1_000_000;

/// An open directory and its READDIRs in flight.
type Begun = (OpenHandle, VecDeque<Reply>);

/// Lists a directory with attributes. Also lists the directories in `next`, if their
/// replies fit into the same two round trips.
pub(super) fn list(
    shared: &Shared,
    path: &Path,
    next: &[&Path],
    names_max: usize,
) -> Result<Listing> {
    shared.ask(Operation::List, [path], |batch, _| {
        let paths: Vec<_> = once(path).chain(next.iter().copied()).collect();
        let open = |path: &&Path| batch.ask(kind::OPENDIR, &[&shared.remote(path)]);
        let asked: Vec<_> = paths.iter().map(open).collect();
        let handles: Vec<_> = asked
            .into_iter()
            .map(|reply| batch.handle(reply?))
            .collect();
        let begin = |handle: Requested<OpenHandle>| begin(batch, handle?);
        let begun: Vec<_> = handles.into_iter().map(begin).collect();
        // For the other directories, only the replies to these requests are
        // awaited.
        let limits = once(names_max).chain(repeat(0));
        let begun = begun.into_iter().zip(limits).zip(&paths);
        let mut listed = begun
            .map(|((begun, names_max), path)| read_entries(shared, path, batch, begun?, names_max));
        let first = listed.next().expect("there is at least one directory");
        let ahead = listed.map(Requested::ok).collect();
        Ok(Listing {
            entries: first?,
            directory: None,
            ahead,
        })
    })
}

fn begin(batch: &mut RequestBatch, handle: OpenHandle) -> Requested<Begun> {
    let ask = |_| batch.ask(kind::READDIR, &[&handle.id]);
    let in_flight = (0..READS_FIRST).map(ask).collect::<Requested<_>>()?;
    Ok((handle, in_flight))
}

/// Reads entries from the first READDIRs on, and asks for more until there are more
/// than `names_max` names. Returns `EFBIG` if the directory has further names,
/// `EOVERFLOW` if it has more than any listing may have.
fn read_entries(
    shared: &Shared,
    path: &Path,
    batch: &mut RequestBatch,
    (handle, mut in_flight): Begun,
    names_max: usize,
) -> Requested<Vec<Entry>> {
    let (mut entries, mut left_out) = (Vec::new(), 0);
    // All names that a server sends count, even those that are not shown.
    let (mut names, mut reads, mut is_over) = (0, READS_FIRST, false);
    while let Some(reply) = in_flight.pop_front() {
        let more = batch.names(reply)?;
        is_over |= more.is_empty();
        // For most directories, the first reply has all names and the second says that
        // there are no more.
        let is_first = names == 0;
        names += more.len();
        if names > LISTING_NAMES_MAX {
            tell(
                shared,
                path,
                &format!("it has more than {LISTING_NAMES_MAX} names"),
            );
            return Err(Failure::Errno(libc::EOVERFLOW));
        }
        left_out += add_entries(shared, path, more, &mut entries)?;
        reads = (reads * 2).min(READS_MAX);
        while !is_over && !is_first && names <= names_max && in_flight.len() < reads {
            in_flight.push_back(batch.ask(kind::READDIR, &[&handle.id])?);
        }
    }
    if left_out > 0 {
        let directory = escaped(&shared.remote(path));
        shared.link.tell(&format!(
            "{directory} is shown without names of more than 255 bytes, which Linux does not \
             accept: {left_out} left out"
        ));
    }
    if is_over {
        Ok(entries)
    } else {
        Err(Failure::Errno(libc::EFBIG))
    }
}

/// Adds the names from the server that can be shown. Returns how many are too long, or
/// `EIO` if one is invalid.
fn add_entries(
    shared: &Shared,
    path: &Path,
    names: Vec<Name>,
    entries: &mut Vec<Entry>,
) -> Requested<usize> {
    let mut left_out = 0;
    let is_dots = |name: &[u8]| name == b"." || name == b"..";
    for (name, stat) in names.into_iter().filter(|(name, _)| !is_dots(name)) {
        if !is_name(&name) {
            let name = escaped(&name);
            tell(
                shared,
                path,
                &format!("the server sent \"{name}\", which cannot be a file name"),
            );
            return Err(Failure::Errno(libc::EIO));
        }
        if is_too_long(&name) {
            left_out += 1;
            continue;
        }
        let name = OsString::from_vec(name);
        let known = shared.names.complete(Some(&path.join(&name)), &stat);
        entries.push(Entry {
            name,
            kind: stat.kind(),
            attributes: known.ok(),
        });
    }
    Ok(left_out)
}

fn tell(shared: &Shared, path: &Path, why: &str) {
    let directory = escaped(&shared.remote(path));
    shared.link.tell(&format!("cannot list {directory}: {why}"));
}

/// Renames a file. Without `posix-rename@openssh.com`, an existing target is refused:
/// RENAME would require removing it first, and a failure in between would leave no file
/// there.
pub(super) fn rename(
    batch: &mut RequestBatch,
    from: &[u8],
    to: &[u8],
    flags: RenameFlags,
) -> Requested<()> {
    let exists = match flags {
        flags if flags.is_empty() && batch.session.has(extension::POSIX_RENAME) => {
            return batch.run(kind::EXTENDED, &[extension::POSIX_RENAME, from, to]);
        }
        flags if flags.is_empty() => Failure::Errno(libc::EOPNOTSUPP),
        RenameFlags::NOREPLACE => Failure::Errno(libc::EEXIST),
        _ => return Err(Failure::Errno(libc::EINVAL)),
    };
    // OpenSSH's RENAME protects an existing regular file by making a hard link. For
    // other files it checks the name first, but follows links. So the name is
    // checked here.
    let done = match batch.look_up(kind::LSTAT, to) {
        Ok(_) => return Err(exists),
        Err(Failure::Refused(status::NO_SUCH_FILE)) => batch.run(kind::RENAME, &[from, to]),
        Err(failure) => Err(failure),
    };
    done.map_err(|failure| {
        // Somebody else may have created it meanwhile.
        let is_vague = failure == Failure::Refused(status::FAILURE);
        if is_vague && batch.look_up(kind::LSTAT, to).is_ok() {
            exists
        } else {
            failure
        }
    })
}
