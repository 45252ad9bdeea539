//! Two mounts of one source, and changes at the source: who opens a file sees
//! what was there when the last writer had closed it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;

use crate::common::{Mounted, SETTINGS, Setting, can_mount};

fn pairs(test: impl Fn(&Mounted, &Mounted)) {
    if !can_mount() {
        return;
    }
    for setting in &SETTINGS {
        if setting.kernel == "writeback" {
            // It is for sources that nobody else changes.
            continue;
        }
        eprintln!("in {setting:?}");
        let first = Mounted::new(setting);
        let place = tempfile::tempdir().unwrap();
        let second = Mounted::of(&first.source, place.path(), setting);
        test(&first, &second);
    }
}

#[test]
fn an_open_sees_what_the_other_mount_has_closed() {
    pairs(|first, second| {
        for round in 0..20_u8 {
            let length = 1000 + usize::from(round) * 20_000;
            let content = vec![round; length];
            let (writer, reader) = match round % 2 {
                0 => (first, second),
                _ => (second, first),
            };
            fs::write(writer.path("f"), &content).unwrap();
            assert!(
                fs::read(reader.path("f")).unwrap() == content,
                "round {round}"
            );
            let found = File::open(reader.path("f")).unwrap().metadata().unwrap();
            assert_eq!(found.len(), length as u64, "round {round}");
        }
    });
}

#[test]
fn an_open_sees_a_change_that_left_the_length() {
    pairs(|first, second| {
        for round in 0..10_u8 {
            fs::write(first.path("f"), [round; 10_000]).unwrap();
            assert_eq!(fs::read(second.path("f")).unwrap(), [round; 10_000]);
            fs::write(first.behind("f"), [round + 100; 10_000]).unwrap();
            assert_eq!(fs::read(second.path("f")).unwrap(), [round + 100; 10_000]);
            assert_eq!(fs::read(first.path("f")).unwrap(), [round + 100; 10_000]);
        }
    });
}

#[test]
fn an_append_after_the_other_mounts_close_comes_after_its_content() {
    pairs(|first, second| {
        let append = |mounted: &Mounted, text: &str| {
            let mut file = File::options()
                .append(true)
                .create(true)
                .open(mounted.path("f"))
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        for _ in 0..10 {
            append(first, "one ");
            append(second, "two ");
        }
        assert_eq!(
            fs::read_to_string(first.behind("f")).unwrap(),
            "one two ".repeat(10)
        );
    });
}

#[test]
fn a_name_that_another_file_has_taken_leads_to_that_file() {
    pairs(|first, second| {
        fs::write(first.path("f"), b"old").unwrap();
        assert_eq!(fs::read(second.path("f")).unwrap(), b"old");
        fs::write(first.path("g"), b"new").unwrap();
        let mut open = File::open(second.path("f")).unwrap();
        fs::rename(first.path("g"), first.path("f")).unwrap();
        assert_eq!(fs::read(second.path("f")).unwrap(), b"new");
        let mut content = String::new();
        open.read_to_string(&mut content).unwrap();
        assert_eq!(content, "old");
        fs::remove_file(first.path("f")).unwrap();
        let gone = fs::read(second.path("f")).unwrap_err();
        assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
    });
}

#[test]
fn a_file_of_the_other_mount_is_found_though_it_was_missing_before() {
    pairs(|first, second| {
        assert!(fs::read(second.path("f")).is_err());
        fs::write(first.path("f"), b"here").unwrap();
        assert_eq!(fs::read(second.path("f")).unwrap(), b"here");
        assert_eq!(fs::read_dir(&second.at).unwrap().count(), 1);
    });
}

#[test]
fn the_kernel_keeps_its_pages_of_what_it_has_written_back_itself() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&Setting::new("none", "writeback"));
    // The kernel may drop pages whenever it likes.
    let is_kept = (0..50).any(|round| {
        let name = format!("f{round}");
        let file = File::create(mounted.path(&name)).unwrap();
        file.write_all_at(&[1; 10_000], 0).unwrap();
        file.sync_all().unwrap();
        drop(file);
        // A change that nobody can see.
        let behind = File::options().write(true).open(mounted.behind(&name));
        let behind = behind.unwrap();
        let mtime = behind.metadata().unwrap().modified().unwrap();
        behind.write_all_at(&[2; 10_000], 0).unwrap();
        behind.set_modified(mtime).unwrap();
        fs::read(mounted.path(&name)).unwrap() == [1; 10_000]
    });
    assert!(is_kept, "each open has dropped them");
}
