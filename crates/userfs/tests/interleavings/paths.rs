//! Path locks: no deadlock, and no use of a path while its meaning changes.

use std::path::PathBuf;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::path_locks::{PathLocks, PathTurn};
use crate::source::{Error, Result};
use crate::{check, share, start};

fn paths(names: &[&str]) -> Result<Vec<PathBuf>> {
    Ok(names.iter().map(PathBuf::from).collect())
}

#[test]
fn a_path_is_never_used_while_it_or_a_directory_above_is_changed() {
    check(|| {
        let locks = share(PathLocks::default());
        let users = share(AtomicUsize::new(0));
        let user = {
            let (locks, users) = (locks.clone(), users.clone());
            start(move || {
                let mut turn = PathTurn::begin();
                for _ in 0..2 {
                    let guard = locks.lock(&mut turn, false, || paths(&["a/b/c"]));
                    users.fetch_add(1, Ordering::SeqCst);
                    users.fetch_sub(1, Ordering::SeqCst);
                    drop(guard);
                }
            })
        };
        let mut turn = PathTurn::begin();
        let guard = locks.lock(&mut turn, true, || paths(&["a/b"]));
        assert_eq!(users.load(Ordering::SeqCst), 0);
        drop(guard);
        user.join().unwrap();
    });
}

#[test]
fn two_renames_and_a_user_of_both_paths_always_end() {
    check(|| {
        let locks = share(PathLocks::default());
        let rename = |from: &'static str, to: &'static str| {
            let locks = locks.clone();
            start(move || {
                let mut turn = PathTurn::begin();
                drop(locks.lock(&mut turn, true, || paths(&[from, to])));
            })
        };
        let threads = [rename("a/x", "b/x"), rename("b/x", "a/x")];
        let mut turn = PathTurn::begin();
        drop(locks.lock(&mut turn, false, || paths(&["b/x", "a/x"])));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_path_is_found_again_after_a_rename_that_was_waited_for() {
    check(|| {
        let locks = share(PathLocks::default());
        let is_moved = share(AtomicBool::new(false));
        let renamer = {
            let (locks, is_moved) = (locks.clone(), is_moved.clone());
            start(move || {
                let mut turn = PathTurn::begin();
                let guard = locks.lock(&mut turn, true, || paths(&["old", "new"]));
                is_moved.store(true, Ordering::SeqCst);
                drop(guard);
            })
        };
        let mut turn = PathTurn::begin();
        let find = || match is_moved.load(Ordering::SeqCst) {
            true => paths(&["new"]),
            false => paths(&["old"]),
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
    check(|| {
        let locks = share(PathLocks::default());
        let mut turn = PathTurn::begin();
        assert!(locks.lock(&mut turn, true, || Err(Error::Lost)).is_err());
        drop(locks.lock(&mut turn, true, || paths(&["a"])));
    });
}

#[test]
#[should_panic(expected = "a thread has one path turn")]
fn a_second_turn_on_a_thread_is_found_when_it_locks() {
    check(|| {
        let locks = share(PathLocks::default());
        let (mut first, mut second) = (PathTurn::begin(), PathTurn::begin());
        let _guard = locks.lock(&mut first, false, || paths(&["a"]));
        let _other = locks.lock(&mut second, false, || paths(&["b"]));
    });
}
