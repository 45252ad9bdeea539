//! An open file of the server.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::change;
use super::diagnosis::{Asked, diagnose};
use super::exchange::HandleId;
use super::finish::Finish;
use super::hard_links::HardLinks;
use super::later::Later;
use super::link::Link;
use super::opened::{OpenFiles, Place};
use super::packet::{Encoder, kind, open};
use super::path::Root;
use super::session::{Content, Session};
use super::stat::Stat;
use super::status::Failure;
use super::transfer::{self, Broken, Range, Writes};
use crate::source::{Attributes, Error, Handle, Kind, Part, Result, SetAttributes};

/// A handle that a session of the server knows.
#[derive(Clone)]
pub(super) struct Opened {
    pub session: Arc<Session>,
    pub id: HandleId,
}

/// An open file, opened again by its path after a connection was lost, if it
/// is certain enough that this leads to the same file: it has not been
/// removed, replaced or renamed through this source under another name than
/// is known, it is a regular file, and if nothing was written through this
/// handle, then length and time are those of the first opening.
pub(super) struct SftpHandle {
    link: Arc<Link>,
    root: Root,
    files: Arc<OpenFiles>,
    links: Arc<HardLinks>,
    place: Arc<Place>,
    /// READ and WRITE alone: a file is neither made nor emptied again.
    flags: u32,
    opened: Mutex<Opened>,
    /// What the file was when it was opened.
    first: Stat,
    /// It was made by being opened.
    is_made: bool,
    /// Whether anything was ever changed through this handle.
    is_changed: AtomicBool,
    /// Whether anything was written since the last [`Handle::sync`].
    is_unsynced: AtomicBool,
    writes_begun: AtomicUsize,
    writes_ended: AtomicUsize,
    /// Whether unsynced content may have gone with an earlier session: a
    /// server that has started again has lost what was not on its device.
    is_in_doubt: AtomicBool,
    later: Later,
}

/// What a file was when it was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub stat: Stat,
    /// It was made by being opened.
    pub is_made: bool,
}

/// What a handle belongs to.
pub(super) struct Belonging {
    pub link: Arc<Link>,
    pub root: Root,
    pub files: Arc<OpenFiles>,
    pub links: Arc<HardLinks>,
}

impl SftpHandle {
    pub fn new(of: Belonging, path: &Path, opened: Opened, flags: u32, found: Seen) -> Self {
        Self {
            place: of.files.add(path),
            link: of.link,
            root: of.root,
            files: of.files,
            links: of.links,
            flags: flags & (open::READ | open::WRITE),
            opened: Mutex::new(opened),
            first: found.stat,
            is_made: found.is_made,
            is_changed: AtomicBool::new(false),
            is_unsynced: AtomicBool::new(false),
            writes_begun: AtomicUsize::new(0),
            writes_ended: AtomicUsize::new(0),
            is_in_doubt: AtomicBool::new(false),
            later: Later::default(),
        }
    }

    /// The file in a session that is alive.
    fn opened(&self) -> Result<Opened> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if !opened.session.is_alive() {
            // Others wait for the same file, and for no other.
            if self.is_unsynced.swap(false, Ordering::Relaxed) {
                self.is_in_doubt.store(true, Ordering::Relaxed);
            }
            *opened = self.open_again()?;
        }
        Ok(opened.clone())
    }

    fn open_again(&self) -> Result<Opened> {
        let path = self.place.path().ok_or(Error::Lost)?;
        let session = self.link.session()?;
        let remote = self.root.join(&path);
        let mut exchange = session.exchange();
        let asked = exchange.lstat(&remote).and_then(|stat| {
            let opened = exchange.request(kind::OPEN, |packet| {
                packet.string(&remote).u32(self.flags);
                Stat::default().encode(packet);
            })?;
            Ok((exchange.handle(opened)?, exchange.stat(stat)?))
        });
        // A file that is gone, or may not be opened any more, is not the
        // file that was open.
        let (id, now) = asked.map_err(|_| Error::Lost)?;
        let modified = |stat: &Stat| stat.times.map(|(_, modified)| modified);
        let is_same =
            now.size_bytes == self.first.size_bytes && modified(&now) == modified(&self.first);
        if now.kind() != Some(Kind::File) || !(is_same || self.is_changed.load(Ordering::Relaxed)) {
            let _ = exchange.close(&id).and_then(|()| exchange.send());
            return Err(Error::Lost);
        }
        drop(exchange);
        Ok(Opened { session, id })
    }

    /// The server's path, for asking why something was refused.
    fn remote(&self) -> Vec<u8> {
        self.root.join(&self.place.path().unwrap_or_default())
    }

    fn asked_to_write<T>(
        &self,
        opened: &Opened,
        bytes: usize,
        done: std::result::Result<T, Failure>,
    ) -> Result<T> {
        done.map_err(|failure| self.why_not_written(opened, bytes, failure))
    }

    /// Sends what `content` gives of each piece's offset and length, as soon as
    /// it has room among what is under way.
    fn send_later<'c>(
        &self,
        offset: u64,
        bytes: usize,
        content: &dyn Fn(u64, usize) -> Content<'c>,
    ) -> Result<()> {
        let opened = self.opened()?;
        let explain = |to: &Opened, bytes, failure| self.why_not_written(to, bytes, failure);
        let mut later = self.later.lock();
        later.look(&opened, &explain);
        later.told()?;
        self.mark_changed();
        // For whoever synchronises, it is done as soon as it is sent.
        self.writes_begun.fetch_add(1, Ordering::SeqCst);
        let piece_bytes = opened.session.limits.write_bytes;
        let mut pieces = (0..bytes).step_by(piece_bytes);
        let sent = pieces.try_for_each(|start| {
            let (at, length) = (offset + start as u64, piece_bytes.min(bytes - start));
            later.send(&opened, at, content(at, length), &explain)
        });
        self.writes_ended.fetch_add(1, Ordering::SeqCst);
        sent
    }

    /// What is known, or with `waits` what became, of all that was sent and not
    /// waited for.
    fn sent_before(&self, opened: &Opened, waits: bool) -> Result<()> {
        let explain = |to: &Opened, bytes, failure| self.why_not_written(to, bytes, failure);
        let mut later = self.later.lock();
        match waits {
            true => later.wait_for_all(&explain),
            false => later.look(opened, &explain),
        }
        later.told()
    }

    fn why_not_written(&self, opened: &Opened, bytes: usize, failure: Failure) -> Error {
        let asked = Asked::Write {
            path: &self.remote(),
            bytes: bytes as u64,
        };
        diagnose(&opened.session, asked, failure)
    }

    /// What the server tells, with what is known of names here.
    fn completed(&self, stat: &Stat) -> Result<Attributes> {
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        if let Some(path) = self.place.path() {
            self.links.complete(&path, &mut attributes);
        }
        Ok(attributes)
    }

    /// How many writes were begun, and how many are under way.
    fn writes(&self) -> (usize, usize) {
        let ended = self.writes_ended.load(Ordering::SeqCst);
        let begun = self.writes_begun.load(Ordering::SeqCst);
        (begun, begun - ended)
    }

    fn mark_changed(&self) {
        self.is_changed.store(true, Ordering::Relaxed);
        self.is_unsynced.store(true, Ordering::Relaxed);
    }
}

/// What no file can hold.
fn refuse_too_far(bytes: &[u8], offset: u64) -> Result<()> {
    let end = offset.checked_add(bytes.len() as u64);
    match end.is_some_and(|end| i64::try_from(end).is_ok()) {
        true => Ok(()),
        false => Err(Error::Errno(libc::EFBIG)),
    }
}

impl Drop for SftpHandle {
    fn drop(&mut self) {
        self.files.remove(&self.place);
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.session.is_alive() {
            let mut exchange = opened.session.exchange();
            // A session that ends closes all its files.
            let _ = exchange.close(&opened.id);
            exchange.send_later();
        }
    }
}

impl Handle for SftpHandle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let part = Range {
            offset,
            bytes: (buffer.len() as u64).min(u64::MAX - offset),
        };
        let opened = self.opened()?;
        let mut exchange = opened.session.exchange();
        let piece_bytes = opened.session.limits.read_bytes;
        let mut take = |at: u64, bytes: &[u8]| {
            let at = usize::try_from(at).expect("it lies in the buffer");
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        };
        let read = transfer::read(&mut exchange, &opened.id, part, piece_bytes, &mut take);
        match read {
            Ok(bytes) => Ok(usize::try_from(bytes).expect("it fits the buffer")),
            Err(Broken::Local(error)) => Err(error),
            Err(Broken::Remote(failure)) => Err(diagnose(
                &opened.session,
                Asked::Other(&self.remote()),
                failure,
            )),
        }
    }

    fn write_later(&self, bytes: &[u8], offset: u64) -> Result<()> {
        refuse_too_far(bytes, offset)?;
        self.send_later(offset, bytes.len(), &|at, length| {
            let start = usize::try_from(at - offset).expect("it lies in the bytes");
            Content::Bytes(&bytes[start..start + length])
        })
    }

    fn write_part_later(&self, part: &Part<'_>) -> Result<()> {
        let bytes = usize::try_from(part.range.end - part.range.start).unwrap_or(usize::MAX);
        self.send_later(part.range.start, bytes, &|at, length| {
            Content::File(part.file, at, length)
        })
    }

    fn sync_later(&self) -> Result<()> {
        let opened = self.opened()?;
        let explain = |to: &Opened, bytes, failure| self.why_not_written(to, bytes, failure);
        let mut later = self.later.lock();
        later.look(&opened, &explain);
        later.told()?;
        match opened.session.extensions.fsync {
            true => later.sync(&opened),
            false => Ok(()),
        }
    }

    fn flush(&self) -> Result<()> {
        let explain = |to: &Opened, bytes, failure| self.why_not_written(to, bytes, failure);
        let mut later = self.later.lock();
        later.wait_for_all(&explain);
        later.failed()
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        refuse_too_far(bytes, offset)?;
        let opened = self.opened()?;
        self.mark_changed();
        let mut exchange = opened.session.exchange();
        let mut writes = Writes::default();
        let pieces = bytes.chunks(opened.session.limits.write_bytes);
        let mut at = offset;
        let write = || {
            for piece in pieces {
                writes.send(&mut exchange, &opened.id, at, piece)?;
                at += piece.len() as u64;
            }
            writes.finish(&mut exchange)
        };
        self.writes_begun.fetch_add(1, Ordering::SeqCst);
        let done = write();
        self.writes_ended.fetch_add(1, Ordering::SeqCst);
        self.asked_to_write(
            &opened,
            bytes.len().min(opened.session.limits.write_bytes),
            done,
        )
    }

    fn truncate(&self, size_bytes: u64) -> Result<()> {
        self.set_attributes(&SetAttributes {
            size_bytes: Some(size_bytes),
            ..SetAttributes::default()
        })
    }

    fn sync(&self) -> Result<()> {
        let opened = self.opened()?;
        let explain = |to: &Opened, bytes, failure| self.why_not_written(to, bytes, failure);
        // What is sent later is for the next one.
        let mut later = self.later.lock();
        let (written, writers) = self.writes();
        let mut exchange = opened.session.exchange();
        let can = opened.session.extensions.fsync;
        let asked = can.then(|| {
            let tag = exchange.extended("fsync@openssh.com", |packet| {
                packet.string(opened.id.bytes());
            })?;
            exchange.send().map(|()| tag)
        });
        later.wait_for_all(&explain);
        let written_before = later.told();
        drop(later);
        if self.is_in_doubt.swap(false, Ordering::Relaxed) {
            return Err(Error::Lost);
        }
        written_before?;
        let Some(asked) = asked else {
            return Ok(());
        };
        let done = asked.and_then(|tag| exchange.status(tag));
        // What others have written meanwhile may have come after it.
        if done.is_ok() && writers == 0 && self.writes() == (written, 0) {
            self.is_unsynced.store(false, Ordering::Relaxed);
        }
        self.asked_to_write(&opened, 1, done)
    }

    fn finish(
        &self,
        bytes: &[u8],
        offset: u64,
        changes: &SetAttributes,
        is_sync: bool,
    ) -> Result<Attributes> {
        let opened = self.opened()?;
        if is_sync && self.is_in_doubt.swap(false, Ordering::Relaxed) {
            return Err(Error::Lost);
        }
        self.is_changed.store(true, Ordering::Relaxed);
        // What others write from here on is not synchronised by this.
        let syncs = is_sync && opened.session.extensions.fsync;
        self.is_unsynced.store(!syncs, Ordering::Relaxed);
        let finish = Finish {
            bytes,
            offset,
            changes,
            is_sync,
            made: Some(self.first).filter(|_| self.is_made && !self.place.has_given_times()),
        };
        self.sent_before(&opened, false)?;
        let done = finish.run(&opened);
        let sent = self.sent_before(&opened, true);
        if done.is_err() || sent.is_err() {
            self.is_unsynced.store(true, Ordering::Relaxed);
        }
        sent?;
        let piece_bytes = bytes.len().min(opened.session.limits.write_bytes);
        let stat = self.asked_to_write(&opened, piece_bytes, done)?;
        self.completed(&stat)
    }

    fn attributes(&self) -> Result<Attributes> {
        let opened = self.opened()?;
        let mut exchange = opened.session.exchange();
        let asked = exchange.request(kind::FSTAT, |packet| {
            packet.string(opened.id.bytes());
        });
        let stat = asked
            .and_then(|tag| exchange.stat(tag))
            .map_err(Failure::plain)?;
        self.completed(&stat)
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        let opened = self.opened()?;
        if changes.size_bytes.is_some() {
            self.mark_changed();
        }
        self.is_changed.store(true, Ordering::Relaxed);
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.place.give_times();
        }
        let mut exchange = opened.session.exchange();
        let now = match change::needs_present(changes) {
            false => Stat::default(),
            true => {
                let asked = exchange.request(kind::FSTAT, |packet| {
                    packet.string(opened.id.bytes());
                });
                asked
                    .and_then(|tag| exchange.stat(tag))
                    .map_err(Failure::plain)?
            }
        };
        let steps = change::steps(changes, &now);
        let done = change::send(&mut exchange, &steps, |exchange, step| {
            exchange.request(kind::FSETSTAT, |packet: &mut Encoder<'_>| {
                packet.string(opened.id.bytes());
                step.encode(packet);
            })
        });
        done.map_err(|failure| {
            let asked = Asked::SetAttributes {
                path: &self.remote(),
                resizes: changes.size_bytes.is_some(),
            };
            diagnose(&opened.session, asked, failure)
        })
    }
}
