//! Sends new content to the source while a program is still writing it. The content
//! goes to a temporary file, which takes the target's name in the end.
//!
//! Content is sent ahead in one pass from start to end. Ranges that are written again
//! later are sent once more by the write-back.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::file::{CachedFile, State};
use super::staged_upload::TemporaryFile;
use crate::mount::PathTurn;
use crate::ranges::Ranges;
use crate::source::{Creation, OpenFlags, Result};

/// Permissions of a temporary file before it gets its final ones, and of a file that
/// has vanished from the source.
const MODE_OF_A_NEW_FILE: u32 = 0o600;
/// Minimum number of bytes that are sent ahead at a time, so that small files are not
/// sent ahead. `SEND_BYTES_MAX` is the maximum.
const SEND_BYTES_MIN: u64 = 512 << 10;
const SEND_BYTES_MAX: u64 = 2 << 20;
/// Bytes to send before the source is asked to bring them to its device. If this were
/// larger, closing a file would take longer.
const SYNC_BYTES: u64 = 4 << 20;

impl State {
    /// Returns the range that can be sent ahead, if the new content replaces all of the
    /// old.
    fn next_range(&self) -> Option<Range<u64>> {
        let start = self.upload.end;
        if self.upload.is_over || self.valid_bytes > 0 || self.progress.is_removed() {
            return None;
        }
        let missing = self.progress.dirty().missing(start..start + SEND_BYTES_MAX);
        let end = missing
            .first()
            .map_or(start + SEND_BYTES_MAX, |first| first.start);
        (end - start >= SEND_BYTES_MIN).then_some(start..end)
    }
}

impl CachedFile {
    /// Returns whether there is content to send ahead. If so, the caller must call
    /// [`CachedFile::send_ahead`].
    pub fn begin_sending(&self) -> bool {
        if !self.shared.source.is_remote() {
            return false;
        }
        let mut state = self.state.lock();
        let begins = !state.upload.is_busy && state.next_range().is_some();
        state.upload.is_busy |= begins;
        begins
    }

    /// Sends the content that is available. If that fails, the write-back sends it
    /// again and reports errors.
    pub fn send_ahead(&self, turn: &mut PathTurn) {
        let outcome = self.send_pieces(turn);
        let spoiled = {
            let mut state = self.state.lock();
            let upload = &mut state.upload;
            upload.is_busy = false;
            upload.is_over |= outcome.is_err();
            upload.is_spoiled |= outcome.is_err();
            upload.temporary.take_if(|_| outcome.is_err())
        };
        self.fetched.notify_all();
        if let Some(temporary) = spoiled {
            self.discard(turn, temporary);
        }
    }

    fn send_pieces(&self, turn: &mut PathTurn) -> Result<()> {
        let mut unsynced_bytes = 0;
        loop {
            let (range, handle) = {
                let mut state = self.state.lock();
                let Some(range) = state.next_range() else {
                    return Ok(());
                };
                // Ranges that are written from here on are sent again.
                state.upload.sent.insert(range.clone());
                state.upload.end = range.end;
                let temporary = state.upload.temporary.as_ref();
                (range, temporary.map(|file| Arc::clone(&file.handle)))
            };
            let handle = match handle {
                Some(handle) => handle,
                None => {
                    let temporary = self.make_temporary(turn)?;
                    let handle = Arc::clone(&temporary.handle);
                    self.state.lock().upload.temporary = Some(temporary);
                    handle
                }
            };
            unsynced_bytes += range.end - range.start;
            self.send_range(&*handle, range)?;
            if unsynced_bytes >= SYNC_BYTES {
                // The device writes while the next piece is on its way.
                unsynced_bytes = 0;
                handle.sync_later()?;
            }
        }
    }

    pub(super) fn make_temporary(&self, turn: &mut PathTurn) -> Result<TemporaryFile> {
        let guard = self.shared.path(turn, self.ino)?;
        let directory = self.shared.tree.parent(self.ino);
        let path = self.shared.journal.temporary_beside(guard.path())?;
        self.state.lock().temporary_in = Some(directory);
        self.shared.touch(self.ino, true);
        let flags = OpenFlags {
            read: true,
            create: Some(Creation {
                mode: MODE_OF_A_NEW_FILE,
                owner: None,
            }),
            exclusive: true,
            ..OpenFlags::WRITE
        };
        let opened = self.shared.source.open(&path, flags);
        self.shared.touch(self.ino, true);
        match opened {
            Ok(found) => Ok(TemporaryFile {
                directory,
                name: path.file_name().unwrap_or_default().to_owned(),
                handle: Arc::from(found.handle),
                new: found.attributes,
                sent: Ranges::default(),
            }),
            Err(error) => {
                self.state.lock().temporary_in = None;
                self.unlink_temporary(&path);
                Err(error)
            }
        }
    }

    /// Removes a temporary file. The file may exist even if the source refused to
    /// create it or did not reply.
    fn unlink_temporary(&self, path: &Path) {
        match self.shared.source.remove(path, false) {
            // Otherwise the journal keeps listing it.
            Err(error) if !error.is(libc::ENOENT) => {}
            _ => self.shared.journal.done(),
        }
    }

    pub(super) fn discard(&self, turn: &mut PathTurn, temporary: TemporaryFile) {
        drop(temporary.handle);
        let (directory, name) = (temporary.directory, temporary.name);
        if let Ok(guard) = self.shared.path_below(turn, directory, &name) {
            self.unlink_temporary(guard.path());
        }
        self.state.lock().temporary_in = None;
        self.shared.metadata.touch(&[(directory, name)], true);
    }

    /// Ends sending ahead. Returns the temporary file, if it can still replace the
    /// target.
    pub(super) fn take_temporary(&self, turn: &mut PathTurn) -> Option<TemporaryFile> {
        let mut state = self.state.lock();
        state.upload.is_over = true;
        self.fetched
            .wait_while(&mut state, |state| state.upload.is_busy);
        let mut temporary = state.upload.temporary.take()?;
        temporary.sent = std::mem::take(&mut state.upload.sent);
        let is_spoiled = state.upload.is_spoiled;
        drop(state);
        if is_spoiled || self.shared.tree.parent(self.ino) != temporary.directory {
            self.discard(turn, temporary);
            return None;
        }
        Some(temporary)
    }

    pub fn stop_sending(&self, turn: &mut PathTurn) {
        if let Some(temporary) = self.take_temporary(turn) {
            self.discard(turn, temporary);
        }
    }

    /// Removes this file's temporary file from a directory that is about to be removed.
    /// Returns whether there was one.
    pub fn leave(&self, turn: &mut PathTurn, directory: u64) -> bool {
        let is_there = self.state.lock().temporary_in == Some(directory);
        if is_there {
            // A write-back under way gives the temporary file its final name.
            let _writing_back = self.write_back_lock.lock();
            self.stop_sending(turn);
        }
        is_there
    }
}
