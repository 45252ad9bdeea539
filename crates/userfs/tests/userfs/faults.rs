//! Full disks, kills and stops: nothing that a call acknowledged is lost, and
//! nothing is left behind.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::{
    Mounted, SETTINGS, Setting, await_that, can_mount, close, temporaries, without_new_processes,
};

const CACHED: [Setting; 2] = [
    Setting::new("whole", "pages"),
    Setting::new("blocks", "pages"),
];

/// A small file system of its own.
struct Small {
    place: tempfile::TempDir,
}

impl Small {
    fn new(bytes: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("source");
        fs::create_dir(&at).unwrap();
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        rustix::mount::mount("none", &at, "tmpfs", MountFlags::empty(), Some(&*options)).unwrap();
        Self { place }
    }

    fn source(&self) -> std::path::PathBuf {
        self.place.path().join("source")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.source(), UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_is_told_to_close_and_the_old_content_stays_until_there_is_room() {
    if !can_mount() {
        return;
    }
    for setting in &CACHED {
        let small = Small::new(4 << 20);
        fs::write(small.source().join("f"), vec![1; 1 << 20]).unwrap();
        fs::write(small.source().join("ballast"), vec![2; 2 << 20]).unwrap();
        let mut mounted = Mounted::of(&small.source(), small.place.path(), setting);
        let content: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
        let alone = without_new_processes();
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&content).unwrap();
        assert_eq!(close(file), Err(rustix::io::Errno::NOSPC), "{setting:?}");
        drop(alone);
        // The source has the old content, the mount the new, which lies where
        // it says.
        assert_eq!(
            fs::read(small.source().join("f")).unwrap(),
            vec![1; 1 << 20]
        );
        // A further attempt may be under way.
        await_that("an end of temporary files", || {
            temporaries(&small.source()) == 0
        });
        assert!(fs::read(mounted.path("f")).unwrap() == content);
        await_that("a word of where it is", || {
            mounted.said().iter().any(|line| line.contains("kept in "))
        });
        let said = mounted.said().join("\n");
        let kept = said
            .split("kept in ")
            .nth(1)
            .and_then(|rest| rest.split(" and tried").next());
        let kept = Path::new(kept.expect("it says where the content is")).to_path_buf();
        assert!(fs::read(&kept).unwrap() == content);
        fs::remove_file(small.source().join("ballast")).unwrap();
        await_that("the file at the source", || {
            fs::read(small.source().join("f")).unwrap() == content
        });
        await_that("the end of the kept copy", || !kept.exists());
        let (said, is_clean) = mounted.stop();
        assert!(is_clean, "{said:?}");
    }
}

#[test]
fn a_full_disk_is_told_to_fsync_and_what_was_acknowledged_before_stays() {
    if !can_mount() {
        return;
    }
    for setting in &SETTINGS {
        let small = Small::new(4 << 20);
        let mut mounted = Mounted::of(&small.source(), small.place.path(), setting);
        let file = File::create(mounted.path("f")).unwrap();
        file.write_all_at(&vec![3; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        // One of the two must say it: the write if it goes through.
        let written = file.write_all_at(&vec![4; 8 << 20], 1 << 20);
        let error = written.and_then(|()| file.sync_all()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{setting:?}");
        let behind = fs::read(small.source().join("f")).unwrap();
        assert!(behind.len() >= 1 << 20 && behind[..1 << 20].iter().all(|byte| *byte == 3));
        // A further attempt may be under way.
        await_that("an end of temporary files", || {
            temporaries(&small.source()) == 0
        });
        file.set_len(1 << 20).unwrap();
        let synced = file.sync_all();
        if setting.kernel == "writeback" && synced.is_err() {
            // The kernel had tried to write pages again before they were cut.
            file.sync_all().unwrap();
        } else {
            assert!(synced.is_ok(), "{setting:?}: {synced:?}");
        }
        drop(file);
        let behind = fs::read(small.source().join("f")).unwrap();
        let wrong = behind.iter().position(|byte| *byte != 3);
        assert_eq!((behind.len(), wrong), (1 << 20, None), "{setting:?}");
        let (said, is_clean) = mounted.stop();
        assert!(is_clean, "{setting:?}: {said:?}");
    }
}

#[test]
fn what_cannot_be_written_back_before_the_end_is_kept_and_told() {
    if !can_mount() {
        return;
    }
    for setting in &CACHED {
        let small = Small::new(2 << 20);
        let mut mounted = Mounted::of(&small.source(), small.place.path(), setting);
        let alone = without_new_processes();
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&vec![5; 3 << 20]).unwrap();
        drop(file);
        drop(alone);
        let (said, is_clean) = mounted.stop();
        assert!(!is_clean, "{said:?}");
        let kept: Vec<_> = fs::read_dir(mounted.copies.join("kept")).unwrap().collect();
        assert_eq!(kept.len(), 1, "{said:?}");
        let kept = kept[0].as_ref().unwrap().path();
        assert!(
            said.iter()
                .any(|line| line.contains(kept.to_str().unwrap())),
            "{said:?}"
        );
        assert!(fs::read(&kept).unwrap() == vec![5; 3 << 20]);
        // The next mount has nothing to do with it.
        mounted.mount();
        assert!(kept.exists());
    }
}

#[test]
fn a_kill_leaves_a_dead_mount_and_what_was_acknowledged_at_the_source() {
    if !can_mount() {
        return;
    }
    for setting in &SETTINGS {
        let mut mounted = Mounted::new(setting);
        fs::write(mounted.path("closed"), vec![6; 2 << 20]).unwrap();
        let synced = File::create(mounted.path("synced")).unwrap();
        synced.write_all_at(&vec![7; 2 << 20], 0).unwrap();
        synced.sync_all().unwrap();
        synced.write_all_at(b"not acknowledged", 0).unwrap();
        mounted.kill();
        let error = fs::read(mounted.path("closed")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
        assert!(fs::read(mounted.behind("closed")).unwrap() == vec![6; 2 << 20]);
        assert!(fs::read(mounted.behind("synced")).unwrap()[16..] == vec![7; 2 << 20][16..]);
        drop(synced);
        mounted.detach();
        mounted.mount();
        assert!(fs::read(mounted.path("closed")).unwrap() == vec![6; 2 << 20]);
    }
}

#[test]
fn temporary_files_of_a_killed_mount_are_removed_by_the_next() {
    if !can_mount() {
        return;
    }
    let setting = Setting::new("whole", "pages");
    let mut mounted = Mounted::new(&setting);
    fs::write(mounted.behind("f"), b"old").unwrap();
    let mut left = false;
    // A kill in the middle of a write-back; at most some attempts hit none.
    for _ in 0..20 {
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&vec![8; 64 << 20]).unwrap();
        let closing = std::thread::spawn(move || close(file));
        let behind = mounted.source.clone();
        let deadline = Instant::now() + Duration::from_secs(10);
        while temporaries(&behind) == 0 && Instant::now() < deadline && !closing.is_finished() {}
        mounted.kill();
        let closed = closing.join().unwrap();
        mounted.detach();
        left = temporaries(&mounted.source) > 0;
        let content = fs::read(mounted.behind("f")).unwrap();
        if closed.is_err() {
            // Another test's new process may have closed its copy of the
            // descriptor, with what had been written by then.
            let is_new = !content.is_empty() && content.iter().all(|byte| *byte == 8);
            assert!(content == b"old" || is_new, "{} bytes", content.len());
        }
        let journals = fs::read_dir(&mounted.copies).unwrap().count();
        mounted.mount();
        assert_eq!(temporaries(&mounted.source), 0);
        if left {
            let said = mounted.said();
            assert!(journals > 0, "{said:?}");
            break;
        }
        fs::write(mounted.path("f"), b"old").unwrap();
    }
    assert!(left, "no kill hit a write-back");
}

#[test]
fn the_old_content_stays_until_there_is_a_new_one() {
    if !can_mount() {
        return;
    }
    for setting in &CACHED {
        let mut mounted = Mounted::new(setting);
        fs::write(mounted.behind("f"), b"old").unwrap();
        let file = File::create(mounted.path("f")).unwrap();
        // What a shell does before it starts a command with its output here.
        drop(file.try_clone().unwrap());
        assert_eq!(
            fs::read(mounted.behind("f")).unwrap(),
            b"old",
            "{setting:?}"
        );
        assert_eq!(fs::read(mounted.path("f")).unwrap(), b"");
        mounted.kill();
        mounted.detach();
        mounted.mount();
        assert_eq!(fs::read(mounted.path("f")).unwrap(), b"old", "{setting:?}");
        drop(file);
        drop(File::create(mounted.path("f")).unwrap());
        await_that("the end of the old content", || {
            fs::read(mounted.behind("f")).unwrap().is_empty()
        });
    }
}

#[test]
fn the_end_writes_back_what_is_open_and_leaves_nothing() {
    if !can_mount() {
        return;
    }
    for setting in &SETTINGS {
        let mut mounted = Mounted::new(setting);
        let mut file = File::create(mounted.path("f")).unwrap();
        file.write_all(&vec![9; 3 << 20]).unwrap();
        let (said, is_clean) = mounted.stop();
        assert!(is_clean, "{setting:?}: {said:?}");
        assert!(
            fs::read(mounted.behind("f")).unwrap() == vec![9; 3 << 20],
            "{setting:?}"
        );
        assert_eq!(
            fs::read_dir(&mounted.at).unwrap().count(),
            0,
            "still mounted"
        );
        assert_eq!(fs::read_dir(&mounted.source).unwrap().count(), 1);
        let left: Vec<_> = fs::read_dir(&mounted.copies).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        drop(file);
    }
}

#[test]
fn an_unmount_by_others_ends_the_program_and_leaves_nothing() {
    if !can_mount() {
        return;
    }
    for setting in &SETTINGS {
        let mut mounted = Mounted::new(setting);
        let alone = without_new_processes();
        fs::write(mounted.path("f"), b"content").unwrap();
        rustix::mount::unmount(&mounted.at, UnmountFlags::empty()).unwrap();
        drop(alone);
        assert!(mounted.await_end());
        assert_eq!(fs::read(mounted.behind("f")).unwrap(), b"content");
        assert_eq!(fs::read_dir(&mounted.copies).unwrap().count(), 0);
    }
}

#[test]
fn a_read_only_mount_refuses_changes() {
    if !can_mount() {
        return;
    }
    let setting = Setting {
        is_read_only: true,
        ..Setting::new("blocks", "pages")
    };
    let mounted = Mounted::new(&setting);
    fs::write(mounted.behind("f"), b"content").unwrap();
    let mut content = String::new();
    File::open(mounted.path("f"))
        .unwrap()
        .read_to_string(&mut content)
        .unwrap();
    assert_eq!(content, "content");
    let refused = |outcome: std::io::Result<()>| {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EROFS));
    };
    refused(fs::write(mounted.path("f"), b"other"));
    refused(fs::create_dir(mounted.path("d")));
    refused(fs::remove_file(mounted.path("f")));
    refused(fs::rename(mounted.path("f"), mounted.path("g")));
}
