//! Locks on paths of the source. While a guard of a path lives, the path names the same
//! file. A thread that changes what a path names waits for earlier guards, and later
//! guards wait for the change.
//!
//! Only guards of related paths wait for each other. A call that hangs below
//! one directory blocks no change elsewhere.
//!
//! A thread that waited for a second guard while holding a first could wait for a
//! change that waits for the first. So a guard borrows the thread's [`PathTurn`],
//! and the borrow checker allows one guard at a time.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::source::Result;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, current_thread};

/// The right of one thread to lock paths, one guard at a time. A turn is created where
/// a request or a background thread begins, and passed on by `&mut`.
#[derive(Debug)]
pub(crate) struct PathTurn {
    /// Keeps the turn on its thread.
    _thread: PhantomData<*const ()>,
}

impl PathTurn {
    /// Begins a turn. The calling thread must have no other turn: [`PathLocks::lock`]
    /// panics if a thread locks through two.
    pub fn begin() -> Self {
        Self {
            _thread: PhantomData,
        }
    }
}

/// A lock that is held or waited for, in the order of arrival.
#[derive(Debug)]
struct Lock {
    number: u64,
    thread: ThreadId,
    paths: Vec<PathBuf>,
    is_exclusive: bool,
}

impl Lock {
    /// Returns whether the later of two locks has to wait for the earlier.
    fn conflicts(&self, other: &Self) -> bool {
        let changes = |changer: &Self, user: &Self| {
            changer.is_exclusive
                && user.paths.iter().any(|path| {
                    let mut changed = changer.paths.iter();
                    changed.any(|changed| path.starts_with(changed))
                })
        };
        changes(self, other) || changes(other, self)
    }
}

#[derive(Debug, Default)]
struct State {
    locks: Vec<Lock>,
    next: u64,
    /// Number of waiting threads. It is counted because waking costs a system call even
    /// if nobody waits.
    waiting: usize,
}

#[derive(Debug, Default)]
pub(crate) struct PathLocks {
    state: Mutex<State>,
    released: Condvar,
}

/// Paths that keep their meaning until the guard is dropped.
pub(crate) struct PathGuard<'a> {
    locks: &'a PathLocks,
    _turn: &'a mut PathTurn,
    number: u64,
    pub paths: Vec<PathBuf>,
}

impl PathGuard<'_> {
    /// Returns the first path, which is often the only one.
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }
}

impl PathLocks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Locks the paths that `find` returns, all at once. `find` must not wait. It runs
    /// again after a wait, because a change may have renamed the paths. With
    /// `is_exclusive`, nobody else has a guard of these paths or of anything below
    /// them, so the holder may change what they name.
    pub fn lock<'a>(
        &'a self,
        turn: &'a mut PathTurn,
        is_exclusive: bool,
        find: impl Fn() -> Result<Vec<PathBuf>>,
    ) -> Result<PathGuard<'a>> {
        let thread = current_thread().id();
        let mut state = self.state();
        if state.locks.iter().any(|lock| lock.thread == thread) {
            drop(state);
            panic!("a thread has one path turn");
        }
        let number = state.next;
        state.next += 1;
        state.locks.push(Lock {
            number,
            thread,
            paths: Vec::new(),
            is_exclusive,
        });
        // Dropping the guard removes the lock, even after an error.
        let mut guard = PathGuard {
            locks: self,
            _turn: turn,
            number,
            paths: Vec::new(),
        };
        loop {
            // No name changes while the state is locked.
            let paths = match find() {
                Ok(paths) => paths,
                Err(error) => {
                    drop(state);
                    return Err(error);
                }
            };
            let at = state.locks.iter().position(|lock| lock.number == number);
            let at = at.expect("a lock is there until its guard is dropped");
            state.locks[at].paths.clone_from(&paths);
            let (before, rest) = state.locks.split_at(at);
            if !before.iter().any(|earlier| earlier.conflicts(&rest[0])) {
                guard.paths = paths;
                return Ok(guard);
            }
            state.waiting += 1;
            state = self
                .released
                .wait(state)
                .expect("no holder of the lock panics");
            state.waiting -= 1;
        }
    }
}

impl Drop for PathGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.locks.state();
        state.locks.retain(|lock| lock.number != self.number);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.locks.released.notify_all();
        }
    }
}
