//! Where the files of a mount come from: what a [`Source`] can be asked, in
//! plain data.
//!
//! A path is bytes relative to the source's root: `""` is the root itself; no
//! path begins with `/`, ends with `/`, or has a component `.` or `..`. No
//! method follows a symbolic link in the last component; what a link in the
//! middle of a path leads to is the source's own affair, as the kernel asks
//! for one component at a time and a mount's paths have none there.

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

pub use crate::attributes::{Attributes, Identity, Kind, Timespec};
pub use crate::content::Content;
pub use crate::error::{Error, Result};
pub use rustix::fs::{RenameFlags, SeekFrom, StatVfs, XattrFlags};

/// A name in a directory, never `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: OsString,
    /// The kind of file, where it came with the name.
    pub kind: Option<Kind>,
    /// What `lstat` would tell, where it came with the name.
    pub attributes: Option<Attributes>,
}

/// Tells of a name in an open directory what `lstat` tells, without the way to
/// it, which costs more than the name where both are at hand.
pub type LookUp = Box<dyn Fn(&OsStr) -> Result<Attributes> + Send + Sync>;

#[derive(Default)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// The directory, which stays open for whoever will ask for attributes.
    pub directory: Option<LookUp>,
    /// What the directories have that are likely to be listed next, as far as
    /// that took no further round trip.
    pub ahead: Vec<Option<Vec<Entry>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    /// Group; in a directory with set-group-id the directory's group goes
    /// before it.
    pub gid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// Permissions; the umask has been applied already and the source's is
    /// not applied.
    pub mode: u32,
    /// Who is to own it. `None`, or a source that gives no files away: whoever
    /// the source works as.
    pub owner: Option<Owner>,
}

/// What is made at a name, if it is not a file that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum New<'a> {
    Directory,
    Symlink(&'a OsStr),
    /// A named pipe, a socket, an empty regular file, or a device file with its
    /// number (`mknod`).
    Node(Kind, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    pub read: bool,
    /// `write_at`, `truncate` or `allocate` will be called.
    pub write: bool,
    pub create: Option<Creation>,
    /// With `create`: fail with `EEXIST` if there is one.
    pub exclusive: bool,
    pub truncate: bool,
    /// Bring the beginning of what is there, if that takes no further round
    /// trip.
    pub begin: bool,
    /// Fail with `ESTALE`, and change nothing, if an existing file at the path is
    /// another one. Only sources with identities can tell.
    pub expected: Option<Identity>,
}

impl OpenFlags {
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: None,
        exclusive: false,
        truncate: false,
        begin: false,
        expected: None,
    };
    pub const WRITE: Self = Self {
        read: false,
        write: true,
        ..Self::READ
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The source's present (`UTIME_NOW`).
    Now,
    At(Timespec),
}

/// What to change of a file's attributes; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permissions, `07777` at most. Applied after the owner, as a change of
    /// owner clears set-user-id.
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size_bytes: Option<u64>,
    pub atime: Option<SetTime>,
    /// Time of the last change of the content. Applied last.
    pub mtime: Option<SetTime>,
}

impl SetAttributes {
    pub(crate) fn has_times(&self) -> bool {
        self.atime.is_some() || self.mtime.is_some()
    }

    pub(crate) fn without_times(&self) -> Self {
        Self {
            atime: None,
            mtime: None,
            ..*self
        }
    }
}

/// Sets attributes, and times only if they may be set: that is for the owner, and
/// writing for others, too.
pub(crate) fn set_but_times<H: Handle + ?Sized>(handle: &H, changes: &SetAttributes) -> Result<()> {
    match handle.set_attributes(changes) {
        Err(Error::Errno(libc::EPERM | libc::EACCES)) if changes.has_times() => {
            let rest = changes.without_times();
            match rest == SetAttributes::default() {
                true => Ok(()),
                false => handle.set_attributes(&rest),
            }
        }
        done => done,
    }
}

/// What `lseek(2)` allows where holes cannot be told: all is data.
pub(crate) fn seek_in_data(from: SeekFrom, size_bytes: u64) -> Result<u64> {
    match from {
        SeekFrom::Data(offset) if offset < size_bytes => Ok(offset),
        SeekFrom::Hole(offset) if offset < size_bytes => Ok(size_bytes),
        _ => Err(Error::Errno(libc::ENXIO)),
    }
}

pub struct OpenReply {
    pub handle: Box<dyn Handle>,
    pub attributes: Attributes,
    /// What its directory is, if the file was made and that came with it.
    pub directory: Option<Attributes>,
    pub begin: Vec<u8>,
}

/// A file may be made and removed by others between two attempts; not for ever.
const ATTEMPTS_MAX: usize = 4;

/// Makes a file, or opens the one that is there, in two calls: only a new one
/// gets permissions and an owner. Making it goes first, as the kernel asks for
/// that where it has just found no file.
pub(crate) fn make_or_open<T>(
    flags: OpenFlags,
    make: impl Fn(&Creation) -> Result<T>,
    open: impl Fn() -> Result<T>,
) -> Result<T> {
    let Some(creation) = &flags.create else {
        return open();
    };
    for _ in 1..ATTEMPTS_MAX {
        match make(creation) {
            Err(Error::Errno(libc::EEXIST)) if !flags.exclusive => {}
            made => return made,
        }
        match open() {
            Err(Error::Errno(libc::ENOENT)) => {}
            opened => return opened,
        }
    }
    make(creation)
}

/// A directory tree that files come from. Calls may come from many threads
/// at once; a slow one must not keep others waiting.
pub trait Source: Send + Sync {
    /// How people write it, such as `/srv/data` or `ann@host:dir`. One name
    /// always means one source.
    fn name(&self) -> String;

    /// Whether each call waits for another host, which keeps times in whole
    /// seconds.
    fn is_remote(&self) -> bool {
        false
    }

    /// The user that it works as, by the source's numbers; none if those are this
    /// machine's, or it is unknown.
    fn user(&self) -> Option<Owner> {
        None
    }

    /// Whether a file that is changed from now on gets a later time than one that was
    /// changed last at this time (`ctime`), by the clock that the source's times are
    /// from. Where that is unknown, it is not so.
    fn is_settled(&self, changed: Timespec) -> bool;

    /// What `lstat` tells. A source may say `ENOENT` of what lies below a file:
    /// nobody asks who has not been told of a directory there.
    fn attributes(&self, path: &Path) -> Result<Attributes>;

    /// All names in a directory, and those in the directories `next`, which are
    /// likely to be listed soon. `EFBIG` if there are many more than `names_max`
    /// and each takes its part of a round trip.
    fn list(&self, path: &Path, next: &[&Path], names_max: usize) -> Result<Listing>;

    fn read_link(&self, path: &Path) -> Result<OsString>;

    /// Opens a regular file, and tells what it is then.
    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenReply>;

    /// Makes something new; `EPERM` if the source cannot. The mode of a symbolic
    /// link is not used.
    fn make(&self, path: &Path, new: New<'_>, creation: &Creation) -> Result<()>;

    /// Removes an empty directory, or else a name of a file that is none. Tells
    /// what the directory above is then, if that takes no further round trip.
    fn remove(&self, path: &Path, is_directory: bool) -> Result<Option<Attributes>>;

    /// Keeps the content of a file of which a name is about to be removed,
    /// until what is returned is dropped: where the call that removes the last
    /// name frees the storage, too, that takes most of its time. None where
    /// there is nothing to gain.
    fn keep_content(&self, _path: &Path) -> Option<OwnedFd> {
        None
    }

    /// Gives a file another name; `EPERM` if the source cannot.
    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()>;

    /// Changes a name, atomically; `EINVAL` if the source cannot do it so with
    /// these flags.
    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()>;

    /// Changes attributes. Those of a symbolic link are its own. `ESTALE` if the
    /// file at the path is another than expected, as far as the source can tell.
    fn set_attributes(
        &self,
        path: &Path,
        expected: Option<Identity>,
        changes: &SetAttributes,
    ) -> Result<()>;

    /// What `statvfs` tells of the root's file system.
    fn space(&self) -> Result<StatVfs>;

    /// Makes the names in a directory durable, as far as the source can.
    fn sync_directory(&self, path: &Path) -> Result<()>;

    /// Whether its files can have extended attributes. Without, the kernel does
    /// not ask for any.
    fn has_extended(&self) -> bool {
        false
    }

    /// The extended attributes of a file. `ESTALE` if it is another than
    /// expected.
    fn extended(&self, _path: &Path, _expected: Option<Identity>) -> Result<Box<dyn Extended>> {
        Err(Error::Errno(libc::ENOTSUP))
    }
}

/// The extended attributes of one file, whatever has its name by now.
pub trait Extended {
    /// A value; `ENODATA` if it is not there.
    fn value(&self, name: &OsStr) -> Result<Vec<u8>>;

    fn set(&self, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()>;

    fn names(&self) -> Result<Vec<OsString>>;

    fn remove(&self, name: &OsStr) -> Result<()>;
}

pub struct Finish<'a> {
    /// The last bytes, which may be none, and where they go.
    pub bytes: &'a [u8],
    pub offset: u64,
    pub changes: &'a SetAttributes,
    pub is_sync: bool,
    /// Whether to look if the file has its name before and afterwards.
    pub looks_at_name: bool,
}

/// An open regular file. It stays what it is when its name is changed or
/// removed. Dropping it closes it. Calls may come from many threads at once.
pub trait Handle: Send + Sync {
    /// Reads as much as `buffer` holds, in as many requests as it takes, many
    /// of them in flight at once; what is less than the buffer ends at the
    /// end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes all of `bytes`, likewise. Bytes are with the source when it
    /// returns, not necessarily on its device.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Writes like [`write_at`](Self::write_at), and may return as soon as all is
    /// on its way, in order with what is asked of the file from then on. An
    /// error that is known only later is told by the next call of this or of
    /// [`sync`](Self::sync), and by each [`flush`](Self::flush) before that.
    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        content.copy(offset, &mut |bytes, at| self.write_at(bytes, at))
    }

    /// Lets the source begin to bring what was written to its device.
    fn sync_later(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until the source has what [`write_later`](Self::write_later) has
    /// sent.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, size_bytes: u64) -> Result<()> {
        self.set_attributes(&SetAttributes {
            size_bytes: Some(size_bytes),
            ..SetAttributes::default()
        })
    }

    /// Brings content and attributes to the source's device (`fsync`). A
    /// source that cannot answers `Ok`.
    fn sync(&self) -> Result<()>;

    fn attributes(&self) -> Result<Attributes>;

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()>;

    /// Does all of it in as few round trips as the source can, and tells what
    /// the file is then, and whether it is certain that it has its name. Times that
    /// the source does not let this mount set stay what they are. After an error any
    /// of it may have been done.
    fn finish(&self, end: &Finish<'_>) -> Result<(Attributes, bool)> {
        if !end.bytes.is_empty() {
            self.write_at(end.bytes, end.offset)?;
        }
        if *end.changes != SetAttributes::default() {
            set_but_times(self, end.changes)?;
        }
        if end.is_sync {
            self.sync()?;
        }
        Ok((self.attributes()?, false))
    }

    /// `fallocate` with its mode bits; `EOPNOTSUPP` if the source cannot.
    fn allocate(&self, _mode: i32, _offset: u64, _length: u64) -> Result<()> {
        Err(Error::Errno(libc::EOPNOTSUPP))
    }

    /// Where data or a hole begins at or after an offset; `ENXIO` past the
    /// last, `EOPNOTSUPP` if the source cannot tell.
    fn seek(&self, _from: SeekFrom) -> Result<u64> {
        Err(Error::Errno(libc::EOPNOTSUPP))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
