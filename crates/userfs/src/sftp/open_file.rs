//! An open file of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::change::{self, Target};
use super::diagnosis::{Asked, diagnose};
use super::packet::{extension, kind, open};
use super::pipelined_writes::{PipelinedWrites, Refused};
use super::requests::{Failure, HandleId, Reply, Requested};
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
    /// Its number among the open files of `names`.
    number: u64,
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
    /// The first session that took content since the last synchronisation. Once
    /// it has ended, the server may have started again, and then has lost what
    /// was not on its device.
    unsynced: Option<Arc<Session>>,
}

impl Durability {
    /// Whether there is content of another session than this one, which is
    /// reported once.
    fn take_doubt(&mut self, session: &Arc<Session>) -> bool {
        let first = self.unsynced.as_mut();
        let lost = first.filter(|first| !Arc::ptr_eq(first, session));
        lost.map(|first| *first = Arc::clone(session)).is_some()
    }

    fn written(&mut self, session: &Arc<Session>) {
        self.changes += 1;
        self.unsynced.get_or_insert_with(|| Arc::clone(session));
    }
}

impl SftpFile {
    pub fn new(shared: &Arc<Shared>, path: &Path, opened: Opened, flags: u32, first: Seen) -> Self {
        Self {
            shared: Arc::clone(shared),
            number: shared.names.opened(path),
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
        let mut opened = self.opened.lock();
        if !opened.session.is_alive() {
            *opened = self.open_again()?;
        }
        Ok(opened.clone())
    }

    fn open_again(&self) -> Result<Opened> {
        let path = self.path().ok_or(Error::Lost)?;
        let session = self.shared.link.session()?;
        let remote = self.shared.root.join(&path);
        let mut batch = session.batch();
        let mut ask = || {
            let stat = batch.ask(kind::LSTAT, &[&remote])?;
            let opened = batch.open(&remote, self.flags, &Stat::default())?;
            Ok::<_, Failure>((batch.handle(opened)?, batch.stat(stat)?))
        };
        // A file that is gone, or may not be opened any more, is not the
        // file that was open.
        let (id, now) = ask().map_err(|_| Error::Lost)?;
        let first = self.first.stat;
        let is_same = (now.size_bytes, now.modified()) == (first.size_bytes, first.modified());
        let is_changed = self.durability.lock().changes > 0;
        if now.kind() != Some(Kind::File) || !(is_same || is_changed) {
            session.close(&id);
            return Err(Error::Lost);
        }
        Ok(Opened { session, id })
    }

    fn path(&self) -> Option<PathBuf> {
        self.shared.names.path(self.number)
    }

    fn completed(&self, stat: &Stat) -> Result<Attributes> {
        self.shared.names.complete(self.path().as_deref(), stat)
    }

    /// The server's path, for asking why something was refused.
    fn remote(&self) -> Vec<u8> {
        self.shared.root.join(&self.path().unwrap_or_default())
    }

    /// The file and its writes, none of which is known to have failed.
    fn begin(&self) -> Result<(Opened, MutexGuard<'_, PipelinedWrites>)> {
        let opened = self.opened()?;
        let mut writes = self.writes.lock();
        writes.poll();
        self.outcome(&opened, writes.failed.take())?;
        Ok((opened, writes))
    }

    /// The error that a refused write stands for.
    fn why(&self, opened: &Opened, (failure, bytes): Refused) -> Error {
        diagnose(
            &opened.session,
            Asked::Write { bytes },
            &[&self.remote()],
            failure,
        )
    }

    fn outcome(&self, opened: &Opened, refused: Option<Refused>) -> Result<()> {
        refused.map_or(Ok(()), |refused| Err(self.why(opened, refused)))
    }

    /// The requests of [`Handle::finish`], in this order, of which only the
    /// last answer is waited for where that is possible.
    fn send_finish(
        &self,
        writes: &mut PipelinedWrites,
        opened: &Opened,
        end: &Finish<'_>,
    ) -> Requested<(Option<Reply>, Reply)> {
        let now = match self.first {
            _ if !change::needs_present(end.changes) => Stat::default(),
            // Nobody has read a file before it had any content.
            first if first.is_made && !self.shared.names.has_given_times(self.number) => first.stat,
            _ => writes.batch(opened).look_up(kind::FSTAT, &opened.id.0)?,
        };
        writes.write(opened, end.offset, Content::Bytes(end.bytes));
        let batch = writes.batch(opened);
        let changed = change::send(batch, Target::Handle(&opened.id), end.changes, &now)?;
        if end.is_sync && opened.session.has(extension::FSYNC) {
            writes.sync(opened);
        }
        let stat = writes.batch(opened).ask(kind::FSTAT, &[&opened.id.0])?;
        Ok((changed, stat))
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
        self.shared.names.closed(self.number);
        let opened = self.opened.lock();
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
        self.durability.lock().written(&opened.session);
        writes.write(&opened, offset, Content::Bytes(bytes));
        writes.wait();
        // A synchronisation meanwhile may have come before it.
        self.durability.lock().written(&opened.session);
        self.outcome(&opened, writes.failed.take())
    }

    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        refuse_too_far(content.bytes(), offset)?;
        let (opened, mut writes) = self.begin()?;
        self.durability.lock().written(&opened.session);
        writes.write(&opened, offset, content);
        writes.send();
        self.outcome(&opened, writes.failed.take())
    }

    fn sync_later(&self) -> Result<()> {
        let (opened, mut writes) = self.begin()?;
        if opened.session.has(extension::FSYNC) {
            writes.sync(&opened);
            writes.send();
        }
        self.outcome(&opened, writes.failed.take())
    }

    fn flush(&self) -> Result<()> {
        let mut writes = self.writes.lock();
        writes.wait();
        let opened = self.opened.lock().clone();
        self.outcome(&opened, writes.failed)
    }

    fn sync(&self) -> Result<()> {
        let opened = self.opened()?;
        let mut writes = self.writes.lock();
        let changes = self.durability.lock().changes;
        let can = opened.session.has(extension::FSYNC);
        if can {
            writes.sync(&opened);
        }
        writes.wait();
        let refused = writes.failed.take();
        drop(writes);
        let mut durability = self.durability.lock();
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
        let (opened, mut writes) = self.begin()?;
        let mut durability = self.durability.lock();
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
        self.outcome(&opened, writes.failed.take())?;
        let batch = writes.batch(&opened);
        let done = sent.and_then(|(changed, stat)| {
            changed.map_or(Ok(()), |reply| batch.status(reply))?;
            batch.stat(stat)
        });
        let now = done.map_err(|failure| self.why(&opened, (failure, 0)))?;
        let mut found = |tag: Option<Reply>| batch.stat(tag?).ok();
        let (before, after) = (found(before), found(after));
        drop(writes);
        let mut durability = self.durability.lock();
        let syncs = end.is_sync && opened.session.has(extension::FSYNC);
        if syncs && durability.changes == changes_before {
            durability.unsynced = None;
        }
        drop(durability);
        // The protocol has no inode numbers. A file that took the name earlier
        // is not empty before, or has not this content's length afterwards.
        let was_empty = before.is_some_and(|before| before.size_bytes == Some(0));
        let is_named = was_empty && after.is_some_and(|after| after.is_as(&now));
        Ok((self.completed(&now)?, is_named))
    }

    fn attributes(&self) -> Result<Attributes> {
        let opened = self.opened()?;
        let found = opened.session.batch().look_up(kind::FSTAT, &opened.id.0);
        let stat = found.map_err(Failure::plain)?;
        self.completed(&stat)
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        let opened = self.opened()?;
        match changes.size_bytes {
            Some(_) => self.durability.lock().written(&opened.session),
            None => self.durability.lock().changes += 1,
        }
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.shared.names.give_times(self.number);
        }
        let mut batch = opened.session.batch();
        let done = change::make(&mut batch, Target::Handle(&opened.id), changes);
        done.map_err(|failure| {
            let asked = change::asked(changes);
            diagnose(&opened.session, asked, &[&self.remote()], failure)
        })
    }
}
