//! Full disks, kills and stops: nothing that a call acknowledged is lost, and
//! nothing is left behind.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::mounts::common::{
    CACHED, Mounted, SETTINGS, Setting, Small, assert_errno, await_no_temporaries, await_that,
    close, content, each, temporaries, without_new_processes,
};

fn each_small(settings: &[Setting], options: &str, test: impl Fn(&mut Mounted)) {
    for setting in settings.iter().filter(|setting| setting.is_possible()) {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        let _small = Small::new(&source, options).unwrap();
        test(&mut Mounted::existing(&source, place.path(), setting));
    }
}

#[test]
fn a_full_disk_is_told_to_close_and_the_old_content_stays_until_there_is_room() {
    each_small(CACHED, "size=4m", |mounted| {
        fs::write(mounted.behind("f"), vec![1; 1 << 20]).unwrap();
        fs::write(mounted.behind("ballast"), vec![2; 2 << 20]).unwrap();
        let content = content(1, 2_000_000);
        let alone = without_new_processes();
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&content).unwrap();
        assert_eq!(close(file), Err(Errno::NOSPC), "{:?}", mounted.setting);
        drop(alone);
        // The source has the old content, the mount the new one, which is in the file that
        // the message names.
        mounted.assert_behind("f", vec![1; 1 << 20]);
        await_no_temporaries(&mounted.source);
        mounted.assert_read("f", &content);
        let kept = || -> Option<PathBuf> {
            let said = mounted.said().join("\n");
            let (_, rest) = said.split_once("kept in ")?;
            Some(rest.split_once(" and will be sent")?.0.into())
        };
        await_that("the message that says where it is", || kept().is_some());
        let kept = kept().unwrap();
        assert!(fs::read(&kept).unwrap() == content);
        fs::remove_file(mounted.behind("ballast")).unwrap();
        await_that("the file at the source", || {
            mounted.read_behind("f") == content
        });
        await_that("the end of the kept copy", || !kept.exists());
        mounted.stop_clean();
    });
}

#[test]
fn a_full_disk_is_told_to_fsync_and_what_was_acknowledged_before_stays() {
    each_small(&SETTINGS, "size=4m", |mounted| {
        let setting = mounted.setting.clone();
        let file = File::create(mounted.path("f")).unwrap();
        file.write_all_at(&vec![3; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        // Either the write or the fsync must fail: the write if it goes through.
        let written = file.write_all_at(&vec![4; 8 << 20], 1 << 20);
        assert_errno(written.and_then(|()| file.sync_all()), libc::ENOSPC);
        assert!(mounted.read_behind("f").starts_with(&vec![3; 1 << 20]));
        await_no_temporaries(&mounted.source);
        file.set_len(1 << 20).unwrap();
        let synced = file.sync_all();
        if setting.kernel == "writeback" && synced.is_err() {
            // The kernel had retried pages before they were truncated.
            file.sync_all().unwrap();
        } else {
            assert!(synced.is_ok(), "{setting:?}: {synced:?}");
        }
        drop(file);
        mounted.assert_behind("f", vec![3; 1 << 20]);
        mounted.stop_clean();
    });
}

#[test]
fn what_cannot_be_written_back_before_the_end_is_kept_and_told() {
    each_small(CACHED, "size=2m", |mounted| {
        let alone = without_new_processes();
        fs::write(mounted.path("f"), vec![5; 3 << 20]).unwrap();
        drop(alone);
        let (said, is_clean) = mounted.stop();
        assert!(!is_clean, "{said:?}");
        let kept = mounted.kept();
        assert_eq!(kept.len(), 1, "{said:?}");
        let name = kept[0].to_str().unwrap();
        assert!(said.iter().any(|line| line.contains(name)), "{said:?}");
        assert!(fs::read(&kept[0]).unwrap() == vec![5; 3 << 20]);
        // The next mount leaves it alone.
        mounted.mount();
        assert!(kept[0].exists());
    });
}

#[test]
fn a_kill_leaves_a_dead_mount_and_what_was_acknowledged_at_the_source() {
    each(&SETTINGS, |mounted| {
        fs::write(mounted.path("closed"), vec![6; 2 << 20]).unwrap();
        let synced = File::create(mounted.path("synced")).unwrap();
        synced.write_all_at(&vec![7; 2 << 20], 0).unwrap();
        synced.sync_all().unwrap();
        synced.write_all_at(b"not acknowledged", 0).unwrap();
        mounted.kill();
        assert_errno(fs::read(mounted.path("closed")), libc::ENOTCONN);
        mounted.assert_behind("closed", vec![6; 2 << 20]);
        assert!(mounted.read_behind("synced")[16..] == vec![7; 2 << 20][16..]);
        drop(synced);
        mounted.mount_anew();
        mounted.assert_read("closed", vec![6; 2 << 20]);
    });
}

/// Kills the mount while it writes a file back. Returns whether a temporary file is left.
fn kill_in_write_back(mounted: &mut Mounted) -> bool {
    let mut file = File::create(mounted.path("f")).unwrap();
    file.write_all(&vec![8; 64 << 20]).unwrap();
    let closing = std::thread::spawn(move || close(file));
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_begun = |source: &Path| !temporaries(source).is_empty();
    while !is_begun(&mounted.source) && Instant::now() < deadline && !closing.is_finished() {}
    mounted.kill();
    let closed = closing.join().unwrap();
    let content = mounted.read_behind("f");
    if closed.is_err() {
        // Another test's child process may have closed its copy of the file descriptor,
        // with what had been written by then.
        let is_new = !content.is_empty() && content.iter().all(|byte| *byte == 8);
        assert!(content == b"old" || is_new, "{} bytes", content.len());
    }
    is_begun(&mounted.source)
}

#[test]
fn temporary_files_of_a_killed_mount_are_removed_by_the_next() {
    each(&CACHED[..1], |mounted| {
        fs::write(mounted.behind("f"), b"old").unwrap();
        // Some kills may hit no write-back.
        let hits_one = (0..20).any(|_| {
            let is_left = kill_in_write_back(mounted);
            let journals = fs::read_dir(&mounted.copies).unwrap().count();
            mounted.mount_anew();
            assert_eq!(temporaries(&mounted.source).len(), 0);
            assert!(!is_left || journals > 0, "{:?}", mounted.said());
            fs::write(mounted.path("f"), b"old").unwrap();
            is_left
        });
        assert!(hits_one, "no kill hit a write-back");
    });
}

#[test]
fn the_old_content_stays_until_there_is_a_new_one() {
    each(CACHED, |mounted| {
        fs::write(mounted.behind("f"), b"old").unwrap();
        let file = File::create(mounted.path("f")).unwrap();
        // As a shell does before it starts a command whose output goes here.
        drop(file.try_clone().unwrap());
        mounted.assert_behind("f", b"old");
        mounted.assert_read("f", b"");
        mounted.kill();
        mounted.mount_anew();
        mounted.assert_read("f", b"old");
        drop(file);
        drop(File::create(mounted.path("f")).unwrap());
        await_that("the end of the old content", || {
            mounted.read_behind("f").is_empty()
        });
    });
}

#[test]
fn the_end_writes_back_what_is_open_and_leaves_nothing() {
    each(&SETTINGS, |mounted| {
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&vec![9; 3 << 20]).unwrap();
        mounted.stop_clean();
        mounted.assert_behind("f", vec![9; 3 << 20]);
        let count = |directory: &Path| fs::read_dir(directory).unwrap().count();
        assert_eq!(count(&mounted.at), 0, "still mounted");
        assert_eq!((count(&mounted.source), count(&mounted.copies)), (1, 0));
        drop(file);
    });
}

#[test]
fn an_unmount_by_others_ends_the_program_and_leaves_nothing() {
    each(&SETTINGS, |mounted| {
        let alone = without_new_processes();
        fs::write(mounted.path("f"), b"content").unwrap();
        rustix::mount::unmount(&mounted.at, UnmountFlags::empty()).unwrap();
        drop(alone);
        assert!(mounted.await_end());
        mounted.assert_behind("f", b"content");
        assert_eq!(fs::read_dir(&mounted.copies).unwrap().count(), 0);
    });
}

#[test]
fn a_read_only_mount_refuses_changes() {
    let setting = Setting {
        is_read_only: true,
        ..Setting::new("blocks", "pages")
    };
    each(&[setting], |mounted| {
        fs::write(mounted.behind("f"), b"content").unwrap();
        mounted.assert_read("f", b"content");
        for refused in [
            fs::write(mounted.path("f"), b"other"),
            fs::create_dir(mounted.path("d")),
            fs::remove_file(mounted.path("f")),
            fs::rename(mounted.path("f"), mounted.path("g")),
        ] {
            assert_errno(refused, libc::EROFS);
        }
    });
}
