//! Paths in use with the source. A path means one file as long as somebody
//! holds it: whoever changes what it means waits, and is waited for.
//!
//! Only those wait for each other whom it concerns: a call that hangs below
//! one directory does not keep names elsewhere from being changed, nor do the
//! changes keep calls elsewhere.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::source::Result;

/// One use, in the order of arrival.
#[derive(Debug)]
struct Use {
    number: u64,
    paths: Vec<PathBuf>,
    is_alone: bool,
}

impl Use {
    /// Whether the later of two has to wait for the earlier.
    fn disturbs(&self, other: &Self) -> bool {
        let changes = |changer: &Self, user: &Self| {
            changer.is_alone
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
    uses: Vec<Use>,
    next: u64,
    /// How many wait for the end of an earlier use: to wake nobody costs a
    /// system call, too.
    waiting: usize,
}

/// All paths in use.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    state: Mutex<State>,
    ended: Condvar,
}

/// Paths that mean what they do until this is dropped.
pub(crate) struct Held<'a> {
    all: &'a Paths,
    number: u64,
    pub paths: Vec<PathBuf>,
}

impl Held<'_> {
    /// The path, if it is one; else the first.
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }
}

impl Paths {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Holds what `find` finds. `find` is asked again after a wait, as the
    /// paths may have changed meanwhile; it must not wait for anything itself.
    pub fn hold(
        &self,
        is_alone: bool,
        find: impl Fn() -> Result<Vec<PathBuf>>,
    ) -> Result<Held<'_>> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.uses.push(Use {
            number,
            paths: Vec::new(),
            is_alone,
        });
        // Ends the use whatever comes, and gives the paths to the caller.
        let mut held = Held {
            all: self,
            number,
            paths: Vec::new(),
        };
        loop {
            // With the lock held no change of names comes in between.
            let paths = match find() {
                Ok(paths) => paths,
                Err(error) => {
                    drop(state);
                    return Err(error);
                }
            };
            let at = state.uses.iter().position(|found| found.number == number);
            let at = at.expect("a use is there until it ends");
            state.uses[at].paths.clone_from(&paths);
            let (before, rest) = state.uses.split_at(at);
            if !before.iter().any(|earlier| earlier.disturbs(&rest[0])) {
                held.paths = paths;
                return Ok(held);
            }
            state.waiting += 1;
            state = self
                .ended
                .wait(state)
                .expect("no holder of the lock panics");
            state.waiting -= 1;
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.uses.retain(|found| found.number != self.number);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.all.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn at(path: &str) -> impl Fn() -> Result<Vec<PathBuf>> {
        let path = PathBuf::from(path);
        move || Ok(vec![path.clone()])
    }

    #[test]
    fn a_change_waits_for_users_below_and_for_nobody_else() {
        let paths = Paths::default();
        let user = paths.hold(false, at("a/b/c")).unwrap();
        let root = paths.hold(false, at("")).unwrap();
        drop(paths.hold(true, at("a/x")).unwrap());
        drop(paths.hold(true, at("ab")).unwrap());
        let is_changed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let changer = scope.spawn(|| {
                let held = paths.hold(true, at("a/b")).unwrap();
                is_changed.store(true, Ordering::SeqCst);
                drop(held);
            });
            while paths.state().uses.len() < 3 {
                std::thread::yield_now();
            }
            assert!(!is_changed.load(Ordering::SeqCst));
            drop(user);
            changer.join().unwrap();
        });
        drop(root);
        assert!(paths.state().uses.is_empty());
    }

    #[test]
    fn a_path_is_found_again_after_a_wait() {
        let paths = Paths::default();
        let is_moved = AtomicBool::new(false);
        let change = paths.hold(true, at("old")).unwrap();
        std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                let find = || match is_moved.load(Ordering::SeqCst) {
                    true => at("new")(),
                    false => at("old")(),
                };
                paths.hold(false, find).unwrap().paths.clone()
            });
            while paths.state().uses.len() < 2 {
                std::thread::yield_now();
            }
            is_moved.store(true, Ordering::SeqCst);
            drop(change);
            assert_eq!(user.join().unwrap(), [PathBuf::from("new")]);
        });
    }

    #[test]
    fn a_path_that_is_not_found_leaves_no_use_behind() {
        let paths = Paths::default();
        let none = || Err(crate::source::Error::Errno(libc::ENOENT));
        assert!(paths.hold(false, none).is_err());
        assert!(paths.state().uses.is_empty());
    }
}
