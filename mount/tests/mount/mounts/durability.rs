//! Data that `fsync` acknowledged is on the source's device, no matter who wrote it, and when. A
//! model of a device that loses everything that was not synchronised decides.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::mounts::common::{
    CACHED, Mounted, REMOTE_CACHED, REMOTE_MODES, Setting, assert_errno, await_that, each, watched,
    without_new_processes,
};
use crate::mounts::device::Device;

/// Sizes of files that are written in place in one request, replaced, and, where possible,
/// written in parts.
pub const SIZES: [usize; 3] = [10 << 10, 100 << 10, 3 << 20];

#[track_caller]
fn assert_durable(mounted: &Mounted, name: &str, case: &str) {
    let loss = Device::after(&mounted.control.calls()).would_lose(Path::new(name));
    let (setting, calls) = (&mounted.setting, mounted.control.calls());
    assert_eq!(loss, None, "{case} of {name} in {setting:?}: {calls:#?}");
}

fn each_mode(test: impl Fn(&Mounted)) {
    let direct = Setting::new("none", "direct");
    let settings = CACHED.iter().chain(&REMOTE_MODES).chain([&direct]);
    each(&watched(settings), |mounted| test(mounted));
}

fn each_cached(test: impl Fn(&mut Mounted)) {
    each(&watched(CACHED.iter().chain(REMOTE_CACHED)), test);
}

fn sync(mounted: &Mounted, name: &str) {
    File::open(mounted.path(name)).unwrap().sync_all().unwrap();
}

/// A way to write and synchronise a file of a size.
pub type Fsync = fn(&Mounted, &str, usize);

pub const FSYNCS: [(&str, Fsync); 7] = [
    ("-of-a-new-file", |mounted, name, size| {
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        sync(mounted, name);
    }),
    ("-of-what-is-open", |mounted, name, size| {
        let file = File::create_new(mounted.path(name)).unwrap();
        for at in [0, size as u64, 100] {
            file.write_all_at(&vec![2; size], at).unwrap();
            file.sync_all().unwrap();
        }
        file.write_all_at(b"changed", 50).unwrap();
        file.sync_data().unwrap();
    }),
    ("-of-a-file-that-was-there-before", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size + 100]).unwrap();
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        sync(mounted, name);
    }),
    ("-of-a-part", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size]).unwrap();
        let part = mounted.open(name);
        part.write_all_at(b"part", size as u64 / 3).unwrap();
        drop(part);
        mounted.open(name).sync_all().unwrap();
    }),
    ("-by-a-descriptor-from-before", |mounted, name, size| {
        fs::write(mounted.behind(name), b"before").unwrap();
        let other = File::open(mounted.path(name)).unwrap();
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        other.sync_all().unwrap();
    }),
    ("-of-a-shortened-file", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size]).unwrap();
        mounted.open(name).set_len(size as u64 / 2).unwrap();
        sync(mounted, name);
        mounted.assert_behind(name, vec![1; size / 2]);
    }),
    ("-under-a-new-name", |mounted, name, size| {
        let old = mounted.path("old");
        fs::write(&old, vec![2; size]).unwrap();
        fs::rename(&old, mounted.path(name)).unwrap();
        sync(mounted, name);
        sync(mounted, "");
    }),
];

#[test]
fn fsync_brings_what_was_written_before_to_the_device() {
    each_mode(|mounted| {
        for (how, fsync) in FSYNCS {
            for size in SIZES {
                let name = size.to_string() + how;
                fsync(mounted, &name, size);
                assert_durable(mounted, &name, how);
            }
        }
    });
}

#[test]
fn fsync_of_a_directory_brings_the_names_in_it_to_the_device() {
    each_mode(|mounted| {
        fs::create_dir(mounted.path("d")).unwrap();
        for size in SIZES {
            let (old, new) = (format!("d/{size}-old"), format!("d/{size}-new"));
            fs::write(mounted.path(&old), vec![2; size]).unwrap();
            fs::rename(mounted.path(&old), mounted.path(&new)).unwrap();
        }
        sync(mounted, "d");
        let calls = mounted.control.calls();
        let device = Device::after(&calls);
        assert_eq!(
            device.named,
            HashMap::new(),
            "{:?}: {calls:#?}",
            mounted.setting
        );
    });
}

/// Returns an open file of which one descriptor has been closed: its changes are at the
/// source, but nothing was synchronised.
fn closed_in_place(mounted: &Mounted) -> File {
    let mut file = File::create(mounted.path("f")).unwrap();
    file.write_all(&[3; 10 << 10]).unwrap();
    drop(file.try_clone().unwrap());
    mounted.assert_behind("f", [3; 10 << 10]);
    file
}

fn await_nothing_kept(mounted: &Mounted) {
    await_that("the end of the kept copy", || mounted.kept().is_empty());
}

#[test]
fn after_a_failed_fsync_the_next_one_writes_the_content_again() {
    each_cached(|mounted| {
        let alone = without_new_processes();
        let file = closed_in_place(mounted);
        mounted.control.fail_once("sync", "", libc::EIO);
        assert_errno(file.sync_all(), libc::EIO);
        file.sync_all().unwrap();
        assert_durable(mounted, "f", "fsync after a failed one");
        drop(file);
        drop(alone);
        mounted.assert_behind("f", [3; 10 << 10]);
        await_nothing_kept(mounted);
        mounted.stop_clean();
    });
}

#[test]
fn a_file_whose_fsync_failed_is_written_again_by_the_retry_before_it_says_so() {
    each_cached(|mounted| {
        let alone = without_new_processes();
        let file = closed_in_place(mounted);
        mounted.control.fail_once("sync", "", libc::EIO);
        file.sync_all().unwrap_err();
        drop(file);
        drop(alone);
        let is_told = || mounted.said().iter().any(|line| line.contains("after all"));
        await_that("a message of the retry", is_told);
        assert_durable(mounted, "f", "retry");
        await_nothing_kept(mounted);
    });
}

#[test]
fn after_a_failed_fsync_of_the_directory_the_next_one_reaches_it() {
    each_cached(|mounted| {
        let _alone = without_new_processes();
        fs::write(mounted.behind("f"), b"before").unwrap();
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&vec![4; 100 << 10]).unwrap();
        mounted.control.fail_once("sync_directory", "", libc::EIO);
        assert_errno(file.sync_all(), libc::EIO);
        file.sync_all().unwrap();
        assert_durable(mounted, "f", "fsync after a failed one");
        await_nothing_kept(mounted);
    });
}

#[test]
fn fsync_brings_each_of_many_changes_to_the_device() {
    each_mode(|mounted| {
        let mut file = File::create(mounted.path("f")).unwrap();
        let other = File::open(mounted.path("f")).unwrap();
        for round in 0..6_u8 {
            file.rewind().unwrap();
            file.write_all(&[round; 20 << 10]).unwrap();
            if round % 2 == 0 {
                // The close of another descriptor has brought it there already.
                drop(file.try_clone().unwrap());
            }
            let syncing = if round % 3 == 0 { &file } else { &other };
            syncing.sync_all().unwrap();
            assert_durable(mounted, "f", "fsync of each change");
            mounted.assert_behind("f", [round; 20 << 10]);
        }
    });
}
