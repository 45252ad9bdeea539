//! What a [`Source`] is asked, in the protocol's requests.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::address::Address;
use super::change;
use super::diagnosis::{Asked, decode_space, diagnose};
use super::link::{Connect, Link};
use super::names::Names;
use super::options::Options;
use super::packet::{extension, kind, open, status};
use super::path::{Root, parent};
use super::requests::Failure;
use super::session::Session;
use super::ssh;
use super::stat::Stat;
use crate::source::{
    Attributes, Creation, Error, Found, Kind, Listing, OpenFlags, Owner, RenameFlags, Result,
    SetAttributes, Source, StatVfs,
};

/// A directory of another host.
pub struct Sftp {
    pub(super) shared: Arc<Shared>,
    name: String,
    /// Whether the server may still be asked to give files away: it is not
    /// asked again once it has refused.
    pub(super) gives_away: AtomicBool,
}

/// What a source and its open files need.
pub(super) struct Shared {
    pub link: Link,
    pub root: Root,
    pub names: Names,
}

impl Sftp {
    /// Connects to a host and looks for the directory there.
    ///
    /// # Errors
    /// In words, why that cannot be.
    pub fn connect(address: &Address, options: &Options) -> std::result::Result<Self, String> {
        let again = (address.clone(), options.clone());
        let connect = move |is_interactive| ssh::start(&again.0, &again.1, is_interactive);
        Self::over(Box::new(connect), address, options)
    }

    /// The same by another way to the server than `ssh`.
    ///
    /// # Errors
    /// Likewise.
    pub fn over(
        connect: Connect,
        address: &Address,
        options: &Options,
    ) -> std::result::Result<Self, String> {
        let link = Link::new(connect, &address.host, options)?;
        let name = address.to_string();
        let root = link
            .session()
            .map_err(|why| why.to_string())
            .and_then(|session| find_root(&session, &address.directory))
            .map_err(|why| format!("cannot use {name}: {why}; name a directory"))?;
        let shared = Shared {
            link,
            root,
            names: Names::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            name,
            gives_away: AtomicBool::new(true),
        })
    }

    /// Asks for one thing about a path that is done or refused.
    fn run(&self, asked: Asked, kind: u8, remote: &[u8]) -> Result<()> {
        let session = self.shared.link.session()?;
        let done = session.batch().run(kind, &[remote]);
        done.map_err(|failure| diagnose(&session, asked, &[remote], failure))
    }

    /// Changes attributes of a path, not following a symbolic link.
    pub(super) fn change(
        &self,
        session: &Arc<Session>,
        remote: &[u8],
        changes: &SetAttributes,
    ) -> std::result::Result<(), Failure> {
        let mut batch = session.batch();
        let knows_links = session.has(extension::LSETSTAT);
        let resizes = changes.size_bytes.is_some();
        let now = match change::needs_present(changes) || resizes || !knows_links {
            false => Stat::default(),
            true => batch.look_up(kind::LSTAT, remote)?,
        };
        if now.kind() == Some(Kind::Symlink) && (resizes || !knows_links) {
            // Of the request that there is, the server would follow the link.
            return Err(Failure::Refused(status::OP_UNSUPPORTED));
        }
        for step in change::steps(changes, &now) {
            // A length is refused by lsetstat.
            let tag = match knows_links && step.size_bytes.is_none() {
                true => {
                    let strings = [extension::LSETSTAT, remote];
                    step.request(&mut batch, kind::EXTENDED, &strings)?
                }
                false => step.request(&mut batch, kind::SETSTAT, &[remote])?,
            };
            batch.status(tag)?;
        }
        Ok(())
    }

    /// Gives a new file its owner, if the server is somebody who can.
    pub(super) fn give(
        &self,
        session: &Arc<Session>,
        remote: &[u8],
        owner: Option<Owner>,
    ) -> Result<()> {
        let Some(owner) = owner.filter(|_| self.gives_away.load(Ordering::Relaxed)) else {
            return Ok(());
        };
        let changes = SetAttributes {
            uid: Some(owner.uid),
            gid: Some(owner.gid),
            ..SetAttributes::default()
        };
        match self.change(session, remote, &changes) {
            Err(Failure::Refused(_)) => {
                self.gives_away.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(Failure::Lost) => Err(Error::Lost),
            Ok(()) => Ok(()),
        }
    }
}

/// Where a directory lies, without symbolic links.
fn find_root(session: &Arc<Session>, directory: &str) -> std::result::Result<Root, String> {
    let given = match directory {
        "" => ".",
        directory => directory,
    };
    let mut batch = session.batch();
    let mut ask = || {
        let path = batch.ask(kind::REALPATH, &[given.as_bytes()])?;
        let stat = batch.ask(kind::STAT, &[given.as_bytes()])?;
        // A server may name a path that is not there.
        let stat = batch.stat(stat)?;
        Ok((batch.name(path)?, stat))
    };
    let (path, stat) = ask().map_err(|failure: Failure| match failure {
        Failure::Lost => session.why_it_ended(),
        refused => refused.plain().to_string(),
    })?;
    if stat.kind() != Some(Kind::Directory) {
        return Err("it is no directory".to_owned());
    }
    Root::new(&path).ok_or_else(|| "the server does not tell where it lies".to_owned())
}

impl Source for Sftp {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn time_granularity_ns(&self) -> u32 {
        1_000_000_000
    }

    fn attributes(&self, path: &Path) -> Result<Attributes> {
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(path);
        let found = session.batch().look_up(kind::LSTAT, &remote);
        let stat = found.map_err(|failure| match failure {
            // What lies below a file is as missing as anything; which of the
            // two it is would take another round trip for each new name.
            failure if failure.is(status::NO_SUCH_FILE) => Error::Errno(libc::ENOENT),
            failure => diagnose(&session, Asked::Other, &[&remote], failure),
        })?;
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        self.shared.names.complete(path, &mut attributes);
        Ok(attributes)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list(&self, path: &Path, next: &[&Path], names_max: usize) -> Result<Listing> {
        super::directory::list(self, path, next, names_max)
    }

    fn read_link(&self, path: &Path) -> Result<OsString> {
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(path);
        let mut batch = session.batch();
        let asked = batch.ask(kind::READLINK, &[&remote]);
        let target = asked.and_then(|tag| batch.name(tag));
        let target =
            target.map_err(|failure| diagnose(&session, Asked::ReadLink, &[&remote], failure))?;
        // A target with a zero byte, or none at all, can be on no disk.
        match target.is_empty() || target.contains(&0) {
            true => Err(Error::Errno(libc::EIO)),
            false => Ok(OsString::from_vec(target)),
        }
    }

    fn open(&self, path: &Path, flags: OpenFlags) -> Result<Found> {
        super::opening::open(self, path, flags)
    }

    fn make_directory(&self, path: &Path, creation: &Creation) -> Result<()> {
        super::directory::make(self, path, creation)
    }

    fn make_node(
        &self,
        path: &Path,
        kind: Kind,
        _device_number: u64,
        creation: &Creation,
    ) -> Result<()> {
        if kind != Kind::File {
            return Err(Error::Errno(libc::EPERM));
        }
        let flags = OpenFlags {
            create: Some(*creation),
            exclusive: true,
            ..OpenFlags::WRITE
        };
        self.open(path, flags).map(drop)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let remote = self.shared.root.join(path);
        self.run(Asked::RemoveDirectory, kind::RMDIR, &remote)
    }

    fn unlink(&self, path: &Path) -> Result<Option<Attributes>> {
        let remote = self.shared.root.join(path);
        let session = self.shared.link.session()?;
        let mut batch = session.batch();
        let mut ask = || {
            let removed = batch.ask(kind::REMOVE, &[&remote])?;
            let seen = batch.ask(kind::LSTAT, &[parent(&remote)])?;
            batch.status(removed)?;
            Ok(batch.stat(seen).ok())
        };
        let done = ask().map_err(|failure| diagnose(&session, Asked::Unlink, &[&remote], failure));
        // Without an answer the name may be gone.
        if matches!(done, Ok(_) | Err(Error::Lost)) {
            self.shared.names.unlinked(path);
        }
        done.map(|seen| seen.and_then(|stat| stat.attributes()))
    }

    fn symlink(&self, target: &OsStr, path: &Path, owner: Option<Owner>) -> Result<()> {
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(path);
        // OpenSSH has the two the other way round than the draft (PROTOCOL,
        // section 3.1), and other servers follow it.
        let made = session
            .batch()
            .run(kind::SYMLINK, &[target.as_bytes(), &remote]);
        made.map_err(|failure| diagnose(&session, Asked::Make, &[&remote], failure))?;
        self.give(&session, &remote, owner)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()> {
        let session = self.shared.link.session()?;
        if !session.has(extension::HARDLINK) {
            return Err(Error::Errno(libc::EPERM));
        }
        let root = &self.shared.root;
        let (from, to) = (root.join(existing), root.join(new));
        let strings = [extension::HARDLINK, &from[..], &to];
        let made = session.batch().run(kind::EXTENDED, &strings);
        made.map_err(|failure| diagnose(&session, Asked::Link, &[&to, &from], failure))?;
        self.shared.names.linked(existing, new);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
        let done = super::directory::rename(self, from, to, flags);
        match done {
            Ok(()) => self.shared.names.renamed(from, to),
            // Either name may lead to either file.
            Err(Error::Lost) => {
                for path in [from, to] {
                    self.shared.names.unlinked(path);
                }
            }
            Err(_) => {}
        }
        done
    }

    fn set_attributes(&self, path: &Path, changes: &SetAttributes) -> Result<()> {
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(path);
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.shared.names.given_times(path);
        }
        let done = self.change(&session, &remote, changes);
        done.map_err(|failure| {
            let resizes = changes.size_bytes.is_some();
            diagnose(
                &session,
                Asked::SetAttributes { resizes },
                &[&remote],
                failure,
            )
        })
    }

    fn space(&self) -> Result<StatVfs> {
        let session = self.shared.link.session()?;
        if !session.has(extension::STATVFS) {
            return Err(Error::Errno(libc::ENOSYS));
        }
        let remote = self.shared.root.join(Path::new(""));
        let mut batch = session.batch();
        let asked = batch.ask(kind::EXTENDED, &[extension::STATVFS, &remote]);
        let read = asked.and_then(|tag| batch.extended_reply(tag, decode_space));
        read.map_err(|failure| diagnose(&session, Asked::Other, &[&remote], failure))
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let session = self.shared.link.session()?;
        if !session.has(extension::FSYNC) {
            return Ok(());
        }
        let remote = self.shared.root.join(path);
        let mut batch = session.batch();
        // OpenSSH's server opens a directory like a file for reading, and
        // fsync takes handles of files only. Others refuse: they cannot.
        let opened = batch.request(kind::OPEN, |packet| {
            packet.string(&remote).u32(open::READ);
            Stat::default().encode(packet);
        });
        let handle = match opened.and_then(|tag| batch.handle(tag)) {
            Err(Failure::Refused(_)) => return Ok(()),
            Err(Failure::Lost) => return Err(Error::Lost),
            Ok(handle) => handle,
        };
        let synced = batch.run(kind::EXTENDED, &[extension::FSYNC, &handle.0]);
        session.close(&handle);
        synced.map_err(Failure::plain)
    }
}
