//! Model of path locks: no deadlock, and no use of a path while its meaning changes.

use std::path::PathBuf;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread::spawn;

use crate::check;
use crate::path_locks::{PathLocks, PathTurn};
use crate::source::{Error, Result};

fn paths(names: &[&str]) -> Result<Vec<PathBuf>> {
    Ok(names.iter().map(PathBuf::from).collect())
}

fn check_locks<T: Default + 'static>(
    model: impl Fn(Arc<PathLocks>, Arc<T>) + Sync + Send + 'static,
) {
    check(move || model(Arc::new(PathLocks::default()), Arc::new(T::default())));
}

#[test]
fn a_path_is_never_used_while_it_or_a_directory_above_is_changed() {
    check_locks(|locks, users: Arc<AtomicUsize>| {
        let (user_locks, user_count) = (locks.clone(), users.clone());
        let user = spawn(move || {
            let mut turn = PathTurn::begin();
            for _ in 0..2 {
                let guard = user_locks.lock(&mut turn, false, || paths(&["a/b/c"]));
                user_count.fetch_add(1, Ordering::SeqCst);
                user_count.fetch_sub(1, Ordering::SeqCst);
                drop(guard);
            }
        });
        let mut turn = PathTurn::begin();
        let guard = locks.lock(&mut turn, true, || paths(&["a/b"]));
        assert_eq!(users.load(Ordering::SeqCst), 0);
        drop(guard);
        user.join().unwrap();
    });
}

#[test]
fn two_renames_and_a_user_of_both_paths_always_end() {
    check_locks(|locks, _: Arc<()>| {
        let threads = [["a/x", "b/x"], ["b/x", "a/x"]].map(|names| {
            let locks = locks.clone();
            spawn(move || {
                let mut turn = PathTurn::begin();
                drop(locks.lock(&mut turn, true, || paths(&names)));
            })
        });
        let mut turn = PathTurn::begin();
        drop(locks.lock(&mut turn, false, || paths(&["b/x", "a/x"])));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_path_is_found_again_after_a_rename_that_was_waited_for() {
    check_locks(|locks, is_moved: Arc<AtomicBool>| {
        let (renamer_locks, moves) = (locks.clone(), is_moved.clone());
        let renamer = spawn(move || {
            let mut turn = PathTurn::begin();
            let guard = renamer_locks.lock(&mut turn, true, || paths(&["old", "new"]));
            moves.store(true, Ordering::SeqCst);
            drop(guard);
        });
        let mut turn = PathTurn::begin();
        let find = || {
            if is_moved.load(Ordering::SeqCst) {
                paths(&["new"])
            } else {
                paths(&["old"])
            }
        };
        let guard = locks.lock(&mut turn, false, find).unwrap();
        let name = guard.path().to_path_buf();
        // The rename cannot happen before the guard is dropped.
        assert_eq!(find().unwrap(), [name]);
        drop(guard);
        renamer.join().unwrap();
    });
}

#[test]
fn a_path_that_is_not_found_leaves_no_lock_behind() {
    check_locks(|locks, _: Arc<()>| {
        let mut turn = PathTurn::begin();
        assert!(locks.lock(&mut turn, true, || Err(Error::Lost)).is_err());
        drop(locks.lock(&mut turn, true, || paths(&["a"])));
    });
}

#[test]
#[should_panic(expected = "a thread has one path turn")]
fn a_second_turn_on_a_thread_is_found_when_it_locks() {
    check_locks(|locks, _: Arc<()>| {
        let (mut first, mut second) = (PathTurn::begin(), PathTurn::begin());
        let _guard = locks.lock(&mut first, false, || paths(&["a"]));
        let _other = locks.lock(&mut second, false, || paths(&["b"]));
    });
}
