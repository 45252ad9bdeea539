//! Overlapping calls, each of which once got a wrong answer, or none.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use crate::mounts::common::{
    CACHED, LONG, Mounted, REMOTE_CACHED, Setting, await_no_temporaries, await_that, close, each,
    set_mode, temporaries, watched, without_new_processes,
};

fn each_cached(test: impl Fn(&mut Mounted)) {
    each(&watched(CACHED), test);
}

/// Time for another call while one is held. If it has to wait for the held call, it ends
/// afterwards.
const MEANWHILE: Duration = Duration::from_secs(2);

/// Runs a call while another is held. Releases the held one when the call has returned or
/// seems to wait.
fn meanwhile<T: Send>(mounted: &Mounted, held: &str, call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let calling = scope.spawn(move || {
            let outcome = call();
            let _ = sender.send(());
            outcome
        });
        let _ = receiver.recv_timeout(MEANWHILE);
        mounted.control.let_go(held);
        calling.join().unwrap()
    })
}

fn closing<'scope>(
    scope: &'scope Scope<'scope, '_>,
    file: File,
) -> ScopedJoinHandle<'scope, rustix::io::Result<()>> {
    scope.spawn(move || close(file))
}

/// Returns an open file whose content differs from that at the source.
fn changed(mounted: &Mounted, name: &str) -> File {
    fs::write(mounted.behind(name), vec![1; 100_000]).unwrap();
    let file = mounted.open(name);
    file.write_all_at(&[2; 100_000], 0).unwrap();
    file
}

fn assert_nothing_kept(mounted: &Mounted) {
    for directory in [&mounted.source, &mounted.behind("new")] {
        if directory.is_dir() {
            await_no_temporaries(directory);
        }
    }
    assert_eq!(mounted.kept(), Vec::<PathBuf>::new());
    assert_eq!(mounted.said(), Vec::<String>::new());
}

const NEW: Option<&[u8]> = Some(&[2; 100_000]);

/// Changes and closes a file, runs `change` while its content is on the way to the source,
/// and checks what is there in the end.
fn check_change_while_closing(
    name: &str,
    change: impl Fn(&Mounted) + Sync,
    expected: &[(&str, Option<&[u8]>)],
) {
    each_cached(|mounted| {
        if let Some((directory, _)) = name.split_once('/') {
            fs::create_dir(mounted.path(directory)).unwrap();
        }
        // A child process would close its copy of the file descriptor.
        let alone = without_new_processes();
        let file = changed(mounted, name);
        mounted.control.hold("write", "");
        std::thread::scope(|scope| {
            let closed = closing(scope, file);
            mounted.control.await_held("write");
            meanwhile(mounted, "write", || change(mounted));
            assert_eq!(closed.join().unwrap(), Ok(()), "{:?}", mounted.setting);
        });
        drop(alone);
        for (name, content) in expected {
            match content {
                Some(content) => mounted.assert_behind(name, content),
                None => assert!(!mounted.behind(name).exists() && !mounted.path(name).exists()),
            }
        }
        assert_nothing_kept(mounted);
    });
}

fn rename(mounted: &Mounted, from: &str, to: &str) {
    fs::rename(mounted.path(from), mounted.path(to)).unwrap();
}

#[test]
fn a_file_that_is_renamed_while_it_is_written_back_has_its_content_under_the_new_name() {
    let rename = |mounted: &Mounted| rename(mounted, "old", "new");
    check_change_while_closing("old", rename, &[("old", None), ("new", NEW)]);
}

#[test]
fn a_file_whose_directory_is_renamed_while_it_is_written_back_has_its_content_there() {
    let rename = |mounted: &Mounted| rename(mounted, "old", "new");
    check_change_while_closing("old/f", rename, &[("old", None), ("new/f", NEW)]);
}

#[test]
fn a_file_that_is_removed_while_it_is_written_back_is_gone_and_its_close_succeeds() {
    let remove = |mounted: &Mounted| fs::remove_file(mounted.path("f")).unwrap();
    check_change_while_closing("f", remove, &[("f", None)]);
}

#[test]
fn a_file_that_is_replaced_by_rename_while_it_is_written_back_stays_replaced() {
    let replace = |mounted: &Mounted| {
        fs::write(mounted.behind("other"), b"other").unwrap();
        rename(mounted, "other", "f");
    };
    check_change_while_closing("f", replace, &[("f", Some(b"other"))]);
}

/// Returns an open file of which the source lacks only the times. They were set while
/// the content was on its way.
fn with_new_times(mounted: &Mounted) -> File {
    let file = changed(mounted, "f");
    let content = file.try_clone().unwrap();
    mounted.control.hold("write", "");
    std::thread::scope(|scope| {
        let closed = closing(scope, content);
        mounted.control.await_held("write");
        set_times(&file).unwrap();
        mounted.control.let_go("write");
        assert_eq!(closed.join().unwrap(), Ok(()), "{:?}", mounted.setting);
    });
    file
}

fn set_times(file: &File) -> std::io::Result<()> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_times(FileTimes::new().set_accessed(time).set_modified(time))
}

#[test]
fn times_alone_of_a_file_that_is_removed_fail_nothing_and_keep_no_copy() {
    each(&watched(CACHED.iter().chain(REMOTE_CACHED)), |mounted| {
        let remove = || fs::remove_file(mounted.path("f")).unwrap();
        let alone = without_new_processes();

        // The file is removed before the times are sent.
        let file = with_new_times(mounted);
        remove();
        assert_eq!(close(file), Ok(()), "{:?}", mounted.setting);

        // The file is removed while the times are sent.
        let file = with_new_times(mounted);
        mounted.control.hold("set_handle", "");
        std::thread::scope(|scope| {
            let closed = closing(scope, file);
            mounted.control.await_held("set_handle");
            meanwhile(mounted, "set_handle", remove);
            assert_eq!(closed.join().unwrap(), Ok(()), "{:?}", mounted.setting);
        });

        // The file is removed before the times are set.
        let file = changed(mounted, "f");
        file.sync_all().unwrap();
        remove();
        set_times(&file).unwrap();
        assert_eq!(close(file), Ok(()), "{:?}", mounted.setting);
        drop(alone);
        assert!(!mounted.behind("f").exists());
        assert_nothing_kept(mounted);
    });
}

#[test]
fn nothing_is_kept_of_a_file_that_is_removed_after_its_write_back_failed() {
    each_cached(|mounted| {
        let alone = without_new_processes();
        let file = changed(mounted, "f");
        mounted.control.fail("write", "", libc::ENOSPC);
        assert_eq!(close(file), Err(Errno::NOSPC));
        drop(alone);
        await_that("a kept copy", || mounted.kept().len() == 1);
        fs::remove_file(mounted.path("f")).unwrap();
        await_that("the end of the kept copy", || mounted.kept().is_empty());
        mounted.control.succeed("write");
        // This is longer than the pause before the next attempt.
        std::thread::sleep(Duration::from_secs(3));
        let said = mounted.said();
        let is_told = said.iter().any(|line| line.contains("wrote back"));
        assert!(!is_told, "{said:?}");
        assert!(!mounted.behind("f").exists());
    });
}

#[test]
fn a_file_whose_write_back_fails_again_while_the_retry_succeeds_is_tried_again() {
    each_cached(|mounted| {
        let alone = without_new_processes();
        let file = changed(mounted, "f");
        mounted.control.fail("write", "", libc::ENOSPC);
        mounted.control.hold("note", "after all");
        assert_eq!(close(file), Err(Errno::NOSPC));
        mounted.control.succeed("write");
        mounted.control.await_held("note");
        mounted.control.fail("write", "", libc::ENOSPC);
        let file = mounted.open("f");
        file.write_all_at(&[3; 100_000], 0).unwrap();
        let closed = meanwhile(mounted, "note", || close(file));
        assert_eq!(closed, Err(Errno::NOSPC));
        drop(alone);
        mounted.control.succeed("write");
        await_that("the second content", || {
            mounted.read_behind("f") == [3; 100_000]
        });
        await_that("the end of the kept copy", || mounted.kept().is_empty());
    });
}

#[test]
fn a_file_that_gets_another_name_while_one_is_removed_does_not_lose_what_is_closed_then() {
    each_cached(|mounted| {
        let alone = without_new_processes();
        let file = changed(mounted, "f");
        mounted.control.hold("unlink", "f");
        std::thread::scope(|scope| {
            let removed = scope.spawn(|| fs::remove_file(mounted.path("f")));
            mounted.control.await_held("unlink");
            fs::hard_link(mounted.behind("f"), mounted.behind("g")).unwrap();
            mounted.control.let_go("unlink");
            removed.join().unwrap().unwrap();
        });
        assert_eq!(close(file), Ok(()));
        drop(alone);
        mounted.assert_behind("g", [2; 100_000]);
    });
}

#[test]
fn a_reader_does_not_take_a_writers_way_to_a_file_that_loses_the_name_it_had() {
    each_cached(|mounted| {
        fs::write(mounted.behind("f"), b"begin").unwrap();
        fs::hard_link(mounted.behind("f"), mounted.behind("g")).unwrap();
        let alone = without_new_processes();
        let appended = |path: PathBuf| File::options().append(true).open(path).unwrap();
        let mut file = appended(mounted.path("f"));
        // The source's file now has a version that the mount does not know.
        appended(mounted.behind("f")).write_all(b", more").unwrap();
        mounted.assert_read("f", b"begin, more");
        fs::remove_file(mounted.path("f")).unwrap();
        file.write_all(b", end").unwrap();
        assert_eq!(close(file), Ok(()));
        drop(alone);
        let content = String::from_utf8(mounted.read_behind("g")).unwrap();
        let is_whole = content.starts_with("begin") && content.ends_with(", end");
        assert!(is_whole, "{:?}: {content}", mounted.setting);
    });
}

#[test]
fn rmdir_and_a_rename_above_it_end_though_a_file_is_still_sent_to_there() {
    each(&watched(&REMOTE_CACHED[..1]), |mounted| {
        fs::create_dir_all(mounted.path("above/middle/d")).unwrap();
        let alone = without_new_processes();
        let mut file = File::create(mounted.path("above/middle/d/f")).unwrap();
        file.write_all(&vec![5; 4 << 20]).unwrap();
        let directory = mounted.behind("above/middle/d");
        await_that("data sent ahead", || temporaries(&directory).len() == 1);
        let to = mounted.path("above/middle/f");
        fs::rename(mounted.path("above/middle/d/f"), to).unwrap();
        mounted.control.hold("remove_directory", "d");
        let (sender, receiver) = channel();
        let (from, to) = (mounted.path("above"), mounted.path("later"));
        let doomed = mounted.path("above/middle/d");
        let ended = sender.clone();
        std::thread::spawn(move || sender.send(fs::remove_dir(doomed)));
        mounted.control.await_held("remove_directory");
        std::thread::spawn(move || ended.send(fs::rename(from, to)));
        // Waits until the rename waits for the rmdir. If the rename comes later, the
        // test covers less.
        std::thread::sleep(Duration::from_millis(500));
        mounted.control.let_go("remove_directory");
        let outcomes = [(); 2].map(|()| receiver.recv_timeout(LONG / 4));
        if outcomes.iter().any(Result::is_err) {
            mounted.kill();
            panic!("rmdir and rename wait for each other: {outcomes:?}");
        }
        for outcome in outcomes {
            outcome.unwrap().unwrap();
        }
        drop(file);
        drop(alone);
        mounted.assert_behind("later/middle/f", vec![5; 4 << 20]);
        let left = fs::read_dir(mounted.behind("later/middle")).unwrap();
        assert_eq!(left.count(), 1);
    });
}

/// More bytes than all copies in memory may have together.
const LARGE_BYTES: u64 = 65 << 20;

#[test]
fn a_file_grows_where_a_copy_cannot_be_made_without_a_name() {
    for setting in CACHED.iter().filter(|setting| setting.is_possible()) {
        // Copies are on a mount, which is a file system without `O_TMPFILE`.
        let inner = Mounted::new(&Setting::new("none", "direct"));
        let place = tempfile::tempdir().unwrap();
        set_mode(&inner.source, 0o700);
        let copies = place.path().join("copies");
        fs::create_dir(&copies).unwrap();
        rustix::mount::mount_bind(&inner.at, &copies).unwrap();
        let source = place.path().join("source");
        fs::create_dir(&source).unwrap();
        let mounted = Mounted::existing(&source, place.path(), setting);
        let file = File::create(mounted.path("f")).unwrap();
        file.set_len(LARGE_BYTES).unwrap();
        drop((file, mounted));
        let flags = rustix::mount::UnmountFlags::DETACH;
        rustix::mount::unmount(&copies, flags).unwrap();
    }
}
