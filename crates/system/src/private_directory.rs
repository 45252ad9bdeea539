//! Directories that belong to this user alone.
//!
//! A directory named by `HOME`, an XDG variable or an option is the user's choice. Each directory
//! that this program makes below it has mode 0700. An existing directory is used only if this user
//! owns it and nobody else may write to it. Then only this user put files there, and names below it
//! keep leading to the same files.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::users::user_name;

/// Opens a directory only to identify it, which needs no read permission.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Identifies a file uniquely within one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    fn from_stat(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// A place for a directory of this program.
#[derive(Debug, Clone)]
pub struct Place {
    /// The user's choice.
    chosen: PathBuf,
    /// Directories below `chosen` that other programs use, too, such as `.local/state`.
    shared: PathBuf,
    /// Directories below `shared` that belong to this program only.
    own: PathBuf,
    /// The setting that chooses another place, for messages.
    setting: &'static str,
}

impl Place {
    /// Describes a place below `HOME`, or below a directory that an XDG variable names.
    pub fn new(chosen: PathBuf, shared: &str, own: &str, setting: &'static str) -> Self {
        Self {
            chosen,
            shared: shared.into(),
            own: own.into(),
            setting,
        }
    }

    /// Describes a directory that the user named. Other users may also create files in it.
    pub fn named(directory: &Path, setting: &'static str) -> Result<Self, String> {
        // The path is made absolute for the journal, since the next start may have another current
        // directory.
        let chosen = std::path::absolute(directory)
            .map_err(|error| format!("cannot use {}: {error}", directory.display()))?;
        Ok(Self::new(chosen, "", "", setting))
    }

    /// Replaces the setting that chooses another place.
    pub fn named_by(self, setting: &'static str) -> Self {
        Self { setting, ..self }
    }

    /// Describes a directory below this place.
    pub fn join(&self, name: &str) -> Self {
        let own = self.own.join(name);
        Self {
            own,
            ..self.clone()
        }
    }

    /// Returns the path without checking what it leads to.
    pub fn unchecked_path(&self) -> PathBuf {
        let mut path = self.chosen.clone();
        path.extend(self.shared.components().chain(self.own.components()));
        path
    }

    /// Returns the path if nothing is there yet, or if a directory of this user alone is there.
    pub fn path(&self) -> Result<PathBuf, String> {
        self.open().map(|_| self.unchecked_path())
    }

    /// Opens the directory if it exists.
    pub fn open(&self) -> Result<Option<Directory>, String> {
        self.walk(false)
    }

    /// Opens the directory, and makes it if it is missing.
    pub fn make(&self) -> Result<Directory, String> {
        let missing = || self.refuse(&self.unchecked_path(), "it vanished");
        self.walk(true)?.ok_or_else(missing)
    }

    fn walk(&self, makes: bool) -> Result<Option<Directory>, String> {
        let cannot = |verb: &str, path: &Path, error: io::Error| {
            format!(
                "cannot {verb} {}: {error}; choose another place with {}",
                path.display(),
                self.setting
            )
        };
        if makes {
            let mut builder = DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(&self.chosen);
            made.map_err(|error| cannot("make", &self.chosen, error))?;
        }
        let mut path = self.chosen.clone();
        let mut file = match openat(CWD, &path, DIRECTORY, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) if !makes => return Ok(None),
            Err(errno) => return Err(cannot("open", &path, errno.into())),
        };
        self.check_chosen(&file)?;
        let shared = self.shared.components().map(|name| (name, true));
        let own = self.own.components().map(|name| (name, false));
        for (name, is_shared) in shared.chain(own) {
            path.push(name);
            if makes {
                match mkdirat(&file, name.as_os_str(), Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(cannot("make", &path, errno.into())),
                }
            }
            let link = match statat(&file, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(cannot("examine", &path, errno.into())),
            };
            let flags = self.flags(&path, &link, is_shared)?;
            file = openat(&file, name.as_os_str(), flags, Mode::empty())
                .map_err(|errno| cannot("open", &path, errno.into()))?;
            let stat = fstat(&file).map_err(|errno| cannot("examine", &path, errno.into()))?;
            self.check(&path, &stat, is_shared)?;
        }
        Ok(Some(Directory {
            path,
            file,
            setting: self.setting,
        }))
    }

    /// Refuses a directory that all users may write to and that is not sticky, since anyone could
    /// rename its files.
    fn check_chosen(&self, file: &OwnedFd) -> Result<(), String> {
        let is_open = |stat: Stat| stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & STICKY == 0;
        if fstat(file).is_ok_and(is_open) {
            return Err(self.refuse(
                &self.chosen,
                &format!(
                    "all users may rename files in it; chmod o-w '{}', or set its sticky bit",
                    self.chosen.display()
                ),
            ));
        }
        Ok(())
    }

    /// Returns the flags for opening a component. Only directories that other programs share may be
    /// links, since people move these to another disk. This user or root must have made the link.
    fn flags(&self, path: &Path, link: &Stat, is_shared: bool) -> Result<OFlags, String> {
        match FileType::from_raw_mode(link.st_mode) {
            FileType::Symlink if is_shared && is_trusted(link.st_uid) => Ok(DIRECTORY),
            FileType::Symlink if is_shared => {
                let why = format!("it is a symbolic link of {}", user_name(link.st_uid));
                Err(self.refuse(path, &why))
            }
            FileType::Symlink => Err(self.refuse(path, "it is a symbolic link")),
            FileType::Directory => Ok(DIRECTORY | OFlags::NOFOLLOW),
            _ => Err(self.refuse(path, "it is not a directory")),
        }
    }

    fn check(&self, path: &Path, stat: &Stat, is_shared: bool) -> Result<(), String> {
        let own = geteuid().as_raw();
        let is_owner_fine = if is_shared {
            is_trusted(stat.st_uid)
        } else {
            stat.st_uid == own
        };
        if !is_owner_fine {
            let [owner, me] = [stat.st_uid, own].map(user_name);
            return Err(self.refuse(path, &format!("it belongs to {owner}, not to {me}")));
        }
        // With umask 002, as some distributions set it, directories of other programs are
        // writable by a group in which the user is alone.
        let is_private_group = is_shared && stat.st_gid == getegid().as_raw();
        let refused = if is_private_group {
            OTHERS_WRITE
        } else {
            OTHERS_WRITE | GROUP_WRITES
        };
        if stat.st_mode & refused != 0 {
            return Err(format!(
                "cannot use {path}: others may write to it (mode {mode:04o}); check that \
                 everything in it is yours, then chmod go-w '{path}'",
                path = path.display(),
                mode = stat.st_mode & 0o7777
            ));
        }
        Ok(())
    }

    fn refuse(&self, path: &Path, why: &str) -> String {
        format!(
            "cannot use {}: {why}; remove it, or choose another place with {}",
            path.display(),
            self.setting
        )
    }
}

/// Refuses a path that somebody else made or can change, since it may lead anywhere. `setting`
/// chooses another place.
pub fn check_trusted(path: &Path, setting: &'static str) -> Result<(), String> {
    let stat = statat(CWD, path, AtFlags::empty()).map_err(|errno| {
        let error = io::Error::from(errno);
        format!("cannot examine {}: {error}", path.display())
    })?;
    Place::named(path, setting)?.check(path, &stat, true)
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// An open directory that was checked to be this user's alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    file: OwnedFd,
    /// The setting that chooses another place, for messages.
    setting: &'static str,
}

impl Directory {
    /// Opens a directory that the user named, even if others may write to it.
    pub fn of_user(path: &Path, setting: &'static str) -> Result<Self, String> {
        let opened = openat(CWD, path, DIRECTORY, Mode::empty());
        let file = opened.map_err(|errno| {
            let error = io::Error::from(errno);
            format!("cannot open {}: {error}", path.display())
        })?;
        let path = path.to_owned();
        Ok(Self {
            path,
            file,
            setting,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path in the directory with an unpredictable name.
    pub fn unused_path(&self, prefix: &str) -> Result<PathBuf, String> {
        let mut random = [0_u8; 8];
        let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        drawn.map_err(|errno| format!("cannot draw a random name: {errno}"))?;
        let number = u64::from_le_bytes(random);
        Ok(self.path.join(format!("{prefix}-{number:016x}")))
    }

    /// Makes a new directory with mode 0700. An existing directory is an error.
    pub fn make_new(&self, path: &Path) -> Result<Identity, String> {
        let name = path.file_name().unwrap_or_default();
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        let make = || {
            mkdirat(&self.file, name, Mode::RWXU)?;
            fstat(openat(&self.file, name, flags, Mode::empty())?)
        };
        let made = make().map_err(|errno| {
            let error = io::Error::from(errno);
            format!(
                "cannot make {}: {error}; choose another place with {}",
                path.display(),
                self.setting
            )
        });
        Ok(Identity::from_stat(&made?))
    }

    /// Opens a file of this user that nobody else may read or write, and that has no other hard
    /// link.
    pub fn open_private(&self, name: &OsStr, flags: OFlags) -> Result<File, String> {
        // Without NONBLOCK, opening a FIFO that somebody put there would block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR);
        let file = opened.map_err(|errno| match errno {
            Errno::LOOP => "it is a symbolic link".to_owned(),
            errno => io::Error::from(errno).to_string(),
        })?;
        let stat = fstat(&file).map_err(|errno| io::Error::from(errno).to_string())?;
        let why = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            "it is not a regular file".to_owned()
        } else if stat.st_uid != geteuid().as_raw() {
            format!("it belongs to {}", user_name(stat.st_uid))
        } else if stat.st_mode & 0o077 != 0 {
            format!("others may access it (mode {:04o})", stat.st_mode & 0o7777)
        } else if stat.st_nlink > 1 {
            "it has another hard link".to_owned()
        } else {
            return Ok(file.into());
        };
        Err(why)
    }

    /// Returns the names of the directory's entries, sorted.
    pub fn names(&self) -> Result<Vec<OsString>, String> {
        let read = || -> rustix::io::Result<Vec<OsString>> {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            let entries = Dir::new(openat(&self.file, ".", flags, Mode::empty())?)?;
            let name = |entry: DirEntry| OsString::from_vec(entry.file_name().to_bytes().to_vec());
            entries.map(|entry| Ok(name(entry?))).collect()
        };
        let mut names = read().map_err(|errno| {
            let error = io::Error::from(errno);
            format!("cannot read {}: {error}", self.path.display())
        })?;
        names.sort();
        Ok(names)
    }
}

/// A lock that is a file. Dropping it removes the file. A file that an ended process left locks
/// nothing.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    _file: File,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // The file is removed while it is locked, so that nobody else holds it. If the removal
        // fails, the next caller locks the file again.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Directory {
    /// Takes a lock in the directory; `None` while another process holds it.
    pub fn lock_file(&self, name: &str) -> Result<Option<LockFile>, String> {
        let path = self.path.join(name);
        let cannot = |why: String| format!("cannot lock {}: {why}", path.display());
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR;
            let file = self.open_private(name.as_ref(), flags).map_err(cannot)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(cannot(error.to_string())),
            }
            let stat = fstat(&file).map_err(|errno| cannot(errno.to_string()))?;
            // Otherwise the last holder removed the file after it was opened here, so this retries.
            if identity(&path).is_some_and(|(found, _)| found == Identity::from_stat(&stat)) {
                return Ok(Some(LockFile { path, _file: file }));
            }
        }
    }
}

/// Returns the identity of the file at a path, without following a final link.
pub fn identity(path: &Path) -> Option<(Identity, Stat)> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((Identity::from_stat(&stat), stat))
}

/// Whether a path is absolute and has no `..` component.
pub fn is_plain(path: &Path) -> bool {
    let mut components = path.components();
    path.is_absolute() && !components.any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_made_is_never_one_that_was_there() {
        let above = tempfile::tempdir().unwrap();
        let directory = Directory::of_user(above.path(), "--work-dir").unwrap();
        let path = directory.unused_path("run").unwrap();
        let made = directory.make_new(&path).unwrap();
        assert_eq!(identity(&path).map(|(found, _)| found), Some(made));
        let link = directory.unused_path("run").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for there in [path, link] {
            let refused = directory.make_new(&there).unwrap_err();
            assert!(refused.contains("exists"), "{refused}");
        }
    }
}
