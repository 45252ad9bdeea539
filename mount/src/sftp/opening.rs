//! Opens existing files, and creates files and directories.

use std::path::Path;
use std::sync::Arc;

use super::change::{self, Target};
use super::diagnosis::Operation;
use super::failure::{Failure, Requested};
use super::open_file::SftpFile;
use super::packet::{kind, open, parent};
use super::requests::{OpenHandle, RequestBatch};
use super::shared::Shared;
use super::stat::Stat;
use crate::source::{
    Creation, Error, Kind, OpenFlags, OpenReply, Result, SetAttributes, make_or_open,
};

/// Bytes that are read while a file is opened. A small file is read whole.
const BEGIN_BYTES: usize = 32 << 10;

struct OpenedFile {
    opened: OpenHandle,
    stat: Stat,
    directory: Option<Stat>,
    begin: Vec<u8>,
}

pub(super) fn open(shared: &Arc<Shared>, path: &Path, flags: OpenFlags) -> Result<OpenReply> {
    let open = || open_existing(shared, path, flags);
    let looked = make_or_open(flags, |new| make(shared, path, flags, new), open)?;
    let file = SftpFile::new(shared, path, looked.opened, access(flags), looked.stat);
    Ok(OpenReply {
        attributes: shared.names.complete(Some(path), &looked.stat)?,
        directory: looked.directory.and_then(|stat| stat.attributes()),
        begin: looked.begin,
        handle: Box::new(file),
    })
}

fn access(flags: OpenFlags) -> u32 {
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    bit(flags.read, open::READ) | bit(flags.write, open::WRITE)
}

/// Opens a path and looks at it in the same round trip. If the path is to be created,
/// also looks at its directory. If `reads`, also reads the beginning through the
/// handle that the server will probably assign. If the server assigns another handle,
/// the bytes are from another file.
fn open_and_look(
    shared: &Shared,
    path: &Path,
    bits: u32,
    new: &Stat,
    reads: bool,
) -> Result<OpenedFile> {
    let is_made = bits & open::EXCLUSIVE != 0;
    let operation = Operation::Open {
        writes: bits & (open::WRITE | open::TRUNCATE) != 0,
        exclusive: is_made,
    };
    shared.ask(operation, [path], |batch, [remote]| {
        let next = batch.session.take_next_handle().filter(|_| reads);
        let opened = batch.open(remote, bits, new)?;
        let seen = batch.ask(kind::LSTAT, &[remote])?;
        let mut look_above = || batch.ask(kind::LSTAT, &[parent(remote)]);
        let above = is_made.then(&mut look_above).transpose()?;
        let ask_begin = |next: &Vec<u8>| batch.ask_data(next, 0, &(0..BEGIN_BYTES));
        let asked = next.as_ref().map(ask_begin).transpose()?;
        let opened = batch.handle(opened)?;
        // Without attributes, the file has been removed or renamed since.
        let stat = batch.stat(seen)?;
        let mut begin = Vec::new();
        if let Some(reply) = asked.filter(|_| next.as_ref() == Some(&opened.id)) {
            begin.resize(BEGIN_BYTES, 0);
            // A caller that reads gets the error from its own READ.
            let read = batch.data(reply, &mut begin).unwrap_or(0);
            begin.truncate(read);
        }
        Ok(OpenedFile {
            opened,
            stat,
            directory: above.and_then(|reply| batch.stat(reply).ok()),
            begin,
        })
    })
}

fn open_existing(shared: &Shared, path: &Path, flags: OpenFlags) -> Result<OpenedFile> {
    let truncate = if flags.truncate { open::TRUNCATE } else { 0 };
    let bits = access(flags) | truncate;
    let looked = open_and_look(shared, path, bits, &Stat::default(), flags.begin)?;
    Err(Error::Errno(match looked.stat.kind() {
        Some(Kind::File) => return Ok(looked),
        Some(Kind::Directory) => libc::EISDIR,
        Some(Kind::Symlink) => libc::ELOOP,
        _ => libc::EINVAL,
    }))
}

fn make(shared: &Shared, path: &Path, flags: OpenFlags, creation: &Creation) -> Result<OpenedFile> {
    // OPEN needs an access mode, even if none is wanted.
    let access = match access(flags) {
        0 => open::WRITE,
        access => access,
    };
    let bits = access | open::CREATE | open::EXCLUSIVE;
    let mut made = open_and_look(shared, path, bits, &Stat::of_mode(creation.mode), false)?;
    if let Some(made_s) = made.stat.modified() {
        shared.clock.observe(made_s);
    }
    let OpenedFile { opened, stat, .. } = &mut made;
    let (mut batch, remote) = (opened.session.batch(), shared.remote(path));
    let now = match adjust(&mut batch, &remote, *creation, stat) {
        Ok(false) => return Ok(made),
        Ok(true) => batch.look_up(kind::LSTAT, &remote),
        Err(failure) => Err(failure),
    };
    *stat = now.map_err(Failure::plain)?;
    Ok(made)
}

/// Creates a directory with exactly these permissions, even if the server's umask would
/// reduce them.
pub(super) fn make_directory(
    batch: &mut RequestBatch,
    remote: &[u8],
    creation: &Creation,
) -> Requested<()> {
    let made = batch.set(kind::MKDIR, &[remote], &Stat::of_mode(creation.mode))?;
    let seen = batch.ask(kind::LSTAT, &[remote])?;
    batch.status(made)?;
    let seen = batch.stat(seen)?;
    let adjusted = adjust(batch, remote, *creation, &seen);
    adjusted.map(drop).map_err(|failure| failure.plain().into())
}

/// Sets the owner of a new file or directory, and the permissions that the server's
/// umask may have reduced. A directory keeps the set-group-id that it inherited.
/// Returns whether anything had to be changed.
fn adjust(
    batch: &mut RequestBatch,
    remote: &[u8],
    creation: Creation,
    seen: &Stat,
) -> Requested<bool> {
    let inherited = match seen.kind() {
        Some(Kind::Directory) => seen.mode().unwrap_or(0) & libc::S_ISGID,
        _ => 0,
    };
    let mode = creation.mode & 0o7777 | inherited;
    // Only root gives files away. What root creates belongs to root, except for the
    // group in a directory with set-group-id.
    let (uid, gid) = seen.owner.unwrap_or((u32::MAX, u32::MAX));
    let owner = creation.owner.filter(|owner| uid == 0 && owner.uid != 0);
    let is_other = seen.mode() != Some(mode) || (owner.is_some() && mode & 0o6000 != 0);
    let changes = SetAttributes {
        mode: is_other.then_some(mode),
        uid: owner.map(|owner| owner.uid),
        gid: owner.filter(|_| gid == 0).map(|owner| owner.gid),
        ..SetAttributes::default()
    };
    if changes == SetAttributes::default() {
        return Ok(false);
    }
    match change::make(batch, Target::Path(remote), &changes) {
        // Some file systems have no owners.
        Err(Failure::Refused(_)) if owner.is_some() => {
            let owner = None;
            adjust(batch, remote, Creation { owner, ..creation }, seen)
        }
        done => done.map(|()| true),
    }
}
