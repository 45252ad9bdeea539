//! A local directory as a source.
//!
//! Every path is resolved below an open descriptor of the root with `openat2(2)`
//! and `RESOLVE_NO_SYMLINKS`: whatever happens to the directory meanwhile, no call
//! leaves it. A file is changed through a descriptor, after a check that it is the
//! expected file: root serves users who may rename files in the source.

mod attributes;
mod creator;
mod descriptor;
mod extended;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};

use crate::content::read_full;
use crate::source::{
    Attributes, Creation, Entry, Error, Extended, Handle, Identity, Kind, Listing, New, OpenFlags,
    OpenReply, RenameFlags, Result, SeekFrom, SetAttributes, Source, StatVfs, Timespec,
    make_or_open,
};
use attributes::{change, look, look_at};
use creator::Creator;
use descriptor::open_again;
use extended::ExtendedAttributes;

pub struct Local {
    name: PathBuf,
    root: OwnedFd,
    creator: Creator,
}

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// A time longer than one step of the kernel's clock for file times. A step is a tick,
/// which is 10 ms at most. Since Linux 6.13 some file systems have finer times.
const TICK_NS: i128 = 20_000_000;

/// File systems whose `unlink` frees the file's blocks unless the file is held
/// open: `EXT4_SUPER_MAGIC`, `XFS_SUPER_MAGIC`, `BTRFS_SUPER_MAGIC`, `TMPFS_MAGIC`.
/// A network file system may keep an open file under another name in the same
/// directory, which is then not empty.
const FREES_IN_UNLINK: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// Longest file whose content is kept until after its unlink returns. A user who makes
/// room on a full disk needs the space of a larger file at once.
const KEPT_BYTES_MAX: i64 = 1 << 20;

impl Local {
    pub fn new(directory: &Path) -> std::io::Result<Self> {
        let name = directory.canonicalize()?;
        let root = rustix::fs::open(
            &name,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            name,
            root,
            creator: Creator::new()?,
        })
    }

    fn resolve(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat2(&self.root, path, flags, mode, RESOLVE)?)
    }

    fn by_path(&self, path: &Path) -> Result<OwnedFd> {
        self.resolve(path, OFlags::PATH, Mode::empty())
    }

    /// Calls `work` with the directory of a path, and with the name in that directory.
    fn at<T, E: Into<Error>>(
        &self,
        path: &Path,
        work: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, E>,
    ) -> Result<T> {
        let name = path.file_name().ok_or(Error::Errno(libc::EBUSY))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        if directory.as_os_str().is_empty() {
            return work(self.root.as_fd(), name).map_err(E::into);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = self.resolve(directory, flags, Mode::empty())?;
        work(directory.as_fd(), name).map_err(E::into)
    }

    /// Opens a file with `O_PATH` and returns its attributes. Returns `ESTALE` if
    /// another file is found.
    fn expected(&self, path: &Path, expected: Option<Identity>) -> Result<(OwnedFd, Attributes)> {
        let file = self.by_path(path)?;
        let found = look_at(&file)?;
        if expected.is_none() || expected == found.identity {
            Ok((file, found))
        } else {
            Err(Error::Errno(libc::ESTALE))
        }
    }

    /// Opens an existing regular file.
    fn open_existing(&self, path: &Path, flags: OpenFlags) -> Result<(OwnedFd, Attributes)> {
        let (file, found) = self.expected(path, flags.expected)?;
        let opened = open_again(&file, found.kind, system_flags(flags))?;
        let found = if flags.truncate {
            look_at(&opened)?
        } else {
            found
        };
        Ok((opened, found))
    }

    /// Creates and opens a file where none exists, and returns its attributes.
    fn open_new(
        &self,
        path: &Path,
        flags: OpenFlags,
        creation: &Creation,
    ) -> Result<(OwnedFd, Attributes)> {
        let mode = Mode::from_raw_mode(creation.mode);
        let flags = system_flags(flags) | OFlags::CREATE | OFlags::EXCL;
        let file = self
            .creator
            .make(creation, || self.resolve(path, flags, mode))?;
        let made = look_at(&file)?;
        Ok((file, made))
    }
}

fn system_flags(flags: OpenFlags) -> OFlags {
    let access = match (flags.read, flags.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    if flags.truncate {
        access | OFlags::TRUNC
    } else {
        access
    }
}

impl Source for Local {
    fn name(&self) -> String {
        self.name.display().to_string()
    }

    fn is_settled(&self, changed: Timespec) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let nanoseconds =
            |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        // A time in the future is from another clock, or from this clock before it was
        // set back.
        (nanoseconds(now) - nanoseconds(changed)).abs() > TICK_NS
    }

    fn attributes(&self, path: &Path) -> Result<Attributes> {
        if path.as_os_str().is_empty() {
            Ok(look_at(&self.root)?)
        } else {
            self.at(path, |parent, name| look(parent, name))
        }
    }

    fn list(&self, path: &Path, _next: &[&Path], _names_max: usize) -> Result<Listing> {
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut buffer = Vec::with_capacity(64 * 1024);
        let mut names = RawDir::new(&directory, buffer.spare_capacity_mut());
        let mut entries = Vec::new();
        while let Some(entry) = names.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                entries.push(Entry {
                    name: OsStr::from_bytes(name).to_owned(),
                    kind: Kind::of_mode(entry.file_type().as_raw_mode()),
                    attributes: None,
                });
            }
        }
        // A single component is looked up, so no link on the way can lead out of the
        // root.
        let look_up = move |name: &OsStr| Ok(look(&directory, name)?);
        Ok(Listing {
            entries,
            directory: Some(Box::new(look_up)),
            ..Listing::default()
        })
    }

    fn read_link(&self, path: &Path) -> Result<OsString> {
        let target = self.at(path, |parent, name| {
            rustix::fs::readlinkat(parent, name, Vec::new())
        })?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenReply> {
        let open = || self.open_existing(path, flags);
        let make = |creation: &Creation| self.open_new(path, flags, creation);
        let (file, attributes) = make_or_open(flags, make, open)?;
        Ok(OpenReply {
            handle: Box::new(File::from(file)),
            attributes,
            directory: None,
            begin: Vec::new(),
        })
    }

    fn make(&self, path: &Path, new: New<'_>, creation: &Creation) -> Result<()> {
        let mode = Mode::from_raw_mode(creation.mode);
        self.at(path, |parent, name| {
            self.creator.make(creation, || {
                match new {
                    New::Directory => rustix::fs::mkdirat(parent, name, mode)?,
                    New::Symlink(target) => rustix::fs::symlinkat(target, parent, name)?,
                    New::Node(kind, device) => {
                        let kind = FileType::from_raw_mode(kind as u32);
                        rustix::fs::mknodat(parent, name, kind, mode, device)?;
                    }
                }
                Ok(())
            })
        })
    }

    fn remove(&self, path: &Path, is_directory: bool) -> Result<Option<Attributes>> {
        let flags = if is_directory {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        self.at(path, |parent, name| {
            rustix::fs::unlinkat(parent, name, flags)
        })?;
        Ok(None)
    }

    fn keep_content(&self, path: &Path) -> Option<OwnedFd> {
        let file = self.by_path(path).ok()?;
        let size_bytes = rustix::fs::fstat(&file).ok()?.st_size;
        if size_bytes > KEPT_BYTES_MAX {
            return None;
        }
        let kind = rustix::fs::fstatfs(&file).ok()?.f_type;
        // The types of the fields differ between architectures.
        FREES_IN_UNLINK.contains(&(kind as u64)).then_some(file)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()> {
        self.at(existing, |from, old_name| {
            self.at(new, |to, new_name| {
                rustix::fs::linkat(from, old_name, to, new_name, AtFlags::empty())
            })
        })
    }

    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
        self.at(from, |from, old_name| {
            self.at(to, |to, new_name| {
                rustix::fs::renameat_with(from, old_name, to, new_name, flags)
            })
        })
    }

    fn set_attributes(
        &self,
        path: &Path,
        expected: Option<Identity>,
        changes: &SetAttributes,
    ) -> Result<()> {
        let (file, found) = self.expected(path, expected)?;
        if let Some(size_bytes) = changes.size_bytes {
            let writable = open_again(&file, found.kind, OFlags::WRONLY)?;
            rustix::fs::ftruncate(writable, size_bytes)?;
        }
        Ok(change(&file, changes)?)
    }

    fn space(&self) -> Result<StatVfs> {
        Ok(rustix::fs::fstatvfs(&self.root)?)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(rustix::fs::fsync(&directory)?)
    }

    fn has_extended(&self) -> bool {
        true
    }

    fn extended(&self, path: &Path, expected: Option<Identity>) -> Result<Box<dyn Extended>> {
        let (file, _) = self.expected(path, expected)?;
        Ok(Box::new(ExtendedAttributes(file)))
    }
}

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        Ok(read_full(self, buffer, offset)?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        Ok(self.write_all_at(bytes, offset)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(rustix::fs::fsync(self)?)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(look_at(self)?)
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        if let Some(size_bytes) = changes.size_bytes {
            rustix::fs::ftruncate(self, size_bytes)?;
        }
        Ok(change(self, changes)?)
    }

    fn allocate(&self, mode: i32, offset: u64, length: u64) -> Result<()> {
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        Ok(rustix::fs::fallocate(self, flags, offset, length)?)
    }

    fn seek(&self, from: SeekFrom) -> Result<u64> {
        Ok(rustix::fs::seek(self, from)?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}
