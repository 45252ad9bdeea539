//! Two mounts of one source, and changes at the source: an open sees the content that the
//! last writer had closed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use crate::mounts::common::{Mounted, REMOTE_SETTINGS, SETTINGS, Setting, Small, each, open};

fn pairs(test: impl Fn(&Mounted, &Mounted)) {
    // The kernel's write-back is for sources that nobody else changes.
    let settings = SETTINGS
        .iter()
        .filter(|setting| setting.kernel != "writeback");
    each(settings, |first| {
        let place = tempfile::tempdir().unwrap();
        let second = Mounted::existing(&first.source, place.path(), &first.setting);
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
        for _ in 0..10 {
            append(&first.path("f"), "one ");
            append(&second.path("f"), "two ");
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
        // In memory, a change through a mapping does not change timestamps.
        let small = Small::new(&mounted.behind("small"), "size=4m").unwrap();
        // The kernel may drop pages at any time.
        let is_kept = (0..50).any(|round| {
            let name = format!("small/f{round}");
            fs::write(mounted.behind(&name), [0; 10_000]).unwrap();
            let behind = open(&mounted.behind(&name));
            // SAFETY: nobody truncates the file while it is mapped.
            let mut mapped = unsafe { memmap2::MmapMut::map_mut(&behind) }.unwrap();
            // Only the first write to a page changes a timestamp.
            mapped.fill(0);
            let file = mounted.open(&name);
            file.write_all_at(&[1; 10_000], 0).unwrap();
            file.sync_all().unwrap();
            drop(file);
            let before = behind.metadata().unwrap();
            mapped.fill(2);
            let after = behind.metadata().unwrap();
            let times = |found: &fs::Metadata| (found.ctime(), found.ctime_nsec());
            assert_eq!(times(&before), times(&after));
            mounted.read(&name) == [1; 10_000]
        });
        assert!(is_kept, "every open has dropped the pages");
        drop(small);
    });
}

#[test]
fn an_open_sees_a_new_content_with_the_old_length_and_time() {
    let settings = SETTINGS
        .iter()
        .filter(|setting| setting.kernel != "writeback");
    each(settings, |mounted| {
        fs::write(mounted.behind("f"), [0; 10_000]).unwrap();
        let behind = open(&mounted.behind("f"));
        let rounds = [(false, false), (true, false), (false, true), (true, true)];
        for (round, (is_held, is_settled)) in (1..).zip(rounds) {
            // Otherwise a file that has just changed counts as changed whatever its
            // timestamps.
            let settle = || is_settled.then(outlive_tick);
            let mtime = behind.metadata().unwrap().modified().unwrap();
            let held = is_held.then(|| mounted.open("f"));
            settle();
            mounted.read("f");
            // `cp -p` and rsync restore timestamps in this way.
            behind.write_all_at(&[round; 10_000], 0).unwrap();
            behind.set_modified(mtime).unwrap();
            settle();
            mounted.assert_read("f", [round; 10_000]);
            drop(held);
        }
    });
}

/// Waits for longer than a tick of the kernel's clock for file timestamps.
fn outlive_tick() {
    std::thread::sleep(Duration::from_millis(40));
}

#[test]
fn a_local_file_that_changed_in_this_tick_counts_as_changed() {
    use toll_mount::source::{Source, Timespec};
    let directory = tempfile::tempdir().unwrap();
    let source = toll_mount::local::Local::new(directory.path()).unwrap();
    let settled_after = |seconds| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        source.is_settled(Timespec {
            tv_sec: now.tv_sec - seconds,
            ..now
        })
    };
    // This thread may be delayed for longer than a tick, but not always.
    assert!((0..1000).any(|_| !settled_after(0)));
    assert!(settled_after(1) && settled_after(-3600));
}

/// Shortens the attribute timeout, so that the kernel soon requests attributes again.
fn brief(settings: &[Setting]) -> Vec<Setting> {
    let brief = |setting: &Setting| Setting {
        lifetime_ms: 10,
        ..setting.clone()
    };
    settings.iter().map(brief).collect()
}

/// Waits for longer than the attribute timeout of these tests.
fn outlive_attributes() {
    std::thread::sleep(Duration::from_millis(40));
}

fn append(path: &Path, text: &str) {
    let mut options = File::options();
    let mut file = options.append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Returns all cache settings in which somebody else may change the source.
fn shared_settings() -> Vec<Setting> {
    let all = [&SETTINGS[..], &REMOTE_SETTINGS[..]].concat();
    let shared = all
        .into_iter()
        .filter(|setting| setting.kernel != "writeback");
    brief(&shared.collect::<Vec<_>>())
}

#[test]
fn an_append_comes_after_what_others_appended_while_the_file_was_open_here() {
    // The test also covers the time in which the kernel takes the old length to be
    // valid.
    let slow = |setting: &Setting| Setting {
        lifetime_ms: 600_000,
        ..setting.clone()
    };
    let brief = shared_settings();
    let all = brief.iter().cloned().chain(brief.iter().map(slow));
    each(&all.collect::<Vec<_>>(), |mounted| {
        for round in 0..4 {
            let name = format!("f{round}");
            append(&mounted.behind(&name), "here ");
            let open = match round % 2 {
                0 => File::open(mounted.path(&name)).unwrap(),
                _ => open(&mounted.path(&name)),
            };
            outlive_attributes();
            append(&mounted.behind(&name), "others ");
            if round >= 2 {
                outlive_attributes();
            }
            append(&mounted.path(&name), "here");
            mounted.assert_behind(&name, "here others here");
            mounted.assert_read(&name, "here others here");
            drop(open);
        }
    });
}

#[test]
fn an_open_sees_what_others_wrote_while_the_file_was_open_here() {
    each(&shared_settings(), |mounted| {
        fs::write(mounted.behind("f"), "first").unwrap();
        let open = mounted.open("f");
        for round in 1..20_usize {
            let text = round.to_string().repeat(1 + 40 * (round % 5));
            fs::write(mounted.behind("f"), &text).unwrap();
            if round % 2 == 0 {
                outlive_attributes();
            }
            mounted.assert_read("f", &text);
            let length = fs::metadata(mounted.path("f")).unwrap().len();
            assert_eq!(length, text.len() as u64, "round {round}");
        }
        drop(open);
    });
}

#[test]
fn a_descriptor_that_appends_writes_after_what_others_have_appended_since_it_was_opened() {
    let settings = shared_settings();
    // Without a copy, a round trip for each write over SFTP would cost too much.
    let asks = |setting: &&Setting| setting.mode != "none" || !setting.is_remote;
    each(settings.iter().filter(asks), |mounted| {
        let mut options = File::options();
        let options = options.append(true).read(true).create(true);
        let mut open = options.open(mounted.path("f")).unwrap();
        let mut expected = String::new();
        for round in 0..10 {
            append(&mounted.behind("f"), "others ");
            open.write_all(b"here ").unwrap();
            open.sync_all().unwrap();
            expected += "others here ";
            mounted.assert_behind("f", &expected);
            if round % 2 == 0 {
                mounted.assert_read("f", &expected);
            }
        }
    });
}
