//! Whole files by a source's simple calls, for sources that have no better
//! way.

use std::path::Path;

use crate::source::{
    Attributes, Creation, Error, Handle, Kind, OpenFlags, RenameFlags, Replacement, Result,
    SetAttributes, Source,
};

/// What one call moves.
const PIECE_BYTES: usize = 1 << 20;

/// [`Source::fetch`].
pub(crate) fn fetch<S: Source + ?Sized>(
    source: &S,
    path: &Path,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Attributes> {
    let handle = source.open(path, OpenFlags::READ)?;
    let attributes = handle.attributes()?;
    if attributes.kind != Kind::File {
        return Err(Error::Errno(libc::EINVAL));
    }
    let mut buffer = vec![0; piece_bytes(attributes.size_bytes)];
    let mut at = 0;
    while at < attributes.size_bytes {
        let wanted = piece_bytes(attributes.size_bytes - at).min(buffer.len());
        let read = handle.read_at(&mut buffer[..wanted], at)?;
        take(at, &buffer[..read])?;
        at += read as u64;
        if read < wanted {
            break;
        }
    }
    Ok(Attributes {
        size_bytes: at,
        ..attributes
    })
}

fn piece_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).map_or(PIECE_BYTES, |bytes| bytes.min(PIECE_BYTES))
}

/// [`Source::replace`].
pub(crate) fn replace<S: Source + ?Sized>(
    source: &S,
    path: &Path,
    new: &Replacement<'_>,
    give: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<Attributes> {
    let flags = OpenFlags {
        // Nobody else reads it before it has the permissions that it is to
        // have.
        create: Some(Creation {
            mode: 0o600,
            owner: None,
        }),
        exclusive: true,
        ..OpenFlags::WRITE
    };
    let handle = source.open(new.temporary, flags)?;
    let written = write(&*handle, new, give)
        .and_then(|()| source.rename(new.temporary, path, RenameFlags::Replace));
    drop(handle);
    if let Err(error) = written {
        // What failed before is what is told.
        let _ = source.unlink(new.temporary);
        return Err(error);
    }
    if new.is_durable {
        source.sync_directory(path.parent().unwrap_or(Path::new("")))?;
    }
    source.attributes(path)
}

fn write(
    handle: &dyn Handle,
    new: &Replacement<'_>,
    give: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; piece_bytes(new.size_bytes)];
    let mut at = 0;
    while at < new.size_bytes {
        let piece = piece_bytes(new.size_bytes - at).min(buffer.len());
        give(at, &mut buffer[..piece])?;
        handle.write_at(&buffer[..piece], at)?;
        at += piece as u64;
    }
    let owner = SetAttributes {
        uid: new.changes.uid,
        gid: new.changes.gid,
        ..SetAttributes::default()
    };
    let rest = SetAttributes {
        uid: None,
        gid: None,
        size_bytes: None,
        ..new.changes
    };
    let is_given = owner == SetAttributes::default() || handle.set_attributes(&owner).is_ok();
    let set_id = libc::S_ISUID | libc::S_ISGID;
    handle.set_attributes(&SetAttributes {
        mode: rest
            .mode
            .map(|mode| if is_given { mode } else { mode & !set_id }),
        ..rest
    })?;
    handle.sync()
}
