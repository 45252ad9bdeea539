//! Two mounts of one source, and changes at the source: who opens a file sees
//! what was there when the last writer had closed it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;

use crate::common::{Mounted, SETTINGS, Setting, each, open};

fn pairs(test: impl Fn(&Mounted, &Mounted)) {
    // The kernel's write-back is for sources that nobody else changes.
    let settings = SETTINGS
        .iter()
        .filter(|setting| setting.kernel != "writeback");
    each(settings, |first| {
        let place = tempfile::tempdir().unwrap();
        let second = Mounted::of(&first.source, place.path(), &first.setting);
        test(first, &second);
    });
}

#[test]
fn an_open_sees_what_the_other_mount_has_closed() {
    pairs(|first, second| {
        assert!(fs::read(second.path("f")).is_err());
        for round in 0..20_u8 {
            let length = 1000 + usize::from(round) * 20_000;
            let content = vec![round; length];
            let (writer, reader) = match round % 2 {
                0 => (first, second),
                _ => (second, first),
            };
            fs::write(writer.path("f"), &content).unwrap();
            reader.assert_read("f", &content);
            let found = File::open(reader.path("f")).unwrap().metadata().unwrap();
            assert_eq!(found.len(), length as u64, "round {round}");
        }
        assert_eq!(fs::read_dir(&second.at).unwrap().count(), 1);
    });
}

#[test]
fn an_open_sees_a_change_that_left_the_length() {
    pairs(|first, second| {
        for round in 0..10_u8 {
            fs::write(first.path("f"), [round; 10_000]).unwrap();
            second.assert_read("f", [round; 10_000]);
            fs::write(first.behind("f"), [round + 100; 10_000]).unwrap();
            second.assert_read("f", [round + 100; 10_000]);
            first.assert_read("f", [round + 100; 10_000]);
        }
    });
}

#[test]
fn an_append_after_the_other_mounts_close_comes_after_its_content() {
    pairs(|first, second| {
        let append = |mounted: &Mounted, text: &str| {
            let mut options = File::options();
            let file = options.append(true).create(true).open(mounted.path("f"));
            file.unwrap().write_all(text.as_bytes()).unwrap();
        };
        for _ in 0..10 {
            append(first, "one ");
            append(second, "two ");
        }
        first.assert_behind("f", "one two ".repeat(10));
    });
}

#[test]
fn a_name_that_another_file_has_taken_leads_to_that_file() {
    pairs(|first, second| {
        fs::write(first.path("f"), b"old").unwrap();
        second.assert_read("f", b"old");
        fs::write(first.path("g"), b"new").unwrap();
        let mut open = File::open(second.path("f")).unwrap();
        fs::rename(first.path("g"), first.path("f")).unwrap();
        second.assert_read("f", b"new");
        let mut content = String::new();
        open.read_to_string(&mut content).unwrap();
        assert_eq!(content, "old");
        fs::remove_file(first.path("f")).unwrap();
        let gone = fs::read(second.path("f")).unwrap_err();
        assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
    });
}

#[test]
fn the_kernel_keeps_its_pages_of_what_it_has_written_back_itself() {
    each(&[Setting::new("none", "writeback")], |mounted| {
        // The kernel may drop pages whenever it likes.
        let is_kept = (0..50).any(|round| {
            let name = format!("f{round}");
            let file = File::create(mounted.path(&name)).unwrap();
            file.write_all_at(&[1; 10_000], 0).unwrap();
            file.sync_all().unwrap();
            drop(file);
            // A change that nobody can see.
            let behind = open(&mounted.behind(&name));
            let mtime = behind.metadata().unwrap().modified().unwrap();
            behind.write_all_at(&[2; 10_000], 0).unwrap();
            behind.set_modified(mtime).unwrap();
            mounted.read(&name) == [1; 10_000]
        });
        assert!(is_kept, "each open has dropped them");
    });
}
