//! An open file on the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::change::{self, Target};
use super::diagnosis::{Operation, diagnose};
use super::failure::{Failure, Requested};
use super::packet::{extension, kind, open};
use super::pipelined_writes::PipelinedWrites;
use super::requests::{OpenHandle, Reply};
use super::session::Session;
use super::shared::Shared;
use super::stat::Stat;
use crate::source::{Attributes, Content, Error, Finish, Handle, Kind, Result, SetAttributes};

/// An open file. After a lost connection, the file is reopened by its path, if the path
/// certainly leads to the same file. For this, the file must be a regular file, must not
/// have been removed or replaced through this source, and its current name must be known.
/// If nothing was written through this handle, the file's length and time must also be the
/// same as at the first open.
pub(super) struct SftpFile {
    shared: Arc<Shared>,
    /// Number of this file among the open files of `names`.
    number: usize,
    /// Flags for reopening the file, reduced to READ and WRITE. A reopened file is
    /// neither created nor truncated.
    flags: u32,
    opened: Mutex<Arc<OpenHandle>>,
    first: Stat,
    durability: Mutex<Durability>,
    writes: Mutex<PipelinedWrites>,
}

#[derive(Default)]
struct Durability {
    changes: u64,
    /// The first session that received content since the last synchronisation. After
    /// that session has ended, the server may have restarted and lost content that was
    /// not on its device.
    unsynced: Option<Arc<Session>>,
}

impl Durability {
    /// Records that the first `changes` changes are on the server's device. Content
    /// that was written meanwhile may not be there.
    fn synced(&mut self, changes: u64) {
        if self.changes == changes {
            self.unsynced = None;
        }
    }

    /// Returns whether another session than this one received content that is not known
    /// to be synchronised. Each case is reported once.
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
    pub fn new(
        shared: &Arc<Shared>,
        path: &Path,
        opened: OpenHandle,
        flags: u32,
        first: Stat,
    ) -> Self {
        let opened = Arc::new(opened);
        Self {
            shared: Arc::clone(shared),
            number: shared.names.opened(path),
            flags: flags & (open::READ | open::WRITE),
            opened: Mutex::new(Arc::clone(&opened)),
            first,
            durability: Mutex::default(),
            writes: Mutex::new(PipelinedWrites::new(opened)),
        }
    }

    /// Returns the file's handle in a live session. Reopens the file if its session has
    /// ended.
    fn opened(&self) -> Result<Arc<OpenHandle>> {
        // Only callers of the same file wait for this lock.
        let mut opened = self.opened.lock();
        if !opened.session.is_alive() {
            *opened = self.open_again()?;
        }
        Ok(Arc::clone(&opened))
    }

    fn open_again(&self) -> Result<Arc<OpenHandle>> {
        let path = self.path().ok_or(Error::Lost)?;
        let session = self.shared.link.session()?;
        let remote = self.shared.remote(&path);
        let mut batch = session.batch();
        let mut ask = || {
            let stat = batch.ask(kind::LSTAT, &[&remote])?;
            let opened = batch.open(&remote, self.flags, &Stat::default())?;
            Ok::<_, Failure>((batch.handle(opened)?, batch.stat(stat)?))
        };
        // A file that is gone, or may not be opened any more, is not the
        // file that was open.
        let (opened, now) = ask().map_err(|_| Error::Lost)?;
        let first = self.first;
        let is_same = (now.size_bytes, now.modified()) == (first.size_bytes, first.modified());
        let is_changed = self.durability.lock().changes > 0;
        if now.kind() == Some(Kind::File) && (is_same || is_changed) {
            Ok(Arc::new(opened))
        } else {
            Err(Error::Lost)
        }
    }

    fn path(&self) -> Option<PathBuf> {
        self.shared.names.path(self.number)
    }

    fn completed(&self, stat: &Stat) -> Result<Attributes> {
        self.shared.names.complete(self.path().as_deref(), stat)
    }

    /// Returns the file's path at the server, for a diagnosis.
    fn remote(&self) -> Vec<u8> {
        self.shared.remote(&self.path().unwrap_or_default())
    }

    /// Returns the pipelined writes of the file, with a handle in a live session.
    fn writes(&self) -> Result<MutexGuard<'_, PipelinedWrites>> {
        let opened = self.opened()?;
        let mut writes = self.writes.lock();
        writes.use_handle(opened);
        Ok(writes)
    }

    /// Returns the pipelined writes of the file, or the error of one that is known to
    /// have failed.
    fn sound_writes(&self) -> Result<MutexGuard<'_, PipelinedWrites>> {
        let mut writes = self.writes()?;
        writes.poll();
        self.take_error(&mut writes)?;
        Ok(writes)
    }

    fn why(&self, opened: &OpenHandle, operation: Operation, failure: Failure) -> Error {
        diagnose(&opened.session, operation, &[&self.remote()], failure)
    }

    /// Returns the error of the first refused write that was not reported yet.
    fn error(&self, writes: &PipelinedWrites) -> Result<()> {
        let error =
            |(failure, bytes)| self.why(&writes.opened, Operation::Write { bytes }, failure);
        writes.failed.map(error).map_or(Ok(()), Err)
    }

    fn take_error(&self, writes: &mut PipelinedWrites) -> Result<()> {
        let outcome = self.error(writes);
        writes.failed = None;
        outcome
    }

    /// Sends the requests of [`Handle::finish`] in their order. Where possible, only
    /// the last reply is awaited.
    fn send_finish(
        &self,
        writes: &mut PipelinedWrites,
        end: &Finish<'_>,
    ) -> Requested<(Option<Reply>, Reply)> {
        let opened = Arc::clone(&writes.opened);
        let now = if change::needs_present(end.changes) {
            writes.batch.look_up(kind::FSTAT, &opened.id)?
        } else {
            Stat::default()
        };
        writes.write(end.offset, Content::Bytes(end.bytes));
        let target = Target::Handle(&opened.id);
        let changed = change::send(&mut writes.batch, target, end.changes, &now)?;
        if end.is_sync {
            writes.sync();
        }
        let stat = writes.batch.ask(kind::FSTAT, &[&opened.id])?;
        Ok((changed, stat))
    }

    /// Takes the replies to the requests of [`Handle::finish`]: the file's new
    /// attributes, or why a change of them was refused. An error of the content takes
    /// precedence.
    fn finished(
        &self,
        writes: &mut PipelinedWrites,
        sent: Requested<(Option<Reply>, Reply)>,
    ) -> Result<Requested<Stat>> {
        writes.wait();
        self.take_error(writes)?;
        let batch = &mut writes.batch;
        Ok(sent.and_then(|(changed, stat)| {
            changed.map_or(Ok(()), |reply| batch.status(reply))?;
            batch.stat(stat)
        }))
    }
}

/// Returns the part of refused changes that is still needed. The first retry is without
/// times, which only the owner may set; the second is without the length, which may be
/// right already.
fn needed_of(changes: &SetAttributes) -> Option<SetAttributes> {
    let length_alone = SetAttributes {
        size_bytes: changes.size_bytes,
        ..SetAttributes::default()
    };
    if changes.has_times() {
        return Some(changes.without_times());
    }
    let is_length = changes.size_bytes.is_some() && *changes == length_alone;
    is_length.then(SetAttributes::default)
}

/// Returns `EFBIG` if the bytes would end past the largest possible offset.
fn refuse_too_far(bytes: usize, offset: u64) -> Result<()> {
    let end = offset.checked_add(bytes as u64);
    if end.is_some_and(|end| i64::try_from(end).is_ok()) {
        Ok(())
    } else {
        Err(Error::Errno(libc::EFBIG))
    }
}

impl Drop for SftpFile {
    fn drop(&mut self) {
        self.shared.names.closed(self.number);
    }
}

impl Handle for SftpFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let opened = self.opened()?;
        let read = opened.session.batch().read(&opened.id, buffer, offset);
        read.map_err(|failure| self.why(&opened, Operation::Other, failure))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        refuse_too_far(bytes.len(), offset)?;
        let opened = self.opened()?;
        self.durability.lock().written(&opened.session);
        // This read has a separate pipeline, so that other callers do not wait for
        // these writes.
        let mut writes = PipelinedWrites::new(Arc::clone(&opened));
        writes.write(offset, Content::Bytes(bytes));
        writes.wait();
        // A synchronisation meanwhile may have come before this write.
        self.durability.lock().written(&opened.session);
        self.take_error(&mut writes)
    }

    fn write_later(&self, content: Content<'_>, offset: u64) -> Result<()> {
        refuse_too_far(content.bytes(), offset)?;
        let mut writes = self.sound_writes()?;
        self.durability.lock().written(&writes.opened.session);
        writes.write(offset, content);
        writes.send();
        self.take_error(&mut writes)
    }

    fn sync_later(&self) -> Result<()> {
        let mut writes = self.sound_writes()?;
        writes.sync();
        writes.send();
        self.take_error(&mut writes)
    }

    fn flush(&self) -> Result<()> {
        let mut writes = self.writes.lock();
        writes.wait();
        self.error(&writes)
    }

    fn sync(&self) -> Result<()> {
        let mut writes = self.writes()?;
        let changes = self.durability.lock().changes;
        let is_asked = writes.sync();
        writes.wait();
        let mut durability = self.durability.lock();
        if durability.take_doubt(&writes.opened.session) {
            writes.failed = None;
            return Err(Error::Lost);
        }
        if is_asked && writes.failed.is_none() {
            durability.synced(changes);
        }
        drop(durability);
        self.take_error(&mut writes)
    }

    fn finish(&self, end: &Finish<'_>) -> Result<(Attributes, bool)> {
        let mut writes = self.sound_writes()?;
        let opened = Arc::clone(&writes.opened);
        let mut durability = self.durability.lock();
        if end.is_sync && durability.take_doubt(&opened.session) {
            return Err(Error::Lost);
        }
        durability.written(&opened.session);
        let changes = durability.changes;
        drop(durability);
        let name = end.looks_at_name.then(|| self.remote());
        let look = |writes: &mut PipelinedWrites| {
            let name = name.as_ref()?;
            writes.batch.ask(kind::LSTAT, &[name]).ok()
        };
        let before = look(&mut writes);
        let sent = self.send_finish(&mut writes, end);
        let after = look(&mut writes);
        let mut done = self.finished(&mut writes, sent)?;
        let mut changes_left = *end.changes;
        while let Err(Failure::Refused(_)) = done
            && let Some(fewer) = needed_of(&changes_left)
        {
            changes_left = fewer;
            let again = Finish {
                bytes: &[],
                changes: &changes_left,
                ..*end
            };
            let sent = self.send_finish(&mut writes, &again);
            done = self.finished(&mut writes, sent)?;
        }
        let batch = &mut writes.batch;
        let operation = Operation::Write { bytes: 0 };
        let now = done.map_err(|failure| self.why(&opened, operation, failure))?;
        let is_cut = end
            .changes
            .size_bytes
            .is_none_or(|size| now.size_bytes == Some(size));
        if !is_cut {
            return Err(Error::Errno(libc::EACCES));
        }
        let mut found = |reply: Option<Reply>| batch.stat(reply?).ok();
        let (before, after) = (found(before), found(after));
        drop(writes);
        if end.is_sync && opened.session.has(extension::FSYNC) {
            self.durability.lock().synced(changes);
        }
        // The protocol has no inode numbers. Another file that took the name was
        // not empty before, or does not have this content's length afterwards.
        let was_empty = before.is_some_and(|before| before.size_bytes == Some(0));
        let is_named = was_empty && after.is_some_and(|after| after.is_as(&now));
        Ok((self.completed(&now)?, is_named))
    }

    fn attributes(&self) -> Result<Attributes> {
        let opened = self.opened()?;
        let found = opened.session.batch().look_up(kind::FSTAT, &opened.id);
        let stat = found.map_err(Failure::plain)?;
        self.completed(&stat)
    }

    fn set_attributes(&self, changes: &SetAttributes) -> Result<()> {
        let opened = self.opened()?;
        match changes.size_bytes {
            Some(_) => self.durability.lock().written(&opened.session),
            None => self.durability.lock().changes += 1,
        }
        let mut batch = opened.session.batch();
        let done = change::make(&mut batch, Target::Handle(&opened.id), changes);
        done.map_err(|failure| self.why(&opened, change::operation(changes), failure))
    }
}
