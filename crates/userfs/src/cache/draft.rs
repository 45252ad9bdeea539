//! A file at the source that is going to take another's name, and sending a
//! new content to it while that is still being written.
//!
//! Only what follows what was sent before is sent ahead: what is written again
//! is sent once more at the end, with what is left.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::file::{CachedFile, State};
use crate::ranges::Ranges;
use crate::source::{Attributes, Creation, Error, Handle, OpenFlags, Result};

/// Permissions of a file that has vanished from the source, and of one that
/// has not got its own yet.
const MODE_OF_A_NEW_FILE: u32 = 0o600;
/// What is sent ahead at a time: nothing of small files, and at most as much as
/// is in flight at once.
const SEND_BYTES_MIN: u64 = 512 << 10;
const SEND_BYTES_MAX: u64 = 2 << 20;
/// What is sent before it is brought to the source's device: the rest of it
/// takes the longer when the file is closed.
const SYNC_BYTES: u64 = 4 << 20;

/// A temporary file.
pub(super) struct Draft {
    directory: u64,
    name: OsString,
    pub handle: Arc<dyn Handle>,
    /// What it was when it was made.
    pub new: Attributes,
    /// What of the copy it has.
    pub sent: Ranges,
}

/// What is sent ahead of a file.
#[derive(Default)]
pub(super) struct Ahead {
    draft: Option<Draft>,
    /// What of the copy the temporary file has or is going to have.
    sent: Ranges,
    /// Where that ends.
    end: u64,
    /// Somebody is sending.
    is_busy: bool,
    /// Nothing more is to be sent.
    is_over: bool,
    /// The temporary file has something that the copy has not.
    is_spoiled: bool,
}

/// What to send, and to where.
type Piece = (Range<u64>, Arc<dyn Handle>);

impl Ahead {
    /// The copy changes.
    pub fn written(&mut self, range: Range<u64>) {
        self.sent.remove(range);
    }

    /// The copy loses content from an offset on.
    pub fn cut(&mut self, at: u64) {
        if at < self.end {
            self.is_spoiled = true;
            self.is_over = true;
        }
    }

    /// The next content can be sent ahead again.
    pub fn begin(&mut self) {
        if self.draft.is_none() && !self.is_busy {
            *self = Self::default();
        }
    }
}

impl State {
    /// What can be sent ahead: of a content that replaces all of another.
    fn ahead_range(&self) -> Option<Range<u64>> {
        let start = self.ahead.end;
        if self.ahead.is_over || self.valid_bytes > 0 || self.is_removed {
            return None;
        }
        let missing = self.dirty.missing(start..start + SEND_BYTES_MAX);
        let end = missing
            .first()
            .map_or(start + SEND_BYTES_MAX, |first| first.start);
        (end - start >= SEND_BYTES_MIN).then_some(start..end)
    }
}

impl CachedFile {
    /// Whether there is something to send ahead; then the caller is who sends
    /// it, by [`CachedFile::send_ahead`].
    pub fn begin_sending(&self) -> bool {
        if !self.shared.source.is_remote() {
            return false;
        }
        let mut state = self.state();
        let begins = !state.ahead.is_busy && state.ahead_range().is_some();
        state.ahead.is_busy |= begins;
        begins
    }

    /// Sends what there is. What fails here is tried again, and told, when the
    /// file is written back.
    pub fn send_ahead(&self) {
        let outcome = self.send_pieces();
        let mut state = self.state();
        if outcome.is_err() {
            state.ahead.is_over = true;
            state.ahead.is_spoiled = true;
        }
        state.ahead.is_busy = false;
        drop(state);
        self.fetched.notify_all();
        if outcome.is_err() {
            self.discard_spoiled();
        }
    }

    fn send_pieces(&self) -> Result<()> {
        let mut unsynced_bytes = 0;
        while let Some((range, handle)) = self.next_piece()? {
            unsynced_bytes += range.end - range.start;
            self.send_range(&*handle, range)?;
            if unsynced_bytes >= SYNC_BYTES {
                // The device works while the next piece is on its way.
                unsynced_bytes = 0;
                handle.sync_later()?;
            }
        }
        Ok(())
    }

    /// What to send next, and to where.
    fn next_piece(&self) -> Result<Option<Piece>> {
        let (range, handle) = {
            let mut state = self.state();
            let Some(range) = state.ahead_range() else {
                return Ok(None);
            };
            // What is written from here on is sent again.
            state.ahead.sent.insert(range.clone());
            state.ahead.end = range.end;
            let handle = state.ahead.draft.as_ref().map(|draft| &draft.handle);
            (range, handle.cloned())
        };
        if let Some(handle) = handle {
            return Ok(Some((range, handle)));
        }
        let draft = self.begin_draft()?;
        let handle = Arc::clone(&draft.handle);
        self.state().ahead.draft = Some(draft);
        Ok(Some((range, handle)))
    }

    /// A new temporary file beside the file.
    pub(super) fn begin_draft(&self) -> Result<Draft> {
        let held = self.shared.path(self.ino)?;
        let names = self.shared.tree.names(self.ino);
        let (directory, _) = names.first().ok_or(Error::Errno(libc::ENOENT))?;
        let temporary = self.shared.journal.temporary_beside(held.path())?;
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
        let opened = self.shared.source.open_found(&temporary, flags);
        self.shared.touch(self.ino, true);
        match opened {
            Ok((handle, new)) => Ok(Draft {
                directory: *directory,
                name: temporary.file_name().unwrap_or_default().to_owned(),
                handle: Arc::from(handle),
                new,
                sent: Ranges::default(),
            }),
            Err(error) => {
                self.remove_temporary(&held, temporary);
                Err(error)
            }
        }
    }

    /// Removes a file that may have been made though the source refused, or
    /// did not answer. `_held` keeps its path.
    fn remove_temporary(&self, _held: &crate::mount::Held<'_>, temporary: PathBuf) {
        match self.shared.source.unlink(&temporary) {
            // Else the journal still says that it is there.
            Err(error) if !error.is(libc::ENOENT) => {}
            _ => self.shared.journal.done(),
        }
    }

    /// The path of a temporary file, wherever its directory is by now.
    pub(super) fn draft_path(&self, draft: &Draft) -> Result<PathBuf> {
        let tree = &self.shared.tree;
        tree.path_below(draft.directory, &draft.name)
    }

    /// Removes a temporary file.
    pub(super) fn discard(&self, draft: Draft) {
        let Draft {
            directory,
            name,
            handle,
            ..
        } = draft;
        drop(handle);
        if let Ok(held) = self.shared.path_below(directory, &name) {
            let path = held.path().to_path_buf();
            self.remove_temporary(&held, path);
        }
        self.shared.known.touch(&[(directory, name)], true);
    }

    /// Ends sending and takes what there is of it, if that can still become
    /// the file.
    pub(super) fn take_draft(&self) -> Option<Draft> {
        let mut state = self.state();
        state.ahead.is_over = true;
        while state.ahead.is_busy {
            let waited = self.fetched.wait(state);
            state = waited.expect("no holder of the lock panics");
        }
        let mut draft = state.ahead.draft.take()?;
        draft.sent = std::mem::take(&mut state.ahead.sent);
        let is_spoiled = state.ahead.is_spoiled;
        drop(state);
        let names = self.shared.tree.names(self.ino);
        let is_beside = names
            .first()
            .is_some_and(|(directory, _)| *directory == draft.directory);
        if is_spoiled || !is_beside {
            self.discard(draft);
            return None;
        }
        Some(draft)
    }

    fn discard_spoiled(&self) {
        let spoiled = {
            let mut state = self.state();
            let is_spoiled = state.ahead.is_spoiled && !state.ahead.is_busy;
            state.ahead.draft.take_if(|_| is_spoiled)
        };
        if let Some(draft) = spoiled {
            self.discard(draft);
        }
    }

    /// Nothing that was sent ahead is needed any more.
    pub fn stop_sending(&self) {
        if let Some(draft) = self.take_draft() {
            self.discard(draft);
        }
    }

    /// Takes what was sent ahead out of a directory that is to be removed.
    /// Whether there was anything.
    pub fn leave(&self, directory: u64) -> bool {
        let is_there = {
            let state = self.state();
            let draft = state.ahead.draft.as_ref();
            draft.is_some_and(|draft| draft.directory == directory)
        };
        if is_there {
            self.stop_sending();
        }
        is_there
    }
}
