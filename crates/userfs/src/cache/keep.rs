//! What could not be written back when its last user closed it: kept under a
//! name, tried again, and never given up while the mount lives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::file::CachedFile;
use super::journal::hash;
use crate::mount::Shared;
use crate::source::Error;

/// How long to wait between two attempts, at first and at most.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Files that wait for their source.
#[derive(Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Arc<CachedFile>>,
    is_running: bool,
    is_over: bool,
}

impl Keeper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Keeps a file whose write-back failed, and begins to try again.
    pub fn keep(self: &Arc<Self>, file: &Arc<CachedFile>, error: Error) {
        let shared = &file.shared;
        let path = shared.tree.path(file.ino).unwrap_or_default();
        let shown = shared.full_name(&path);
        match file.keep() {
            Ok(name) => shared.note(&format!(
                "cannot write back {shown}: {error}; its content is kept in {} and tried again",
                name.display()
            )),
            Err(kept) => shared.note(&format!(
                "cannot write back {shown}: {error}; its content is kept in memory, as {kept}, \
                 and tried again"
            )),
        }
        let mut state = self.state();
        if state.waiting.insert(file.ino, Arc::clone(file)).is_none() {
            shared.tree.pin(file.ino);
        }
        if !state.is_running && !state.is_over {
            state.is_running = true;
            let keeper = Arc::clone(self);
            std::thread::spawn(move || keeper.retry());
        }
    }

    /// Whether a file waits.
    pub fn holds(&self, ino: u64) -> bool {
        self.state().waiting.contains_key(&ino)
    }

    /// Tries all that waits once more, for the last time if `is_last`.
    /// Returns how many still wait.
    pub fn try_all(&self, is_last: bool) -> usize {
        let files: Vec<_> = self.state().waiting.values().cloned().collect();
        for file in files {
            if file.write_back(true).is_ok() {
                let path = file.shared.tree.path(file.ino).unwrap_or_default();
                let shown = file.shared.full_name(&path);
                file.shared.note(&format!("wrote back {shown} after all"));
                if self.state().waiting.remove(&file.ino).is_some() {
                    file.shared.tree.unpin(file.ino);
                }
            }
        }
        let mut state = self.state();
        state.is_over |= is_last;
        self.ended.notify_all();
        state.waiting.len()
    }

    fn retry(&self) {
        let mut pause = RETRY_MIN;
        loop {
            let state = self.state();
            let goes_on = |state: &mut State| !state.is_over;
            let waited = self.ended.wait_timeout_while(state, pause, goes_on);
            let (mut state, _) = waited.expect("no holder of the lock panics");
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
    /// Gives the copy a name in the directory of copies that says which file
    /// it is of.
    fn keep(&self) -> Result<PathBuf, Error> {
        let path = self.shared.tree.path(self.ino).unwrap_or_default();
        let source = hash(self.shared.source.name().as_bytes());
        let directory = Shared::kept(&self.shared.directory);
        std::fs::create_dir_all(&directory)?;
        let base = path.file_name().unwrap_or_default().to_string_lossy();
        let base: String = base.chars().take(60).collect();
        let name = directory.join(format!(
            "{source:016x}-{}-{}-{base}",
            std::process::id(),
            self.ino
        ));
        // What of a file by block was never fetched is not in the copy: it is
        // at the source, where it is not touched.
        let mut state = self.state();
        state.copy.keep(&name)?;
        Ok(state.copy.name().unwrap_or(&name).to_path_buf())
    }
}
