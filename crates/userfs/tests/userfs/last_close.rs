//! The last close wins, whatever has the name by then, and is never told to
//! have brought content to a place where nobody finds it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, CWD};

use crate::common::{Mounted, Setting, can_mount, can_mount_remote, close, without_new_processes};

fn cached() -> Vec<Setting> {
    let mut settings = Vec::new();
    if can_mount() {
        settings.extend(["whole", "blocks"].map(|mode| Setting::new(mode, "pages")));
        if can_mount_remote() {
            settings.extend(["whole", "blocks"].map(|mode| Setting::remote(mode, "pages")));
        }
    }
    settings
}

fn open(mounted: &Mounted, name: &str) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true);
    options.open(mounted.path(name)).unwrap()
}

/// Gives a name at the source to a new file.
fn replace_behind(mounted: &Mounted, name: &str, content: &[u8]) {
    fs::write(mounted.behind("new"), content).unwrap();
    fs::rename(mounted.behind("new"), mounted.behind(name)).unwrap();
}

#[test]
fn what_is_closed_last_is_there_though_the_source_replaced_the_empty_file_before() {
    for setting in cached() {
        let mounted = Mounted::new(&setting);
        fs::write(mounted.behind("f"), b"").unwrap();
        let alone = without_new_processes();
        let file = open(&mounted, "f");
        file.write_all_at(b"ten bytes!", 0).unwrap();
        replace_behind(&mounted, "f", &[1; 40 << 10]);
        close(file).unwrap();
        drop(alone);
        let behind = fs::read(mounted.behind("f")).unwrap();
        assert_eq!(behind.get(..10), Some(&b"ten bytes!"[..]), "{setting:?}");
        if setting.mode == "whole" {
            assert_eq!(behind.len(), 10, "{setting:?}");
        }
        assert_eq!(fs::read(mounted.path("f")).unwrap(), behind, "{setting:?}");
    }
}

#[test]
fn what_is_closed_last_is_there_though_another_mount_replaced_the_empty_file_before() {
    for setting in cached() {
        let mounted = Mounted::new(&setting);
        let place = tempfile::tempdir().unwrap();
        let other = Mounted::of(
            &mounted.source,
            place.path(),
            &Setting::new("whole", "pages"),
        );
        fs::write(mounted.behind("f"), b"").unwrap();
        let alone = without_new_processes();
        let first = open(&mounted, "f");
        first.write_all_at(b"ten bytes!", 0).unwrap();
        let second = open(&other, "f");
        second.write_all_at(&[1; 40 << 10], 0).unwrap();
        close(second).unwrap();
        assert_eq!(fs::read(mounted.behind("f")).unwrap(), [1; 40 << 10]);
        close(first).unwrap();
        drop(alone);
        let behind = fs::read(mounted.behind("f")).unwrap();
        assert_eq!(behind.get(..10), Some(&b"ten bytes!"[..]), "{setting:?}");
        assert_eq!(fs::read(other.path("f")).unwrap(), behind, "{setting:?}");
    }
}

#[test]
fn a_part_that_is_closed_last_is_there_though_the_source_replaced_the_large_file_before() {
    for setting in cached() {
        let mounted = Mounted::new(&setting);
        fs::write(mounted.behind("f"), vec![1; 2 << 20]).unwrap();
        let alone = without_new_processes();
        let file = open(&mounted, "f");
        file.write_all_at(b"ten bytes!", 1 << 20).unwrap();
        replace_behind(&mounted, "f", &vec![2; 2 << 20]);
        close(file).unwrap();
        drop(alone);
        let behind = fs::read(mounted.behind("f")).unwrap();
        assert_eq!(behind.len(), 2 << 20, "{setting:?}");
        let mut rest = behind;
        let part: Vec<u8> = rest.drain(1 << 20..(1 << 20) + 10).collect();
        assert_eq!(part, b"ten bytes!", "{setting:?}");
        // In whole all is this one's; in blocks what it has not written is the other's.
        let expected = if setting.mode == "whole" { 1 } else { 2 };
        let is_one = rest.iter().all(|byte| *byte == expected);
        assert!(
            is_one,
            "{setting:?}: {} and {}",
            rest[0],
            rest[rest.len() - 1]
        );
    }
}

#[test]
fn a_file_with_two_names_is_not_written_through_what_had_its_name_before() {
    for setting in cached() {
        let mounted = Mounted::new(&setting);
        fs::write(mounted.behind("f"), vec![1; 100]).unwrap();
        let alone = without_new_processes();
        let file = open(&mounted, "f");
        file.write_all_at(b"ten bytes!", 0).unwrap();
        // What has the name by now can only be written in place.
        fs::write(mounted.behind("g"), vec![2; 100]).unwrap();
        fs::remove_file(mounted.behind("f")).unwrap();
        let (new, name) = (mounted.behind("g"), mounted.behind("f"));
        rustix::fs::linkat(CWD, new, CWD, name, AtFlags::empty()).unwrap();
        close(file).unwrap();
        drop(alone);
        let behind = fs::read(mounted.behind("f")).unwrap();
        assert_eq!(behind.get(..10), Some(&b"ten bytes!"[..]), "{setting:?}");
        assert_eq!(fs::read(mounted.path("f")).unwrap(), behind, "{setting:?}");
    }
}

#[test]
fn a_name_that_the_source_removed_is_there_again_after_the_last_close() {
    for setting in cached() {
        for size in [10, 40 << 10] {
            let mounted = Mounted::new(&setting);
            fs::write(mounted.behind("f"), b"").unwrap();
            let alone = without_new_processes();
            let file = open(&mounted, "f");
            file.write_all_at(&vec![3; size], 0).unwrap();
            fs::remove_file(mounted.behind("f")).unwrap();
            close(file).unwrap();
            drop(alone);
            let behind = fs::read(mounted.behind("f"));
            assert_eq!(behind.ok(), Some(vec![3; size]), "{setting:?}");
        }
    }
}
