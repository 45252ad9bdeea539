//! Whole files, in as few round trips as there can be.

use std::path::Path;
use std::sync::Arc;

use super::change;
use super::diagnosis::{Asked, diagnose};
use super::directory;
use super::exchange::{Exchange, HandleId, Tag};
use super::opening::open_and_look;
use super::packet::{kind, open};
use super::path::parent;
use super::session::Session;
use super::source::Sftp;
use super::stat::Stat;
use super::status::Failure;
use super::transfer::{self, Broken, Range, Writes};
use crate::source::{Attributes, Error, Kind, Replacement, Result, SetAttributes};

/// Reads a regular file in two round trips: opened and looked at, then read
/// and closed.
pub(super) fn fetch(
    source: &Sftp,
    path: &Path,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Attributes> {
    let session = source.link.session()?;
    let remote = source.root.join(path);
    let explain = |failure: Failure| {
        let asked = Asked::Open {
            path: &remote,
            writes: false,
            exclusive: false,
        };
        diagnose(&session, asked, failure)
    };
    let opened = open_and_look(&session, &remote, open::READ, &Stat::default());
    let (opened, stat) = opened.map_err(explain)?;
    let mut exchange = session.exchange();
    let attributes = match (stat.kind(), stat.attributes()) {
        (Some(Kind::File), Some(attributes)) => Ok(attributes),
        (Some(Kind::Directory), _) => Err(Error::Errno(libc::EISDIR)),
        (Some(Kind::Symlink), _) => Err(Error::Errno(libc::ELOOP)),
        _ => Err(Error::Errno(libc::EINVAL)),
    };
    let fetched = attributes.and_then(|attributes| {
        let part = Range {
            offset: 0,
            bytes: attributes.size_bytes,
        };
        let piece_bytes = session.limits.read_bytes;
        match transfer::read(&mut exchange, &opened.id, part, piece_bytes, take) {
            Ok(size_bytes) => Ok(Attributes {
                size_bytes,
                ..attributes
            }),
            Err(Broken::Local(error)) => Err(error),
            Err(Broken::Remote(failure)) => Err(explain(failure)),
        }
    });
    let closed = exchange.close(&opened.id).and_then(|()| exchange.send());
    closed.map_err(Failure::plain).and(fetched)
}

/// Replaces a regular file in three round trips: a temporary file is opened;
/// written, given its attributes and synced; closed and renamed. The name
/// changes only after all before is known to be done.
pub(super) fn replace(
    source: &Sftp,
    path: &Path,
    new: &Replacement<'_>,
    give: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
) -> Result<Attributes> {
    let session = source.link.session()?;
    let draft = Draft {
        session: &session,
        temporary: source.root.join(new.temporary),
        path: source.root.join(path),
        new,
    };
    let opened = draft.open()?;
    if let Err(error) = draft.fill(&opened, give) {
        draft.discard(&opened);
        return Err(error);
    }
    let published = draft.publish(&opened);
    if !matches!(published, Err(Error::Errno(_))) {
        // The name leads to another file than those that are open.
        source.files.unlinked(path);
        source.links.unlinked(path);
    }
    published
}

/// The temporary file, and the directory that it lies in if that is to be
/// synced.
struct Opened {
    file: HandleId,
    directory: Option<HandleId>,
}

/// A file that is going to replace another.
struct Draft<'a> {
    session: &'a Arc<Session>,
    temporary: Vec<u8>,
    path: Vec<u8>,
    new: &'a Replacement<'a>,
}

impl Draft<'_> {
    fn open(&self) -> Result<Opened> {
        let mut exchange = self.session.exchange();
        let mut ask = || {
            let stat = Stat {
                // Nobody else reads it before it has the permissions that it
                // is to have.
                permissions: Some(0o600),
                ..Stat::default()
            };
            let bits = open::WRITE | open::CREATE | open::EXCLUSIVE;
            let file = exchange.request(kind::OPEN, |packet| {
                packet.string(&self.temporary).u32(bits);
                stat.encode(packet);
            })?;
            let directory = match self.new.is_durable && self.session.extensions.fsync {
                false => None,
                true => Some(exchange.request(kind::OPEN, |packet| {
                    packet.string(parent(&self.path)).u32(open::READ);
                    Stat::default().encode(packet);
                })?),
            };
            let file = exchange.handle(file);
            // Only OpenSSH's server opens directories.
            let directory = directory.and_then(|tag| exchange.handle(tag).ok());
            match (file, directory) {
                (Ok(file), directory) => Ok(Opened { file, directory }),
                (Err(failure), None) => Err(failure),
                (Err(failure), Some(directory)) => {
                    exchange.close(&directory)?;
                    exchange.send()?;
                    Err(failure)
                }
            }
        };
        ask().map_err(|failure| {
            let asked = Asked::Open {
                path: &self.temporary,
                writes: true,
                exclusive: true,
            };
            diagnose(self.session, asked, failure)
        })
    }

    fn fill(
        &self,
        opened: &Opened,
        give: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut exchange = self.session.exchange();
        let filled = self.write(&mut exchange, &opened.file, give);
        let bytes = self.session.limits.write_bytes as u64;
        filled.map_err(|broken| match broken {
            Broken::Local(error) => error,
            Broken::Remote(failure) => {
                let asked = Asked::Write {
                    path: &self.temporary,
                    bytes: bytes.min(self.new.size_bytes),
                };
                diagnose(self.session, asked, failure)
            }
        })
    }

    /// Everything that must be done before the name changes, in one round
    /// trip as far as it fits the window.
    fn write(
        &self,
        exchange: &mut Exchange<'_>,
        file: &HandleId,
        give: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> std::result::Result<(), Broken> {
        let size_bytes = self.new.size_bytes;
        let piece_bytes = self.session.limits.write_bytes;
        let room = usize::try_from(size_bytes)
            .unwrap_or(usize::MAX)
            .min(piece_bytes);
        let mut buffer = vec![0; room];
        let mut writes = Writes::default();
        let mut at = 0;
        while at < size_bytes {
            let left = usize::try_from(size_bytes - at).unwrap_or(usize::MAX);
            let piece = &mut buffer[..left.min(room)];
            give(at, piece).map_err(Broken::Local)?;
            writes.send(exchange, file, at, piece)?;
            at += piece.len() as u64;
        }
        let attributes = self.ask_for_attributes(exchange, file)?;
        let synced = match self.session.extensions.fsync {
            false => None,
            true => Some(exchange.extended("fsync@openssh.com", |packet| {
                packet.string(file.bytes());
            })?),
        };
        writes.finish(exchange)?;
        for (tag, may_fail) in attributes {
            match exchange.status(tag) {
                // A server that cannot give files away keeps them.
                Err(Failure::Refused(_)) if may_fail => {}
                done => done?,
            }
        }
        synced.map_or(Ok(()), |tag| exchange.status(tag))?;
        Ok(())
    }

    /// Owner, permissions and times, each with whether it may be refused.
    fn ask_for_attributes(
        &self,
        exchange: &mut Exchange<'_>,
        file: &HandleId,
    ) -> std::result::Result<Vec<(Tag, bool)>, Failure> {
        const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
        let changes = SetAttributes {
            size_bytes: None,
            ..self.new.changes
        };
        let mut steps = change::steps(&changes, &Stat::default());
        let mut asked = Vec::new();
        let is_given = steps.first().is_some_and(|step| step.owner.is_some());
        let has_set_id = self.new.changes.mode.is_some_and(|mode| mode & SET_ID != 0);
        if is_given && has_set_id {
            // A file that cannot be given away must not act for another user
            // than was meant.
            let tag = ask_for(exchange, file, &steps.remove(0))?;
            match exchange.status(tag) {
                Err(Failure::Lost) => return Err(Failure::Lost),
                Err(Failure::Refused(_)) => {
                    for bits in steps
                        .iter_mut()
                        .filter_map(|step| step.permissions.as_mut())
                    {
                        *bits &= !SET_ID;
                    }
                }
                Ok(()) => {}
            }
        }
        for step in &steps {
            asked.push((ask_for(exchange, file, step)?, step.owner.is_some()));
        }
        Ok(asked)
    }

    fn publish(&self, opened: &Opened) -> Result<Attributes> {
        let asked = Asked::Rename {
            from: &self.temporary,
            to: &self.path,
        };
        let stat = self.rename(opened).map_err(|failure| {
            let error = diagnose(self.session, asked, failure);
            self.remove();
            error
        })?;
        stat.attributes().ok_or(Error::Errno(libc::EIO))
    }

    fn rename(&self, opened: &Opened) -> std::result::Result<Stat, Failure> {
        let mut exchange = self.session.exchange();
        exchange.close(&opened.file)?;
        if !self.session.extensions.posix_rename {
            exchange.send()?;
            directory::replace_in_steps(self.session, &self.temporary, &self.path)?;
            let tag = exchange.lstat(&self.path)?;
            return exchange.stat(tag);
        }
        let renamed = directory::posix_rename(&mut exchange, &self.temporary, &self.path)?;
        let synced = match &opened.directory {
            None => None,
            Some(directory) => {
                let tag = exchange.extended("fsync@openssh.com", |packet| {
                    packet.string(directory.bytes());
                })?;
                exchange.close(directory)?;
                Some(tag)
            }
        };
        let seen = exchange.lstat(&self.path)?;
        exchange.status(renamed)?;
        synced.map_or(Ok(()), |tag| exchange.status(tag))?;
        exchange.stat(seen)
    }

    /// Closes and removes what is there of it, if the server can still be
    /// reached.
    fn discard(&self, opened: &Opened) {
        let mut exchange = self.session.exchange();
        for handle in std::iter::once(&opened.file).chain(&opened.directory) {
            // What failed before is what is told.
            let _ = exchange.close(handle).and_then(|()| exchange.send());
        }
        drop(exchange);
        self.remove();
    }

    fn remove(&self) {
        let mut exchange = self.session.exchange();
        let asked = exchange.request(kind::REMOVE, |packet| {
            packet.string(&self.temporary);
        });
        // Likewise.
        let _ = asked.and_then(|tag| exchange.status(tag));
    }
}

fn ask_for(
    exchange: &mut Exchange<'_>,
    file: &HandleId,
    step: &Stat,
) -> std::result::Result<Tag, Failure> {
    exchange.request(kind::FSETSTAT, |packet| {
        packet.string(file.bytes());
        step.encode(packet);
    })
}
