//! Files whose write-back failed: each is kept under a name, and tried again as
//! long as the mount lives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::file::CachedFile;
use super::journal::hash;
use super::write_back_state::Outcome;
use crate::mount::{PathTurn, Shared};
use crate::source::Error;

/// How long to wait between two attempts, at first and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Files that wait for their source.
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
    /// Keeps a file whose write-back failed, and begins to try again.
    pub fn keep(self: &Arc<Self>, file: &Arc<CachedFile>, error: Error) {
        let shared = &file.shared;
        let mut state = self.state.lock();
        // With the queue locked, a retry that succeeds cannot remove the file
        // between the two.
        let Some(kept) = file.keep() else {
            return;
        };
        if state.waiting.insert(file.ino, Arc::clone(file)).is_none() {
            shared.tree.pin(file.ino);
        }
        if !state.is_running && !state.is_over {
            state.is_running = true;
            let queue = Arc::clone(self);
            std::thread::spawn(move || queue.retry());
        }
        drop(state);
        let shown = file.shown();
        match kept {
            Ok(name) => shared.note(&format!(
                "cannot write back {shown}: {error}; its content is kept in {} and tried again",
                name.display()
            )),
            Err(kept) => shared.note(&format!(
                "cannot write back {shown}: {error}; its content is kept in memory, as {kept}, \
                 and tried again"
            )),
        }
    }

    /// Whether a file waits.
    pub fn holds(&self, ino: u64) -> bool {
        self.state.lock().waiting.contains_key(&ino)
    }

    /// Tries all that waits once more, for the last time if `is_last`.
    /// Returns how many still wait.
    pub fn try_all(&self, is_last: bool) -> usize {
        let files: Vec<_> = self.state.lock().waiting.values().cloned().collect();
        for file in files {
            let shown = file.shown();
            match file.write_back(&mut PathTurn::begin(), true) {
                Ok(Outcome::Done) if self.release(&file) && !file.is_removed() => {
                    file.shared.note(&format!("wrote back {shown} after all"));
                }
                Ok(Outcome::Removed) => drop(self.release(&file)),
                Ok(Outcome::Done) => {}
                Err(_) => file.still_kept(),
            }
        }
        let mut state = self.state.lock();
        state.is_over |= is_last;
        self.ended.notify_all();
        state.waiting.len()
    }

    /// Takes a file out of the queue, unless it was kept again meanwhile.
    fn release(&self, file: &CachedFile) -> bool {
        let mut state = self.state.lock();
        let is_released = !file.is_kept() && state.waiting.remove(&file.ino).is_some();
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
    /// The name for people.
    fn shown(&self) -> String {
        let path = self.shared.tree.path(self.ino).unwrap_or_default();
        self.shared.full_name(&path)
    }

    fn is_kept(&self) -> bool {
        self.state.lock().progress.is_kept()
    }

    fn is_removed(&self) -> bool {
        self.state.lock().progress.is_removed()
    }

    fn still_kept(&self) {
        self.state.lock().progress.keep();
    }

    /// Gives the copy a name in the directory of copies that says which file
    /// it is of. None if another write-back has brought all changes meanwhile.
    fn keep(&self) -> Option<Result<PathBuf, Error>> {
        let path = self.shared.tree.path(self.ino).unwrap_or_default();
        let mut state = self.state.lock();
        if !state.progress.is_changed() {
            return None;
        }
        state.progress.keep();
        let source = hash(self.shared.source.name().as_bytes());
        let base = path.file_name().unwrap_or_default().to_string_lossy();
        let base: String = base.chars().take(60).collect();
        let process = std::process::id();
        let name = format!("{source:016x}-{process}-{}-{base}", self.ino);
        let directory = Shared::kept(&self.shared.directory);
        // What of a file by block was never fetched is not in the copy: it is
        // at the source, where it is not touched.
        let kept = std::fs::create_dir_all(&directory)
            .and_then(|()| state.copy.keep(&directory.join(name)));
        Some(match kept {
            Ok(()) => Ok(state.copy.name().unwrap_or(&directory).to_path_buf()),
            Err(error) => Err(error.into()),
        })
    }
}
