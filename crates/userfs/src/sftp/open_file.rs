//! An open file of the server.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::change;
use super::diagnosis::{Asked, diagnose};
use super::names::Place;
use super::packet::{extension, kind, open};
use super::pipelined_writes::{PipelinedWrites, Refused};
use super::requests::{Failure, HandleId, Reply};
use super::session::Session;
use super::source::Shared;
use super::stat::Stat;
use crate::source::{Attributes, Content, Error, Finish, Handle, Kind, Result, SetAttributes};

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
pub(super) struct SftpFile {
    shared: Arc<Shared>,
    place: Arc<Place>,
    /// READ and WRITE alone: a file is neither made nor emptied again.
    flags: u32,
    opened: Mutex<Opened>,
    first: Seen,
    durability: Mutex<Durability>,
    writes: Mutex<PipelinedWrites>,
}

/// What a file was when it was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub stat: Stat,
    /// It was made by being opened.
    pub is_made: bool,
}

/// Whether what was written is on the server's device.
#[derive(Default)]
struct Durability {
    /// How often something was changed.
    changes: u64,
    /// The session that took content since the last synchronisation.
    unsynced: Option<Arc<Session>>,
    /// A session that took such content has ended: a server that has started
    /// again has lost what was not on its device.
    is_in_doubt: bool,
}

impl Durability {
    /// Whether there is content of another session than this one, which is
    /// reported once.
    fn take_doubt(&mut self, session: &Arc<Session>) -> bool {
        let is_other = |before: &mut Arc<Session>| !Arc::ptr_eq(before, session);
        let is_lost = self.unsynced.take_if(is_other).is_some();
        std::mem::take(&mut self.is_in_doubt) || is_lost
    }

    fn written(&mut self, session: &Arc<Session>) {
        self.changes += 1;
        self.is_in_doubt = self.take_doubt(session);
        self.unsynced = Some(Arc::clone(session));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SftpFile {
    pub fn new(shared: &Arc<Shared>, path: &Path, opened: Opened, flags: u32, first: Seen) -> Self {
        Self {
            shared: Arc::clone(shared),
            place: shared.names.opened(path),
            flags: flags & (open::READ | open::WRITE),
            opened: Mutex::new(opened),
            first,
            durability: Mutex::default(),
            writes: Mutex::default(),
        }
    }

    /// The file in a session that is alive.
    fn opened(&self) -> Result<Opened> {
        // Others wait for the same file, and for no other.
        let mut opened = lock(&self.opened);
        if !opened.session.is_alive() {
            *opened = self.open_again()?;
        }
        Ok(opened.clone())
    }

    fn open_again(&self) -> Result<Opened> {
        let path = self.place.path().ok_or(Error::Lost)?;
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(&path);
        let mut batch = session.batch();
        let mut ask = || {
            let stat = batch.ask(kind::LSTAT, &[&remote])?;
            let opened = batch.request(kind::OPEN, |packet| {
                packet.string(&remote).u32(self.flags);
                Stat::default().encode(packet);
            })?;
            Ok::<_, Failure>((batch.handle(opened)?, batch.stat(stat)?))
        };
        // A file that is gone, or may not be opened any more, is not the
        // file that was open.
        let (id, now) = ask().map_err(|_| Error::Lost)?;
        let modified = |stat: &Stat| stat.times.map(|(_, modified)| modified);
        let first = self.first.stat;
        let is_same = now.size_bytes == first.size_bytes && modified(&now) == modified(&first);
        let is_changed = lock(&self.durability).changes > 0;
        if now.kind() != Some(Kind::File) || !(is_same || is_changed) {
            session.close(&id);
            return Err(Error::Lost);
        }
        Ok(Opened { session, id })
    }

    /// The server's path, for asking why something was refused.
    fn remote(&self) -> Vec<u8> {
        self.shared
            .root
            .join(&self.place.path().unwrap_or_default())
    }

    /// The error that a refused write stands for.
    fn why(&self, opened: &Opened, (failure, bytes): Refused) -> Error {
        let asked = Asked::Write {
            bytes: bytes.max(1),
        };
        diagnose(&opened.session, asked, &[&self.remote()], failure)
    }

    fn outcome(&self, opened: &Opened, refused: Option<Refused>) -> Result<()> {
        refused.map_or(Ok(()), |refused| Err(self.why(opened, refused)))
    }

    /// What the server tells, with what is known of names here.
    fn completed(&self, stat: &Stat) -> Result<Attributes> {
        let mut attributes = stat.attributes().ok_or(Error::Errno(libc::EIO))?;
        if let Some(path) = self.place.path() {
            self.shared.names.complete(&path, &mut attributes);
        }
        Ok(attributes)
    }

    /// The requests of [`Handle::finish`], in this order, of which only the
    /// last answer is waited for where that is possible.
    fn send_finish(
        &self,
        writes: &mut PipelinedWrites,
        opened: &Opened,
        end: &Finish<'_>,
    ) -> std::result::Result<(Vec<Reply>, Reply), Failure> {
        let handle = &opened.id.0;
        let now = match self.first {
            _ if !change::needs_present(end.changes) => Stat::default(),
            // Nobody has read a file before it had any content.
            first if first.is_made && !self.place.has_given_times() => first.stat,
            _ => writes.batch(opened).look_up(kind::FSTAT, handle)?,
        };
        writes.write(opened, end.offset, Content::Bytes(end.bytes));
        let batch = writes.batch(opened);
        let mut asked = Vec::new();
        for step in change::steps(end.changes, &now) {
            let tag = step.request(batch, kind::FSETSTAT, &[handle])?;
            match step.owner {
                // What follows may be set-user-id: see `change`.
                Some(_) => batch.status(tag)?,
                None => asked.push(tag),
            }
        }
        if end.is_sync && opened.session.has(extension::FSYNC) {
            writes.sync(opened);
        }
        Ok((asked, writes.batch(opened).ask(kind::FSTAT, &[handle])?))
    }
}

/// What no file can hold.
fn refuse_too_far(bytes: usize, offset: u64) -> Result<()> {
    let end = offset.checked_add(bytes as u64);
    match end.is_some_and(|end| i64::try_from(end).is_ok()) {
        true => Ok(()),
        false => Err(Error::Errno(libc::EFBIG)),
    }
}

impl Drop for SftpFile {
    fn drop(&mut self) {
        self.shared.names.closed(&self.place);
        let opened = lock(&self.opened);
        opened.session.close(&opened.id);
    }
}

impl Handle for SftpFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let opened = self.opened()?;
        let read = opened.session.batch().read(&opened.id, buffer, offset);
        read.map_err(|failure| diagnose(&opened.session, Asked::Other, &[&self.remote()], failure))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        refuse_too_far(bytes.len(), offset)?;
        let opened = self.opened()?;
        // Writes of its own: other callers do not wait for these.
        let mut writes = PipelinedWrites::default();
        lock(&self.durability).written(&opened.session);
        writes.write(&opened, offset, Content::Bytes(bytes));
        writes.wait();
        // A synchronisation meanwhile may have come before it.
        lock(&self.durability).written(&opened.session);
        self.outcome(&opened, writes.take_failure())
    }

    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        refuse_too_far(content.bytes(), offset)?;
        let opened = self.opened()?;
        let mut writes = lock(&self.writes);
        writes.poll();
        self.outcome(&opened, writes.take_failure())?;
        lock(&self.durability).written(&opened.session);
        writes.write(&opened, offset, content);
        writes.send();
        self.outcome(&opened, writes.take_failure())
    }

    fn sync_later(&self) -> Result<()> {
        let opened = self.opened()?;
        let mut writes = lock(&self.writes);
        writes.poll();
        self.outcome(&opened, writes.take_failure())?;
        if opened.session.has(extension::FSYNC) {
            writes.sync(&opened);
            writes.send();
        }
        self.outcome(&opened, writes.take_failure())
    }

    fn flush(&self) -> Result<()> {
        let mut writes = lock(&self.writes);
        writes.wait();
        let opened = lock(&self.opened).clone();
        self.outcome(&opened, writes.failure())
    }

    fn sync(&self) -> Result<()> {
        let opened = self.opened()?;
        let mut writes = lock(&self.writes);
        let changes = lock(&self.durability).changes;
        let can = opened.session.has(extension::FSYNC);
        if can {
            writes.sync(&opened);
        }
        writes.wait();
        let refused = writes.take_failure();
        drop(writes);
        let mut durability = lock(&self.durability);
        if durability.take_doubt(&opened.session) {
            return Err(Error::Lost);
        }
        // What others have written meanwhile may have come after it.
        if can && refused.is_none() && durability.changes == changes {
            durability.unsynced = None;
        }
        drop(durability);
        self.outcome(&opened, refused)
    }

    fn finish(&self, end: &Finish<'_>) -> Result<(Attributes, bool)> {
        let opened = self.opened()?;
        let mut writes = lock(&self.writes);
        writes.poll();
        self.outcome(&opened, writes.take_failure())?;
        let mut durability = lock(&self.durability);
        if end.is_sync && durability.take_doubt(&opened.session) {
            return Err(Error::Lost);
        }
        durability.written(&opened.session);
        let changes_before = durability.changes;
        drop(durability);
        let name = end.looks_at_name.then(|| self.remote());
        let look = |writes: &mut PipelinedWrites| {
            let name = name.as_ref()?;
            writes.batch(&opened).ask(kind::LSTAT, &[name]).ok()
        };
        let before = look(&mut writes);
        let sent = self.send_finish(&mut writes, &opened, end);
        let after = look(&mut writes);
        writes.wait();
        self.outcome(&opened, writes.take_failure())?;
        let batch = writes.batch(&opened);
        let done = sent.and_then(|(asked, stat)| {
            asked.into_iter().try_for_each(|tag| batch.status(tag))?;
            batch.stat(stat)
        });
        let now = done.map_err(|failure| self.why(&opened, (failure, 0)))?;
        let mut found = |tag: Option<Reply>| batch.stat(tag?).ok();
        let (before, after) = (found(before), found(after));
        drop(writes);
        let mut durability = lock(&self.durability);
        let syncs = end.is_sync && opened.session.has(extension::FSYNC);
        if syncs && durability.changes == changes_before {
            durability.unsynced = None;
        }
        drop(durability);
        // The protocol has no inode numbers. A file that took the name earlier
        // is not empty before, or has not this content's length afterwards.
        let parts = |of: Stat| {
            (
                of.size_bytes,
                of.permissions,
                of.owner,
                of.times.map(|(_, modified)| modified),
            )
        };
        let was_empty = before.is_some_and(|before| before.size_bytes == Some(0));
        let is_named = was_empty && after.map(parts) == Some(parts(now));
        Ok((self.completed(&now)?, is_named))
    }

    fn attributes(&self) -> Result<Attributes> {
        let opened = self.opened()?;
        let found = opened.session.batch().look_up(kind::FSTAT, &opened.id.0);
        self.completed(&found.map_err(Failure::plain)?)
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        let opened = self.opened()?;
        match changes.size_bytes {
            Some(_) => lock(&self.durability).written(&opened.session),
            None => lock(&self.durability).changes += 1,
        }
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.place.give_times();
        }
        let mut batch = opened.session.batch();
        let handle = &opened.id.0;
        let now = match change::needs_present(changes) {
            false => Stat::default(),
            true => batch.look_up(kind::FSTAT, handle).map_err(Failure::plain)?,
        };
        let mut steps = change::steps(changes, &now).into_iter();
        let done = steps.try_for_each(|step| {
            let tag = step.request(&mut batch, kind::FSETSTAT, &[handle])?;
            batch.status(tag)
        });
        done.map_err(|failure| {
            let resizes = changes.size_bytes.is_some();
            let asked = Asked::SetAttributes { resizes };
            diagnose(&opened.session, asked, &[&self.remote()], failure)
        })
    }
}
