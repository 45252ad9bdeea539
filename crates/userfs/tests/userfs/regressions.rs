//! Calls that meet in the middle of one another: each was once answered wrong,
//! or never.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};

use crate::common::{
    Mounted, Setting, await_within, can_mount, can_mount_remote, close, temporaries,
    without_new_processes,
};
use crate::watched::LONG;

const CACHED: [Setting; 2] = [
    Setting::new("whole", "pages").watched(),
    Setting::new("blocks", "pages").watched(),
];

/// What another call gets while one is held. If it has to wait for that one, it
/// gets it afterwards.
const MEANWHILE: Duration = Duration::from_secs(2);

/// Runs a call while another is held, and lets that go on when it has returned
/// or does not seem to.
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

/// Closes a file in another thread.
fn closing<'scope>(
    scope: &'scope Scope<'scope, '_>,
    file: File,
) -> ScopedJoinHandle<'scope, rustix::io::Result<()>> {
    scope.spawn(move || close(file))
}

/// A file that is open, of another content than at the source.
fn changed(mounted: &Mounted, name: &str) -> File {
    fs::write(mounted.behind(name), vec![1; 100_000]).unwrap();
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .open(mounted.path(name))
        .unwrap();
    file.write_all_at(&[2; 100_000], 0).unwrap();
    file
}

fn assert_nothing_kept(mounted: &Mounted) {
    await_within(LONG, "an end of temporary files", || {
        temporaries(&mounted.source) == 0
    });
    assert_eq!(mounted.kept(), Vec::<std::path::PathBuf>::new());
    assert_eq!(mounted.said(), Vec::<String>::new());
}

/// Changes and closes a file and, while its content is on the way to the source,
/// makes a change of names.
fn change_names_while_closing(mounted: &Mounted, name: &str, change: impl FnOnce() + Send) {
    // A new process closes its copy of the descriptor.
    let alone = without_new_processes();
    let file = changed(mounted, name);
    mounted.control.hold("write", "");
    std::thread::scope(|scope| {
        let closed = closing(scope, file);
        mounted.control.await_held("write");
        meanwhile(mounted, "write", change);
        assert_eq!(closed.join().unwrap(), Ok(()), "{:?}", mounted.setting);
    });
    drop(alone);
}

#[test]
fn a_file_that_is_renamed_while_it_is_written_back_has_its_content_under_the_new_name() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        change_names_while_closing(&mounted, "old", || {
            fs::rename(mounted.path("old"), mounted.path("new")).unwrap();
        });
        assert!(!mounted.behind("old").exists());
        assert!(
            fs::read(mounted.behind("new")).unwrap() == [2; 100_000],
            "{setting:?}"
        );
        assert_nothing_kept(&mounted);
    }
}

#[test]
fn a_file_whose_directory_is_renamed_while_it_is_written_back_has_its_content_there() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        fs::create_dir(mounted.path("old")).unwrap();
        change_names_while_closing(&mounted, "old/f", || {
            fs::rename(mounted.path("old"), mounted.path("new")).unwrap();
        });
        assert!(!mounted.behind("old").exists());
        assert!(
            fs::read(mounted.behind("new/f")).unwrap() == [2; 100_000],
            "{setting:?}"
        );
        assert_eq!(temporaries(&mounted.behind("new")), 0);
        assert_nothing_kept(&mounted);
    }
}

#[test]
fn a_file_that_is_removed_while_it_is_written_back_is_gone_and_its_close_succeeds() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        change_names_while_closing(&mounted, "f", || {
            fs::remove_file(mounted.path("f")).unwrap();
        });
        assert!(!mounted.behind("f").exists());
        assert!(!mounted.path("f").exists());
        assert_nothing_kept(&mounted);
    }
}

#[test]
fn a_file_that_is_replaced_by_rename_while_it_is_written_back_stays_replaced() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        fs::write(mounted.behind("other"), b"other").unwrap();
        change_names_while_closing(&mounted, "f", || {
            fs::rename(mounted.path("other"), mounted.path("f")).unwrap();
        });
        assert_eq!(
            fs::read(mounted.behind("f")).unwrap(),
            b"other",
            "{setting:?}"
        );
        assert_eq!(fs::read(mounted.path("f")).unwrap(), b"other");
        assert_nothing_kept(&mounted);
    }
}

/// A file that is open and of which the source lacks the times alone: they were
/// set while the content was on the way.
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
    let remote = ["whole", "blocks"].map(|mode| Setting::remote(mode, "pages").watched());
    let remote = remote.iter().filter(|_| can_mount_remote());
    for setting in CACHED.iter().filter(|_| can_mount()).chain(remote) {
        let mounted = Mounted::new(setting);
        let remove = || fs::remove_file(mounted.path("f")).unwrap();
        let alone = without_new_processes();

        // Before the times are sent.
        let file = with_new_times(&mounted);
        remove();
        assert_eq!(close(file), Ok(()), "{setting:?}");

        // While they are sent.
        let file = with_new_times(&mounted);
        mounted.control.hold("set_handle", "");
        std::thread::scope(|scope| {
            let closed = closing(scope, file);
            mounted.control.await_held("set_handle");
            meanwhile(&mounted, "set_handle", remove);
            assert_eq!(closed.join().unwrap(), Ok(()), "{setting:?}");
        });

        // Before they are set.
        let file = changed(&mounted, "f");
        file.sync_all().unwrap();
        remove();
        set_times(&file).unwrap();
        assert_eq!(close(file), Ok(()), "{setting:?}");
        drop(alone);
        assert!(!mounted.behind("f").exists());
        assert_nothing_kept(&mounted);
    }
}

#[test]
fn nothing_is_kept_of_a_file_that_is_removed_after_its_write_back_failed() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        let alone = without_new_processes();
        let file = changed(&mounted, "f");
        mounted.control.fail("write", "", libc::ENOSPC);
        assert_eq!(close(file), Err(rustix::io::Errno::NOSPC));
        drop(alone);
        await_within(LONG, "a kept copy", || mounted.kept().len() == 1);
        fs::remove_file(mounted.path("f")).unwrap();
        await_within(LONG, "the end of the kept copy", || {
            mounted.kept().is_empty()
        });
        mounted.control.succeed("write");
        // Longer than until the next attempt.
        std::thread::sleep(Duration::from_secs(3));
        let said = mounted.said();
        assert!(
            !said.iter().any(|line| line.contains("wrote back")),
            "{said:?}"
        );
        assert!(!mounted.behind("f").exists());
    }
}

#[test]
fn a_file_whose_write_back_fails_again_while_the_retry_succeeds_is_tried_again() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        let alone = without_new_processes();
        let file = changed(&mounted, "f");
        mounted.control.fail("write", "", libc::ENOSPC);
        mounted.control.hold("note", "after all");
        assert_eq!(close(file), Err(rustix::io::Errno::NOSPC));
        mounted.control.succeed("write");
        mounted.control.await_held("note");
        mounted.control.fail("write", "", libc::ENOSPC);
        let file = File::options().write(true).open(mounted.path("f")).unwrap();
        file.write_all_at(&[3; 100_000], 0).unwrap();
        let closed = meanwhile(&mounted, "note", || close(file));
        assert_eq!(closed, Err(rustix::io::Errno::NOSPC));
        drop(alone);
        mounted.control.succeed("write");
        await_within(LONG, "the second content", || {
            fs::read(mounted.behind("f")).unwrap() == [3; 100_000]
        });
        await_within(LONG, "the end of the kept copy", || {
            mounted.kept().is_empty()
        });
    }
}

#[test]
fn a_file_that_gets_another_name_while_one_is_removed_does_not_lose_what_is_closed_then() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        let alone = without_new_processes();
        let file = changed(&mounted, "f");
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
        assert!(
            fs::read(mounted.behind("g")).unwrap() == [2; 100_000],
            "{setting:?}"
        );
    }
}

#[test]
fn a_reader_does_not_take_a_writers_way_to_a_file_that_loses_the_name_it_had() {
    for setting in CACHED.iter().filter(|_| can_mount()) {
        let mounted = Mounted::new(setting);
        fs::write(mounted.behind("f"), b"begin").unwrap();
        fs::hard_link(mounted.behind("f"), mounted.behind("g")).unwrap();
        let alone = without_new_processes();
        let file = File::options().append(true).open(mounted.path("f"));
        let mut file = file.unwrap();
        // A version that the mount does not know.
        let mut behind = File::options()
            .append(true)
            .open(mounted.behind("f"))
            .unwrap();
        behind.write_all(b", more").unwrap();
        assert_eq!(fs::read(mounted.path("f")).unwrap(), b"begin, more");
        fs::remove_file(mounted.path("f")).unwrap();
        file.write_all(b", end").unwrap();
        assert_eq!(close(file), Ok(()));
        drop(alone);
        let content = fs::read(mounted.behind("g")).unwrap();
        let is_whole = content.starts_with(b"begin") && content.ends_with(b", end");
        assert!(
            is_whole,
            "{setting:?}: {:?}",
            String::from_utf8_lossy(&content)
        );
    }
}

#[test]
fn rmdir_and_a_rename_above_it_end_though_a_file_is_still_sent_to_there() {
    if !can_mount_remote() {
        return;
    }
    let mut mounted = Mounted::new(&Setting::remote("whole", "pages").watched());
    fs::create_dir_all(mounted.path("above/middle/d")).unwrap();
    let alone = without_new_processes();
    let mut file = File::create(mounted.path("above/middle/d/f")).unwrap();
    file.write_all(&vec![5; 4 << 20]).unwrap();
    let directory = mounted.behind("above/middle/d");
    await_within(LONG, "what is sent ahead", || temporaries(&directory) == 1);
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
    // Until the rename waits for the rmdir; if it comes later, less is tried.
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
    assert_eq!(
        fs::read(mounted.behind("later/middle/f")).unwrap(),
        vec![5; 4 << 20]
    );
    assert_eq!(
        fs::read_dir(mounted.behind("later/middle"))
            .unwrap()
            .count(),
        1
    );
}

/// More than all copies in memory may have together.
const LARGE_BYTES: u64 = 65 << 20;

/// A mount whose copies lie on a file system without `O_TMPFILE`, which another
/// mount is.
fn with_copies_on(inner: &Mounted, place: &Path, mode: &'static str) -> Mounted {
    std::os::unix::fs::symlink(&inner.at, place.join("copies")).unwrap();
    let source = place.join("source");
    fs::create_dir(&source).unwrap();
    Mounted::of(&source, place, &Setting::new(mode, "pages"))
}

#[test]
fn a_file_grows_though_the_name_of_another_copy_is_left_where_names_are_needed() {
    for mode in ["whole", "blocks"].iter().filter(|_| can_mount()) {
        let inner = Mounted::new(&Setting::new("none", "direct"));
        let place = tempfile::tempdir().unwrap();
        let mounted = with_copies_on(&inner, place.path(), mode);
        // What a killed mount of the same process number has left.
        let stale = format!(".copy-{}", mounted.process());
        fs::write(inner.behind(&stale), b"stale").unwrap();
        let file = File::create(mounted.path("f")).unwrap();
        file.set_len(LARGE_BYTES).unwrap();
    }
}
