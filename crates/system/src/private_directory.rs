//! Directories that belong to this user alone.
//!
//! What `HOME`, an XDG variable or an option names is the user's choice. Each
//! directory that this program makes below it has mode 0700. One that is there
//! already is used only if it is this user's and nobody else may write to it:
//! what lies in it then was put there by this user, and names below it keep
//! leading to the same files.

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

/// Directories are opened for their identity alone, which needs no right to read.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Distinguishes a file from all others of one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    fn of(stat: &Stat) -> Self {
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
    /// Directories below it that other programs use, too, such as `.local/state`.
    shared: PathBuf,
    /// Directories below those that are this program's own.
    own: PathBuf,
    /// What names another place, for messages.
    setting: &'static str,
}

impl Place {
    /// Names a place below `HOME` or what an XDG variable names.
    pub fn new(chosen: PathBuf, shared: &str, own: &str, setting: &'static str) -> Self {
        Self {
            chosen,
            shared: shared.into(),
            own: own.into(),
            setting,
        }
    }

    /// Takes a directory that the user names, in which other users may make files, too.
    pub fn named(directory: &Path, setting: &'static str) -> Result<Self, String> {
        // Absolute before it is noted in a journal: the next start may have another directory.
        let chosen = std::path::absolute(directory)
            .map_err(|error| format!("cannot use {}: {error}", directory.display()))?;
        Ok(Self::new(chosen, "", "", setting))
    }

    /// Names what chooses another place.
    pub fn named_by(self, setting: &'static str) -> Self {
        Self { setting, ..self }
    }

    /// Names a directory below.
    pub fn join(&self, name: &str) -> Self {
        let own = self.own.join(name);
        Self {
            own,
            ..self.clone()
        }
    }

    /// Its path, without a look at what lies there.
    pub fn unchecked_path(&self) -> PathBuf {
        let mut path = self.chosen.clone();
        path.extend(self.shared.components().chain(self.own.components()));
        path
    }

    /// Its path, if nothing lies there yet, or a directory of this user alone.
    pub fn path(&self) -> Result<PathBuf, String> {
        self.open().map(|_| self.unchecked_path())
    }

    /// Opens the directory if it is there.
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
                Err(errno) => return Err(cannot("look at", &path, errno.into())),
            };
            let flags = self.flags(&path, &link, is_shared)?;
            file = openat(&file, name.as_os_str(), flags, Mode::empty())
                .map_err(|errno| cannot("open", &path, errno.into()))?;
            let stat = fstat(&file).map_err(|errno| cannot("look at", &path, errno.into()))?;
            self.check(&path, &stat, is_shared)?;
        }
        Ok(Some(Directory {
            path,
            file,
            setting: self.setting,
        }))
    }

    /// Anyone may rename what lies in a directory that all may write to and that is not sticky.
    fn check_chosen(&self, file: &OwnedFd) -> Result<(), String> {
        let is_open = |stat: Stat| stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & STICKY == 0;
        if fstat(file).is_ok_and(is_open) {
            return Err(self.refuse(
                &self.chosen,
                &format!(
                    "all users may rename what is made in it; chmod o-w '{}', or make it sticky",
                    self.chosen.display()
                ),
            ));
        }
        Ok(())
    }

    /// How a component is opened. A link is followed only where other programs' directories
    /// lie, which people move to another disk, and only if this user or root made it.
    fn flags(&self, path: &Path, link: &Stat, is_shared: bool) -> Result<OFlags, String> {
        match FileType::from_raw_mode(link.st_mode) {
            FileType::Symlink if is_shared && is_trusted(link.st_uid) => Ok(DIRECTORY),
            FileType::Symlink if is_shared => {
                let why = format!("it is a link of {}", user_name(link.st_uid));
                Err(self.refuse(path, &why))
            }
            FileType::Symlink => Err(self.refuse(path, "it is a link")),
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
        // With umask 002, as some distributions set it, directories of other programs can be
        // written to by a group in which the user is alone.
        let is_private_group = is_shared && stat.st_gid == getegid().as_raw();
        let refused = if is_private_group {
            OTHERS_WRITE
        } else {
            OTHERS_WRITE | GROUP_WRITES
        };
        if stat.st_mode & refused != 0 {
            return Err(format!(
                "cannot use {path}: others may write to it (mode {mode:04o}); look whether all in it \
                 is yours, then chmod go-w '{path}'",
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

/// Refuses what somebody else made or can change: what is in it may lead anywhere. `setting`
/// names another place.
pub fn check_trusted(path: &Path, setting: &'static str) -> Result<(), String> {
    let stat = statat(CWD, path, AtFlags::empty()).map_err(|errno| {
        let error = io::Error::from(errno);
        format!("cannot look at {}: {error}", path.display())
    })?;
    Place::named(path, setting)?.check(path, &stat, true)
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// A directory that was found to be this user's alone, held open.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    file: OwnedFd,
    /// What names another place, for messages.
    setting: &'static str,
}

impl Directory {
    /// Opens a directory that the user named, whoever may write to it.
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

    /// A path in it whose name nobody can foresee.
    pub fn unused_path(&self, prefix: &str) -> Result<PathBuf, String> {
        let mut random = [0_u8; 8];
        let drawn = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        drawn.map_err(|errno| format!("cannot name a directory: {errno}"))?;
        let number = u64::from_le_bytes(random);
        Ok(self.path.join(format!("{prefix}-{number:016x}")))
    }

    /// Makes a directory with mode 0700 that was not there.
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
        Ok(Identity::of(&made?))
    }

    /// Opens a file of this user that nobody else may read or write, and that has no other
    /// name.
    pub fn open_private(&self, name: &OsStr, flags: OFlags) -> Result<File, String> {
        // Without NONBLOCK a planted FIFO would be waited for.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR);
        let file = opened.map_err(|errno| match errno {
            Errno::LOOP => "it is a link".to_owned(),
            errno => io::Error::from(errno).to_string(),
        })?;
        let stat = fstat(&file).map_err(|errno| io::Error::from(errno).to_string())?;
        let why = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            "it is not a regular file".to_owned()
        } else if stat.st_uid != geteuid().as_raw() {
            format!("it belongs to {}", user_name(stat.st_uid))
        } else if stat.st_mode & 0o077 != 0 {
            format!("others may use it (mode {:04o})", stat.st_mode & 0o7777)
        } else if stat.st_nlink > 1 {
            "it has another name".to_owned()
        } else {
            return Ok(file.into());
        };
        Err(why)
    }

    /// Names of what lies in it, in their order.
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

/// A lock that is a file: it is removed with this value, and counts for nothing without its
/// holder.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    _file: File,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody holds it yet. If that fails, it is
        // locked again by the next caller.
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
            // Its last holder removed it after it was opened here.
            if identity(&path).is_some_and(|(found, _)| found == Identity::of(&stat)) {
                return Ok(Some(LockFile { path, _file: file }));
            }
        }
    }
}

/// Identity of what lies at a path, without following a link at its end.
pub fn identity(path: &Path) -> Option<(Identity, Stat)> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((Identity::of(&stat), stat))
}

/// Whether a path is absolute and leads nowhere by `..`.
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
