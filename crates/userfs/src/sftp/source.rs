//! What a [`Source`] is asked, in the protocol's requests.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::address::Address;
use super::change;
use super::diagnosis::{Asked, FileSystem, diagnose, statvfs};
use super::exchange::{Exchange, Tag};
use super::handle::Belonging;
use super::hard_links::HardLinks;
use super::link::Link;
use super::opened::OpenFiles;
use super::options::Options;
use super::packet::{kind, open, status};
use super::path::{Root, parent};
use super::session::Session;
use super::ssh;
use super::stat::Stat;
use super::status::Failure;
use crate::source::{
    Attributes, Creation, Entry, Error, Found, Handle, Kind, Listings, OpenFlags, Owner,
    RenameFlags, Result, SetAttributes, Source, Space,
};

/// A directory of another host.
pub struct Sftp {
    pub(super) link: Arc<Link>,
    pub(super) root: Root,
    pub(super) files: Arc<OpenFiles>,
    pub(super) links: Arc<HardLinks>,
    name: String,
    /// Whether the server may still be asked to give files away: it is not
    /// asked again once it has refused.
    pub(super) gives_away: AtomicBool,
}

impl Sftp {
    /// Connects to a host and looks for the directory there.
    ///
    /// # Errors
    /// In words, why that cannot be.
    pub fn connect(address: &Address, options: &Options) -> std::result::Result<Self, String> {
        let first = ssh::connect(address, options, options.is_interactive)?;
        let again = (address.clone(), options.clone());
        let connect = move || ssh::connect(&again.0, &again.1, false);
        let notice = Arc::clone(&options.notice);
        let link = Link::new(
            first,
            Box::new(connect),
            options.reconnect_patience,
            Box::new(move |message| notice(message)),
        );
        Self::over(link, &address.directory, address.to_string())
    }

    /// The source behind a link.
    pub(super) fn over(
        link: Link,
        directory: &str,
        name: String,
    ) -> std::result::Result<Self, String> {
        let session = link
            .session()
            .map_err(|why| format!("cannot reach {name}: {why}"))?;
        let root = find_root(&session, directory)
            .map_err(|why| format!("cannot use {name}: {why}; name a directory"))?;
        drop(session);
        Ok(Self {
            link: Arc::new(link),
            root,
            files: Arc::default(),
            links: Arc::default(),
            name,
            gives_away: AtomicBool::new(true),
        })
    }

    pub(super) fn belonging(&self) -> Belonging {
        Belonging {
            link: Arc::clone(&self.link),
            root: self.root.clone(),
            files: Arc::clone(&self.files),
            links: Arc::clone(&self.links),
        }
    }

    /// Asks for one thing that is done or refused.
    fn ask(
        &self,
        asked: Asked<'_>,
        request: impl FnOnce(&mut Exchange<'_>) -> std::result::Result<Tag, Failure>,
    ) -> Result<()> {
        let session = self.link.session()?;
        let mut exchange = session.exchange();
        let done = request(&mut exchange).and_then(|tag| exchange.status(tag));
        done.map_err(|failure| diagnose(&session, asked, failure))
    }

    /// Changes attributes of a path, not following a symbolic link.
    pub(super) fn change(
        &self,
        session: &Session,
        remote: &[u8],
        changes: &SetAttributes,
    ) -> std::result::Result<(), Failure> {
        let mut exchange = session.exchange();
        let knows_links = session.extensions.lsetstat;
        let is_looked_at =
            change::needs_present(changes) || changes.size_bytes.is_some() || !knows_links;
        let now = match is_looked_at {
            false => Stat::default(),
            true => {
                let tag = exchange.lstat(remote)?;
                exchange.stat(tag)?
            }
        };
        let is_link = now.kind() == Some(Kind::Symlink);
        if is_link && (changes.size_bytes.is_some() || !knows_links) {
            // Of the request that there is, the server would follow the link.
            return Err(Failure::Refused(super::packet::status::OP_UNSUPPORTED));
        }
        let steps = change::steps(changes, &now);
        change::send(&mut exchange, &steps, |exchange, step| {
            // A length is refused by lsetstat.
            match knows_links && step.size_bytes.is_none() {
                true => exchange.extended("lsetstat@openssh.com", |packet| {
                    packet.string(remote);
                    step.encode(packet);
                }),
                false => exchange.request(kind::SETSTAT, |packet| {
                    packet.string(remote);
                    step.encode(packet);
                }),
            }
        })
    }

    /// Gives a new file its owner, if the server is somebody who can.
    pub(super) fn give(
        &self,
        session: &Session,
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
fn find_root(session: &Session, directory: &str) -> std::result::Result<Root, String> {
    let given = match directory {
        "" => ".",
        directory => directory,
    };
    let mut exchange = session.exchange();
    let mut ask = || {
        let path = exchange.request(kind::REALPATH, |packet| {
            packet.string(given.as_bytes());
        })?;
        let stat = exchange.request(kind::STAT, |packet| {
            packet.string(given.as_bytes());
        })?;
        // A server may name a path that is not there.
        let stat = exchange.stat(stat)?;
        Ok((exchange.name(path)?, stat))
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
        let session = self.link.session()?;
        let remote = self.root.join(path);
        let mut exchange = session.exchange();
        let asked = exchange.lstat(&remote).and_then(|tag| exchange.stat(tag));
        let stat = asked.map_err(|failure| match failure {
            // What lies below a file is as missing as anything; which of the
            // two it is would take another round trip for each new name.
            failure if failure.is(status::NO_SUCH_FILE) => Error::Errno(libc::ENOENT),
            failure => diagnose(&session, Asked::Other(&remote), failure),
        })?;
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        self.links.complete(path, &mut attributes);
        Ok(attributes)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let all = super::directory::list(self, path, usize::MAX)?;
        Ok(all.expect("none are too many"))
    }

    fn list_ahead(&self, path: &Path, next: &[&Path]) -> Result<Listings> {
        super::directory::list_ahead(self, path, next)
    }

    fn peek(&self, path: &Path, names_max: usize) -> Result<Option<Vec<Entry>>> {
        super::directory::list(self, path, names_max)
    }

    fn read_link(&self, path: &Path) -> Result<OsString> {
        let session = self.link.session()?;
        let remote = self.root.join(path);
        let mut exchange = session.exchange();
        let asked = exchange.request(kind::READLINK, |packet| {
            packet.string(&remote);
        });
        let target = asked.and_then(|tag| exchange.name(tag));
        let target =
            target.map_err(|failure| diagnose(&session, Asked::ReadLink(&remote), failure))?;
        // A target with a zero byte, or none at all, can be on no disk.
        match target.is_empty() || target.contains(&0) {
            true => Err(Error::Errno(libc::EIO)),
            false => Ok(OsString::from_vec(target)),
        }
    }

    fn open(&self, path: &Path, flags: OpenFlags) -> Result<Box<dyn Handle>> {
        super::opening::open(self, path, flags).map(|(handle, _)| handle)
    }

    fn open_found(&self, path: &Path, flags: OpenFlags) -> Result<(Box<dyn Handle>, Attributes)> {
        let found = self.create(path, flags)?;
        Ok((found.handle, found.attributes))
    }

    fn create(&self, path: &Path, flags: OpenFlags) -> Result<Found> {
        let (handle, made) = super::opening::open(self, path, flags)?;
        let mut attributes = made.stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        self.links.complete(path, &mut attributes);
        Ok(Found {
            handle,
            attributes,
            directory: made.directory.and_then(|stat| stat.attributes()),
        })
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
        match kind {
            Kind::File => {
                let flags = OpenFlags {
                    create: Some(*creation),
                    exclusive: true,
                    ..OpenFlags::WRITE
                };
                self.open(path, flags).map(drop)
            }
            _ => Err(Error::Errno(libc::EPERM)),
        }
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let remote = self.root.join(path);
        self.ask(Asked::RemoveDirectory(&remote), |exchange| {
            exchange.request(kind::RMDIR, |packet| {
                packet.string(&remote);
            })
        })
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        self.unlink_found(path).map(drop)
    }

    fn unlink_found(&self, path: &Path) -> Result<Option<Attributes>> {
        let remote = self.root.join(path);
        let session = self.link.session()?;
        let mut exchange = session.exchange();
        let mut ask = || {
            let removed = exchange.request(kind::REMOVE, |packet| {
                packet.string(&remote);
            })?;
            let seen = exchange.lstat(parent(&remote))?;
            exchange.status(removed)?;
            Ok(exchange.stat(seen).ok())
        };
        let done = ask().map_err(|failure| diagnose(&session, Asked::Unlink(&remote), failure));
        // Without an answer the name may be gone.
        if matches!(done, Ok(_) | Err(Error::Lost)) {
            self.files.unlinked(path);
            self.links.unlinked(path);
        }
        done.map(|seen| seen.and_then(|stat| stat.attributes()))
    }

    fn symlink(&self, target: &OsStr, path: &Path, owner: Option<Owner>) -> Result<()> {
        let remote = self.root.join(path);
        self.ask(Asked::Make(&remote), |exchange| {
            // OpenSSH has the two the other way round than the draft
            // (PROTOCOL, section 3.1), and other servers follow it.
            exchange.request(kind::SYMLINK, |packet| {
                packet.string(target.as_bytes()).string(&remote);
            })
        })?;
        let session = self.link.session()?;
        self.give(&session, &remote, owner)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> Result<()> {
        let names = (existing, new);
        let (existing, new) = (self.root.join(existing), self.root.join(new));
        if !self.link.session()?.extensions.hardlink {
            return Err(Error::Errno(libc::EPERM));
        }
        let asked = Asked::Link {
            existing: &existing,
            new: &new,
        };
        self.ask(asked, |exchange| {
            exchange.extended("hardlink@openssh.com", |packet| {
                packet.string(&existing).string(&new);
            })
        })?;
        self.links.linked(names.0, names.1);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> Result<()> {
        let done = super::directory::rename(self, from, to, flags);
        match done {
            Ok(()) => {
                self.files.renamed(from, to);
                self.links.renamed(from, to);
            }
            // Either name may lead to either file.
            Err(Error::Lost) => {
                for path in [from, to] {
                    self.files.unlinked(path);
                    self.links.unlinked(path);
                }
            }
            Err(_) => {}
        }
        done
    }

    fn set_attributes(&self, path: &Path, changes: &SetAttributes) -> Result<()> {
        let session = self.link.session()?;
        let remote = self.root.join(path);
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.files.given_times(path);
        }
        let done = self.change(&session, &remote, changes);
        done.map_err(|failure| {
            let asked = Asked::SetAttributes {
                path: &remote,
                resizes: changes.size_bytes.is_some(),
            };
            diagnose(&session, asked, failure)
        })
    }

    fn space(&self) -> Result<Space> {
        let session = self.link.session()?;
        if !session.extensions.statvfs {
            return Err(Error::Errno(libc::ENOSYS));
        }
        let remote = self.root.join(Path::new(""));
        let mut exchange = session.exchange();
        let asked = statvfs(&mut exchange, &remote);
        let read = asked.and_then(|tag| exchange.extended_reply(tag, FileSystem::decode));
        let read = read.map_err(|failure| diagnose(&session, Asked::Other(&remote), failure))?;
        Ok(read.space)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let session = self.link.session()?;
        if !session.extensions.fsync {
            return Ok(());
        }
        let remote = self.root.join(path);
        let mut exchange = session.exchange();
        // OpenSSH's server opens a directory like a file for reading, and
        // fsync takes handles of files only. Others refuse: they cannot.
        let opened = exchange.request(kind::OPEN, |packet| {
            packet.string(&remote).u32(open::READ);
            Stat::default().encode(packet);
        });
        let handle = match opened.and_then(|tag| exchange.handle(tag)) {
            Err(Failure::Refused(_)) => return Ok(()),
            Err(Failure::Lost) => return Err(Error::Lost),
            Ok(handle) => handle,
        };
        let asked = exchange.extended("fsync@openssh.com", |packet| {
            packet.string(handle.bytes());
        });
        let synced = asked.and_then(|tag| {
            exchange.close(&handle)?;
            exchange.status(tag)
        });
        synced.map_err(Failure::plain)
    }
}
