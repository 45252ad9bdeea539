//! What `fsync` acknowledges is on the source's device, whoever wrote it and
//! when: told by a model of a device that loses all that was not synchronised.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::{
    CACHED, Mounted, REMOTE_CACHED, REMOTE_MODES, Setting, assert_errno, await_that, each, watched,
    without_new_processes,
};

/// In place in one request, replaced, and in parts where that can be.
const SIZES: [usize; 3] = [10 << 10, 100 << 10, 3 << 20];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// With its file, whose `fsync` brings it to the device, too.
    Created,
    /// Only an `fsync` of the directory brings it there.
    Moved,
}

/// A device according to what the source was asked.
#[derive(Default)]
struct Device {
    files: usize,
    names: HashMap<PathBuf, usize>,
    handles: HashMap<String, usize>,
    /// Files with changes that are not on the device.
    dirty: HashSet<usize>,
    /// Files of which a `fsync` failed: what had been written before is not
    /// written by a second one.
    lost: HashSet<usize>,
    /// Names that are not on the device.
    named: HashMap<PathBuf, Named>,
}

impl Device {
    fn of(mounted: &Mounted) -> Self {
        let mut device = Self::default();
        for call in mounted.control.calls() {
            let path = Path::new(&call[1]);
            device.called(&call[0], path, &call[2]);
        }
        device
    }

    /// The file of a name, from now on if it was not known.
    fn file(&mut self, path: &Path) -> usize {
        let next = self.files;
        let file = *self.names.entry(path.to_path_buf()).or_insert(next);
        self.files += usize::from(file == next);
        file
    }

    fn called(&mut self, call: &str, path: &Path, rest: &str) {
        match call {
            "open" | "create" | "cut" => {
                if call == "create" && !self.names.contains_key(path) {
                    self.named.insert(path.to_path_buf(), Named::Created);
                }
                let file = self.file(path);
                self.handles.insert(rest.to_owned(), file);
                if call == "cut" {
                    self.dirty.insert(file);
                }
            }
            "write" | "truncate" | "allocate" | "set_handle" => {
                let file = self.handles[rest];
                self.dirty.insert(file);
                if call == "write" {
                    self.lost.remove(&file);
                }
            }
            "set_attributes" => {
                let file = self.file(path);
                self.dirty.insert(file);
            }
            "sync" => self.synced(self.handles[rest]),
            "sync_directory" => self.named.retain(|name, _| name.parent() != Some(path)),
            "failed" if path == Path::new("sync") => {
                let file = self.file(Path::new(rest));
                self.lost.insert(file);
            }
            "rename" => {
                let file = self.file(path);
                self.removed(path);
                self.moved(file, Path::new(rest));
            }
            "hard_link" => {
                let file = self.file(path);
                self.moved(file, Path::new(rest));
            }
            "unlink" => self.removed(path),
            _ => {}
        }
    }

    fn synced(&mut self, file: usize) {
        self.dirty.remove(&file);
        let names = &self.names;
        self.named
            .retain(|name, how| *how == Named::Moved || names.get(name) != Some(&file));
    }

    fn removed(&mut self, path: &Path) {
        self.names.remove(path);
        self.named.remove(path);
    }

    fn moved(&mut self, file: usize, to: &Path) {
        self.names.insert(to.to_path_buf(), file);
        self.named.insert(to.to_path_buf(), Named::Moved);
    }

    /// Why a file would not be there, or not as it was, after a loss of power.
    fn would_lose(&self, name: &str) -> Option<&'static str> {
        let Some(file) = self.names.get(Path::new(name)) else {
            return Some("the source was never told of it");
        };
        if self.lost.contains(file) {
            return Some("what a failed fsync left behind was not written again");
        }
        if self.dirty.contains(file) {
            return Some("its content was not synchronised after it was written");
        }
        let named = self.named.get(Path::new(name));
        named.map(|_| "its name was not synchronised")
    }
}

#[track_caller]
fn assert_durable(mounted: &Mounted, name: &str, case: &str) {
    let loss = Device::of(mounted).would_lose(name);
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

/// A way to synchronise a file of a size that has been closed.
type Fsync = fn(&Mounted, &str, usize);

const FSYNCS: [(&str, Fsync); 6] = [
    ("of a new file", |mounted, name, size| {
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        sync(mounted, name);
    }),
    ("of a file that was there before", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size + 100]).unwrap();
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        sync(mounted, name);
    }),
    ("of a part", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size]).unwrap();
        let part = mounted.open(name);
        part.write_all_at(b"part", size as u64 / 3).unwrap();
        drop(part);
        mounted.open(name).sync_all().unwrap();
    }),
    ("by a descriptor from before", |mounted, name, size| {
        fs::write(mounted.behind(name), b"before").unwrap();
        let other = File::open(mounted.path(name)).unwrap();
        fs::write(mounted.path(name), vec![2; size]).unwrap();
        other.sync_all().unwrap();
    }),
    ("of a shortened file", |mounted, name, size| {
        fs::write(mounted.behind(name), vec![1; size]).unwrap();
        mounted.open(name).set_len(size as u64 / 2).unwrap();
        sync(mounted, name);
        mounted.assert_behind(name, vec![1; size / 2]);
    }),
    ("under a new name", |mounted, name, size| {
        let old = mounted.path("old");
        fs::write(&old, vec![2; size]).unwrap();
        fs::rename(&old, mounted.path(name)).unwrap();
        sync(mounted, name);
        sync(mounted, "");
    }),
];

#[test]
fn fsync_brings_what_was_closed_before_to_the_device() {
    each_mode(|mounted| {
        for (how, fsync) in FSYNCS {
            for size in SIZES {
                let name = format!("{how} {size}");
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
        let (device, calls) = (Device::of(mounted), mounted.control.calls());
        assert_eq!(
            device.named,
            HashMap::new(),
            "{:?}: {calls:#?}",
            mounted.setting
        );
    });
}

/// A file that is open and of which one descriptor has been closed: its changes
/// are at the source, and nothing was synchronised.
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
        await_that("a word of the retry", is_told);
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
                // Another descriptor's close has brought it there already.
                drop(file.try_clone().unwrap());
            }
            let syncing = if round % 3 == 0 { &file } else { &other };
            syncing.sync_all().unwrap();
            assert_durable(mounted, "f", "fsync of each change");
            mounted.assert_behind("f", [round; 20 << 10]);
        }
    });
}
