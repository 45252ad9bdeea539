//! Implements [`Source`] by the protocol's requests.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::Address;
use super::change::{self, Target};
use super::diagnosis::{Operation, decode_space};
use super::directory;
use super::failure::Failure;
use super::link::{Connect, Link};
use super::names::Names;
use super::opening;
use super::options::Options;
use super::packet::{PATH_BYTES_MAX, extension, is_too_long, kind, open, parent, status};
use super::requests::RequestBatch;
use super::server_clock::{NEW_FILE, ServerClock};
use super::shared::Shared;
use super::ssh;
use super::stat::Stat;
use crate::source::{
    Attributes, Creation, Error, Identity, Kind, Listing, New, OpenFlags, OpenReply, Owner,
    RenameFlags, Result, SetAttributes, Source, StatVfs, Timespec,
};

pub struct Sftp {
    shared: Arc<Shared>,
    name: String,
    user: Option<Owner>,
}

/// Directory of the server's own process. Its owner is always the user and group
/// that the server runs as (`task_dump_owner` in fs/proc/base.c).
const OWN_PROCESS: &[u8] = b"/proc/self";

/// Facts that are found out when a source connects.
struct Found {
    root: PathBuf,
    user: Option<Owner>,
}

impl Sftp {
    /// Connects to a host and finds the directory there. The error is text for the
    /// user.
    pub fn connect(address: &Address, options: &Options) -> Result<Self, String> {
        let again = (address.clone(), options.clone());
        let connect = move |is_interactive| ssh::start(&again.0, &again.1, is_interactive);
        Self::over(Box::new(connect), address, options)
    }

    /// Connects by `connect` instead of `ssh`, and finds the directory there. The error
    /// is text for the user.
    pub fn over(connect: Connect, address: &Address, options: &Options) -> Result<Self, String> {
        let link = Link::new(connect, &address.host, options)?;
        let name = address.to_string();
        let clock = ServerClock::default();
        let found = find_root(&link, &clock, &address.directory)
            .map_err(|why| format!("cannot use {name}: {why}; give an existing directory"))?;
        let shared = Shared {
            link,
            root: found.root,
            names: Names::default(),
            clock,
        };
        Ok(Self {
            shared: Arc::new(shared),
            name,
            user: found.user,
        })
    }
}

fn find_root(link: &Link, clock: &ServerClock, directory: &str) -> Result<Found, String> {
    let given = match directory {
        "" => ".",
        directory => directory,
    };
    let session = link.session().map_err(|why| why.to_string())?;
    let mut batch = session.batch();
    let mut ask = || {
        let path = batch.ask(kind::REALPATH, &[given.as_bytes()])?;
        let stat = batch.ask(kind::STAT, &[given.as_bytes()])?;
        let new = batch.ask(kind::LSTAT, &[NEW_FILE])?;
        let process = batch.ask(kind::STAT, &[OWN_PROCESS])?;
        let home = batch.ask(kind::STAT, &[b"."])?;
        // A server may return a path that does not exist.
        let stat = batch.stat(stat)?;
        let path = batch.name(path)?;
        if let Some(made_s) = batch.stat(new).ok().and_then(|new| new.modified()) {
            clock.observe(made_s);
        }
        let owner = |reply| batch.stat(reply).ok()?.owner;
        let [process, home] = [process, home].map(owner);
        Ok((path, stat, user(process, home)))
    };
    let (path, stat, user) = ask().map_err(|failure: Failure| match failure {
        Failure::Lost => session.why_it_ended(),
        refused => refused.plain().to_string(),
    })?;
    if stat.kind() != Some(Kind::Directory) {
        return Err("it is not a directory".to_owned());
    }
    if path.starts_with(b"/") && !path.contains(&0) && !is_too_long(&path) {
        Ok(Found {
            root: OsString::from_vec(path).into(),
            user,
        })
    } else {
        Err("the server does not return a valid absolute path".to_owned())
    }
}

/// Returns the user that a server runs as: the owner of its process, or else the owner
/// of the directory in which it begins, most likely the user's home directory. A
/// directory of root does not count, because it may be any directory, as in a chroot.
fn user(process: Option<(u32, u32)>, home: Option<(u32, u32)>) -> Option<Owner> {
    let (uid, gid) = process.or(home.filter(|(uid, _)| *uid != 0))?;
    Some(Owner { uid, gid })
}

impl Source for Sftp {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn attributes(&self, path: &Path) -> Result<Attributes> {
        let look = |batch: &mut RequestBatch, [remote]: [&[u8]; 1]| {
            let found = batch.look_up(kind::LSTAT, remote);
            found.map_err(|failure| match failure {
                // Anything below a file is missing as well. Finding out which case
                // it is would take another round trip for each new name.
                Failure::Refused(status::NO_SUCH_FILE) => Failure::Errno(libc::ENOENT),
                failure => failure,
            })
        };
        let stat = self.shared.ask(Operation::Other, [path], look)?;
        self.shared.names.complete(Some(path), &stat)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn user(&self) -> Option<Owner> {
        self.user
    }

    fn is_settled(&self, changed: Timespec) -> bool {
        self.shared.clock.is_past(changed)
    }

    fn list(&self, path: &Path, next: &[&Path], names_max: usize) -> Result<Listing> {
        directory::list(&self.shared, path, next, names_max)
    }

    fn read_link(&self, path: &Path) -> Result<OsString> {
        let read = |batch: &mut RequestBatch, [remote]: [&[u8]; 1]| {
            let asked = batch.ask(kind::READLINK, &[remote])?;
            batch.name(asked)
        };
        let target = self.shared.ask(Operation::ReadLink, [path], read)?;
        // No disk holds a target that is empty or has a zero byte, and the kernel
        // accepts none that is longer than a path.
        if target.is_empty() || target.contains(&0) || target.len() > PATH_BYTES_MAX {
            Err(Error::Errno(libc::EIO))
        } else {
            Ok(OsString::from_vec(target))
        }
    }

    fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenReply> {
        opening::open(&self.shared, path, flags)
    }

    fn make(&self, path: &Path, new: New<'_>, creation: &Creation) -> Result<()> {
        let make = |batch: &mut RequestBatch, [remote]: [&[u8]; 1]| match new {
            New::Directory => opening::make_directory(batch, remote, creation),
            // OpenSSH swaps the two compared to the draft (PROTOCOL, section 3.1),
            // and other servers follow it.
            New::Symlink(target) => batch.run(kind::SYMLINK, &[target.as_bytes(), remote]),
            New::Node(..) => Err(Failure::Errno(libc::EPERM)),
        };
        self.shared.ask(Operation::Make, [path], make)
    }

    fn remove(&self, path: &Path, is_directory: bool) -> Result<Option<Attributes>> {
        let (operation, kind) = if is_directory {
            (Operation::RemoveDirectory, kind::RMDIR)
        } else {
            (Operation::Unlink, kind::REMOVE)
        };
        let done = self.shared.ask(operation, [path], |batch, [remote]| {
            let removed = batch.ask(kind, &[remote])?;
            let seen = batch.ask(kind::LSTAT, &[parent(remote)])?;
            batch.status(removed)?;
            Ok(batch.stat(seen).ok())
        });
        // Without a reply, the name may be gone.
        if matches!(done, Ok(_) | Err(Error::Lost)) {
            self.shared.names.unlinked(path);
        }
        done.map(|seen| seen.and_then(|stat| stat.attributes()))
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()> {
        let paths = [new, existing];
        self.shared
            .ask(Operation::Link, paths, |batch, [to, from]| {
                if !batch.session.has(extension::HARDLINK) {
                    return Err(Failure::Errno(libc::EPERM));
                }
                batch.run(kind::EXTENDED, &[extension::HARDLINK, from, to])
            })?;
        self.shared.names.linked(existing, new);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
        let paths = [to, from];
        let done = self
            .shared
            .ask(Operation::Rename, paths, |batch, [to, from]| {
                directory::rename(batch, from, to, flags)
            });
        match done {
            Ok(()) => self.shared.names.renamed(from, to),
            // The server may have renamed the file before the connection was lost, so
            // either name may lead to it.
            Err(Error::Lost) => {
                self.shared.names.unlinked(from);
                self.shared.names.unlinked(to);
            }
            Err(_) => {}
        }
        done
    }

    fn set_attributes(
        &self,
        path: &Path,
        _expected: Option<Identity>,
        changes: &SetAttributes,
    ) -> Result<()> {
        self.shared
            .ask(change::operation(changes), [path], |batch, [remote]| {
                change::make(batch, Target::Path(remote), changes)
            })
    }

    fn space(&self) -> Result<StatVfs> {
        let root = Path::new("");
        self.shared
            .ask(Operation::Other, [root], |batch, [remote]| {
                if !batch.session.has(extension::STATVFS) {
                    return Err(Failure::Errno(libc::ENOSYS));
                }
                let asked = batch.ask(kind::EXTENDED, &[extension::STATVFS, remote])?;
                batch.read_answer(asked, kind::EXTENDED_REPLY, decode_space)
            })
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.shared
            .ask(Operation::Other, [path], |batch, [remote]| {
                if !batch.session.has(extension::FSYNC) {
                    return Ok(());
                }
                // OpenSSH's server opens a directory like a file for reading, and
                // fsync accepts only handles of files. Other servers refuse,
                // because they cannot do this.
                let opened = batch.open(remote, open::READ, &Stat::default())?;
                let handle = match batch.handle(opened) {
                    Err(Failure::Refused(_)) => return Ok(()),
                    handle => handle?,
                };
                let synced = batch.run(kind::EXTENDED, &[extension::FSYNC, &handle.id]);
                synced.map_err(|failure| failure.plain().into())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_the_owner_of_the_process_or_else_of_a_home_directory() {
        let owner = |uid, gid| Some(Owner { uid, gid });
        assert_eq!(user(Some((7, 8)), Some((1, 2))), owner(7, 8));
        assert_eq!(user(Some((0, 0)), None), owner(0, 0));
        assert_eq!(user(None, Some((1, 2))), owner(1, 2));
        assert_eq!(user(None, Some((0, 0))), None);
        assert_eq!(user(None, None), None);
    }
}
