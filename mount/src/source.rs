//! The interface to a source of files, in plain data: see [`Source`].
//!
//! A path is a byte string relative to the source's root: `""` is the root itself.
//! No path begins with `/`, ends with `/`, or has a component `.` or `..`. No
//! method follows a symbolic link in the last component. How a source treats links
//! in the middle of a path does not matter: the kernel looks up one component at a
//! time, so the paths of a mount have none there.

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
    /// The file type, if it came with the name.
    pub kind: Option<Kind>,
    /// The attributes that `lstat` would return, if they came with the name.
    pub attributes: Option<Attributes>,
}

/// Returns the `lstat` attributes of a name in an open directory. Resolving the
/// path of the directory again would cost more than looking up the name.
pub type LookUp = Box<dyn Fn(&OsStr) -> Result<Attributes> + Send + Sync>;

#[derive(Default)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Looks up names in the directory, which stays open for this purpose.
    pub directory: Option<LookUp>,
    /// Entries of the directories that are likely to be listed next, in the order of
    /// the call. `None` for a directory whose listing would have taken another round
    /// trip.
    pub ahead: Vec<Option<Vec<Entry>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    /// Group. A file that is created in a directory with set-group-id gets the directory's
    /// group instead.
    pub gid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// Permissions, to which the umask has already been applied. The source does not
    /// apply its own umask.
    pub mode: u32,
    /// Owner of the new file. If it is `None`, or if the source cannot give files
    /// away, the owner is the user that the source runs as.
    pub owner: Option<Owner>,
}

/// An object to create at a name, other than a regular file that is opened at once.
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
    /// Open for `write_at`, `truncate` and `allocate`.
    pub write: bool,
    pub create: Option<Creation>,
    /// With `create`: fail with `EEXIST` if the file exists.
    pub exclusive: bool,
    pub truncate: bool,
    /// Also read the beginning of the file, if that takes no further round trip.
    pub begin: bool,
    /// Fail with `ESTALE`, and change nothing, if an existing file at the path has
    /// another identity. Sources without identities cannot check this.
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
    /// The source's current time (`UTIME_NOW`).
    Now,
    At(Timespec),
}

/// Attributes to change; `None` leaves an attribute unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permissions, `07777` at most. They are applied after the owner, because a change
    /// of owner clears set-user-id.
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size_bytes: Option<u64>,
    pub atime: Option<SetTime>,
    /// Time of the last change of the content. It is applied last.
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

/// Sets attributes. If the source refuses to set times, sets the others alone: only the
/// owner may set times, while others may write.
pub(crate) fn set_but_times<H: Handle + ?Sized>(handle: &H, changes: &SetAttributes) -> Result<()> {
    match handle.set_attributes(changes) {
        Err(Error::Errno(libc::EPERM | libc::EACCES)) if changes.has_times() => {
            let rest = changes.without_times();
            if rest == SetAttributes::default() {
                Ok(())
            } else {
                handle.set_attributes(&rest)
            }
        }
        done => done,
    }
}

/// Implements `lseek(2)` for files whose holes are unknown: everything is data. Returns
/// `ENXIO` past the end.
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
    /// Attributes of the parent directory, if the file was created and they came
    /// with the reply.
    pub directory: Option<Attributes>,
    pub begin: Vec<u8>,
}

/// Maximum number of attempts of [`make_or_open`]. Several can be needed, because others
/// may create and remove the file between two attempts.
const ATTEMPTS_MAX: usize = 4;

/// Creates a file or opens the existing one, in two calls, because only a new file gets
/// permissions and an owner. Creating comes first: the kernel sends such a request
/// after a lookup has found no file.
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

/// A tree of directories and files. Many threads may call it at once, and a slow call
/// must not delay the others.
pub trait Source: Send + Sync {
    /// Returns the name that users write, such as `/srv/data` or `ann@host:dir`.
    /// The same name always means the same source.
    fn name(&self) -> String;

    /// Returns whether each call waits for another host. A remote source keeps times in
    /// whole seconds.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the numbers, at the source, of the user and group that it runs as. `None` if
    /// users have the same numbers there as here, or if the user is unknown.
    fn user(&self) -> Option<Owner> {
        None
    }

    /// Returns whether a file that is changed from now on gets a later `ctime` than
    /// `changed`, by the clock that stamps the source's files. False if that is
    /// unknown.
    fn is_settled(&self, changed: Timespec) -> bool;

    /// Returns the attributes that `lstat` returns. For a path below a file, a source
    /// may return `ENOENT`, because callers only look below names of directories.
    fn attributes(&self, path: &Path) -> Result<Attributes>;

    /// Lists a directory, and also the directories `next`, which are likely to be
    /// listed soon. Returns `EFBIG` if there are many more names than `names_max` and
    /// listing them would take further round trips.
    fn list(&self, path: &Path, next: &[&Path], names_max: usize) -> Result<Listing>;

    fn read_link(&self, path: &Path) -> Result<OsString>;

    /// Opens a regular file and returns its attributes.
    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenReply>;

    /// Creates a directory, symbolic link or other node; `EPERM` if the source cannot
    /// do that. The mode of a symbolic link is not used.
    fn make(&self, path: &Path, new: New<'_>, creation: &Creation) -> Result<()>;

    /// Removes an empty directory if `is_directory`, and otherwise a name of a file
    /// that is not a directory. Returns the attributes of the parent directory, if that
    /// takes no further round trip.
    fn remove(&self, path: &Path, is_directory: bool) -> Result<Option<Attributes>>;

    /// Keeps the content of a file until the returned descriptor is dropped. Called
    /// before a name is removed: removing the last name may free the storage, which
    /// takes most of the time. `None` if keeping the content saves nothing.
    fn keep_content(&self, _path: &Path) -> Option<OwnedFd> {
        None
    }

    /// Gives a file another name; `EPERM` if the source cannot do that.
    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()>;

    /// Renames atomically. Returns `EINVAL` if the source cannot do that with these
    /// flags.
    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()>;

    /// Changes attributes, without following a symbolic link. Returns `ESTALE` if
    /// the file at the path is not the expected one, as far as the source can tell.
    fn set_attributes(
        &self,
        path: &Path,
        expected: Option<Identity>,
        changes: &SetAttributes,
    ) -> Result<()>;

    /// Returns `statvfs` of the file system that holds the root.
    fn space(&self) -> Result<StatVfs>;

    /// Makes the names in a directory durable, as far as the source can.
    fn sync_directory(&self, path: &Path) -> Result<()>;

    /// Returns whether files can have extended attributes. If not, the kernel asks for
    /// none.
    fn has_extended(&self) -> bool {
        false
    }

    /// Returns the extended attributes of a file. Returns `ESTALE` if another file is
    /// found.
    fn extended(&self, _path: &Path, _expected: Option<Identity>) -> Result<Box<dyn Extended>> {
        Err(Error::Errno(libc::ENOTSUP))
    }
}

/// Extended attributes of one file, even if another file has taken its name since.
pub trait Extended {
    /// Returns a value; `ENODATA` if the attribute does not exist.
    fn value(&self, name: &OsStr) -> Result<Vec<u8>>;

    fn set(&self, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()>;

    fn names(&self) -> Result<Vec<OsString>>;

    fn remove(&self, name: &OsStr) -> Result<()>;
}

pub struct Finish<'a> {
    /// The last bytes to write, at `offset`. They may be empty.
    pub bytes: &'a [u8],
    pub offset: u64,
    pub changes: &'a SetAttributes,
    pub is_sync: bool,
    /// Whether to check before and after the write that the file still has its name.
    pub looks_at_name: bool,
}

/// An open regular file. It stays the same file when its name is changed or removed.
/// Dropping this value closes the file. Many threads may call it at once.
pub trait Handle: Send + Sync {
    /// Fills `buffer`, with many requests in flight at once. Returns less than the
    /// length of `buffer` only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes all of `bytes`, with many requests in flight. On return, the source has
    /// the bytes, though not necessarily on its device.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Writes like [`write_at`](Self::write_at), but may return when everything is
    /// sent, in order with later requests for the file. A later error is returned by
    /// the next call of this method or of [`sync`](Self::sync). Each
    /// [`flush`](Self::flush) before that returns it as well.
    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        content.copy(offset, &mut |bytes, at| self.write_at(bytes, at))
    }

    /// Makes the source start to bring written content to its device, without waiting
    /// for the end.
    fn sync_later(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until the source has everything that
    /// [`write_later`](Self::write_later) sent.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, size_bytes: u64) -> Result<()> {
        self.set_attributes(&SetAttributes {
            size_bytes: Some(size_bytes),
            ..SetAttributes::default()
        })
    }

    /// Brings content and attributes to the source's device (`fsync`). Returns `Ok`
    /// if the source cannot do that.
    fn sync(&self) -> Result<()>;

    fn attributes(&self) -> Result<Attributes>;

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()>;

    /// Does everything in `end` in as few round trips as possible. Returns the
    /// resulting attributes, and whether the file certainly has its name. Times that
    /// the source does not let this mount set stay unchanged. After an error, any part
    /// may have been done.
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

    /// Does `fallocate` with its mode bits; `EOPNOTSUPP` if the source cannot do that.
    fn allocate(&self, _mode: i32, _offset: u64, _length: u64) -> Result<()> {
        Err(Error::Errno(libc::EOPNOTSUPP))
    }

    /// Returns the offset of the next data or hole at or after an offset. Returns
    /// `ENXIO` after the last one, and `EOPNOTSUPP` if the source does not know.
    fn seek(&self, _from: SeekFrom) -> Result<u64> {
        Err(Error::Errno(libc::EOPNOTSUPP))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
