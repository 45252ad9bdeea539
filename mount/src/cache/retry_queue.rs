//! The queue of files whose write-back failed. Each copy gets a name, and its
//! write-back is retried as long as the mount lives.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::copy::Copy;
use super::file::CachedFile;
use super::journal::hash;
use super::kept::{self, Base, Claimed, Record, numbers, time};
use super::write_back_state::{Changes, Outcome};
use crate::mount::PathTurn;
use crate::private_directory;
use crate::ranges::Ranges;
use crate::source::{Error, OpenReply, Result};

/// First delay between two attempts. It grows to `RETRY_MAX`.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct RetryQueue {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Arc<CachedFile>>,
    is_running: bool,
    is_over: bool,
}

impl RetryQueue {
    /// Puts a file whose write-back failed into the queue, and starts to retry.
    pub fn keep(self: &Arc<Self>, file: &Arc<CachedFile>, error: Error) {
        let shared = &file.shared;
        let mut state = self.state.lock();
        // The queue stays locked, so that a successful retry cannot remove the file
        // between these two steps.
        if !file.mark_kept() {
            return;
        }
        if state.waiting.insert(file.ino, Arc::clone(file)).is_none() {
            shared.tree.pin(file.ino);
        }
        self.run(&mut state);
        drop(state);
        let Some(kept) = file.name_copy(error) else {
            return;
        };
        let place = match kept {
            Ok(name) => format!("in {}", name.display()),
            Err(error) => format!("in memory (a file cannot hold it: {error})"),
        };
        let shown = file.shared.full_name(file.ino);
        let state = if file.state.lock().is_torn {
            "; before that, the file at the source may have only part of it"
        } else {
            ""
        };
        shared.note(&format!(
            "cannot write back {shown}: {error}; its content is kept {place} and will be sent \
             again{state}"
        ));
    }

    /// Queues a file that an earlier mount kept.
    pub fn take(self: &Arc<Self>, file: &Arc<CachedFile>) {
        let mut state = self.state.lock();
        if state.waiting.insert(file.ino, Arc::clone(file)).is_none() {
            file.shared.tree.pin(file.ino);
        }
        self.run(&mut state);
    }

    fn run(self: &Arc<Self>, state: &mut State) {
        if !state.is_running && !state.is_over {
            let queue = Arc::clone(self);
            // If no thread can be started, the next failure or the end of the mount
            // retries.
            let retrying = std::thread::Builder::new().spawn(move || queue.retry());
            state.is_running = retrying.is_ok();
        }
    }

    pub fn get(&self, ino: u64) -> Option<Arc<CachedFile>> {
        self.state.lock().waiting.get(&ino).cloned()
    }

    pub fn all(&self) -> Vec<Arc<CachedFile>> {
        self.state.lock().waiting.values().cloned().collect()
    }

    /// Retries all waiting files, for the last time if `is_last`. Returns how many
    /// files still wait.
    pub fn try_all(&self, is_last: bool) -> usize {
        for file in self.all() {
            let shown = file.shared.full_name(file.ino);
            match file.write_back(&mut PathTurn::begin(), true) {
                Ok(Outcome::Done)
                    if self.release(&file) && !file.state.lock().progress.is_removed() =>
                {
                    file.shared.note(&format!("wrote back {shown} after all"));
                }
                Ok(Outcome::Removed) => drop(self.release(&file)),
                Ok(Outcome::Done) => {}
                Err(error) => file.keep_again(error),
            }
        }
        let mut state = self.state.lock();
        state.is_over |= is_last;
        self.ended.notify_all();
        state.waiting.len()
    }

    /// Removes a file from the queue, unless the file was put in again meanwhile.
    fn release(&self, file: &CachedFile) -> bool {
        let mut state = self.state.lock();
        let is_kept = file.state.lock().progress.is_kept();
        let is_released = !is_kept && state.waiting.remove(&file.ino).is_some();
        drop(state);
        if is_released {
            file.shared.tree.unpin(file.ino);
        }
        is_released
    }

    fn retry(&self) {
        let mut pause = RETRY_MIN;
        loop {
            let mut state = self.state.lock();
            let goes_on = |state: &mut State| !state.is_over;
            self.ended.wait_while_for(&mut state, goes_on, pause);
            if state.is_over || state.waiting.is_empty() {
                state.is_running = false;
                return;
            }
            drop(state);
            self.try_all(false);
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}

impl CachedFile {
    fn mark_kept(&self) -> bool {
        let mut state = self.state.lock();
        state.progress.keep();
        state.progress.is_kept()
    }

    /// Keeps a file after another failed attempt. If the disk was full before, the copy
    /// may get a name now, and then outlives the mount.
    fn keep_again(&self, error: Error) {
        let is_unnamed = self.mark_kept() && !self.state.lock().copy.is_named();
        if is_unnamed && let Some(Ok(place)) = self.name_copy(error) {
            let shown = self.shared.full_name(self.ino);
            let place = place.display();
            self.shared
                .note(&format!("the content of {shown} is now kept in {place}"));
        }
    }

    /// Gives the copy a name, which contains the file's name, in the directory of kept
    /// copies. Returns `None` if another write-back has sent all changes meanwhile.
    fn name_copy(&self, error: Error) -> Option<Result<PathBuf>> {
        let path = self.shared.tree.path(self.ino).unwrap_or_default();
        let mut state = self.state.lock();
        if !state.progress.is_changed() {
            return None;
        }
        let source = hash(self.shared.source.name().as_bytes());
        let base = path.file_name().unwrap_or_default().to_string_lossy();
        // The name only has characters that are easy to type and have no meaning in a
        // shell.
        let plain = |letter: char| match letter {
            '.' | '-' | '_' => letter,
            _ if letter.is_alphanumeric() => letter,
            _ => '_',
        };
        let base: String = base.chars().take(40).map(plain).collect();
        let (mount, ino) = (self.shared.journal.token(), self.ino);
        let name = format!("{source:016x}-{mount:016x}-{ino}-{base}");
        let directory = kept::directory(&self.shared.directory);
        // The copy lacks blocks that were never fetched. The source has them unchanged.
        let made = private_directory::make(&directory).map_err(Error::from);
        Some(made.and_then(|()| {
            let is_new = !state.copy.is_named();
            let place = state.copy.keep(&directory.join(name))?;
            let recorded = self.record(&state, path, error).write(&place);
            if recorded.is_err() && is_new {
                // Nobody would find content without a record.
                self.release_kept(&mut state);
            }
            recorded?;
            Ok(place)
        }))
    }

    fn record(&self, state: &super::file::State, path: PathBuf, error: Error) -> Record {
        let (atime, mtime) = state.progress.times();
        Record {
            source: self.shared.source.name(),
            path: path.into_os_string(),
            size_bytes: state.progress.size_bytes(),
            kept_at_s: Record::now_s(),
            why: error.to_string(),
            base: state.version.as_ref().map(Base::from_version),
            // The retry thread may be sending right now, and may be killed.
            dirty: state.progress.unsent().iter().collect(),
            present: state.present.iter().collect(),
            valid_bytes: state.valid_bytes,
            mtime: mtime.map(numbers),
            atime: atime.map(numbers),
        }
    }

    /// Adopts a copy that an earlier mount kept. `opened` is the source's file,
    /// which has not changed since.
    pub(super) fn adopt(&self, kept: Claimed, opened: OpenReply) -> Result<()> {
        let Claimed {
            record,
            place,
            content,
        } = kept;
        let mut state = self.state.lock();
        state.begin(&opened.attributes)?;
        content.set_len(record.size_bytes)?;
        state.is_of_earlier_mount = true;
        state.copy = Copy::named(&self.shared.directory, content, place);
        // A record may be damaged, and nothing past the end can be sent.
        let within = |ranges: Vec<Range<u64>>| {
            let mut ranges: Ranges = ranges.into_iter().collect();
            ranges.cut(record.size_bytes);
            ranges
        };
        state.present.extend(&within(record.present));
        state.valid_bytes = record.valid_bytes.min(opened.attributes.size_bytes);
        state.handle = Some(Arc::from(opened.handle));
        state.progress.adopt(Changes {
            dirty: within(record.dirty),
            size_bytes: record.size_bytes,
            mtime: record.mtime.map(time),
            atime: record.atime.map(time),
        });
        Ok(())
    }

    /// Removes the kept copy and its record.
    pub(super) fn release_kept(&self, state: &mut super::file::State) {
        if let Some(name) = state.copy.take_name() {
            kept::remove(&name);
        }
    }
}
