//! What is sent to another host before a file is closed: it becomes the file
//! as it is at the close, or nothing.

use std::fs::{self, File};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::common::{Mounted, Setting, can_mount_remote, without_new_processes};

const SETTINGS: [Setting; 2] = [
    Setting::remote("whole", "pages"),
    Setting::remote("blocks", "pages"),
];
const BYTES: usize = 6 << 20;
const TRIES: usize = 600;

fn content(seed: u8) -> Vec<u8> {
    let numbers = 0..(BYTES / 8) as u64;
    let word = |number: u64| (number << 8 | u64::from(seed)).to_le_bytes();
    numbers.flat_map(word).collect()
}

fn temporaries(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_temporary = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(".toll-")
    };
    paths.filter(is_temporary).collect()
}

fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let has_come = (0..10 * TRIES).any(|_| {
        let is_so = is_so();
        if !is_so {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_so
    });
    assert!(has_come, "{what} does not come");
}

fn close(file: File) -> std::io::Result<()> {
    // SAFETY: the descriptor is this function's own.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Opens a file to be overwritten, writes a content, and waits until some of
/// it is at the source. Begins again if the file was written back already.
fn write_some(mounted: &Mounted, name: &str, content: &[u8]) -> File {
    let behind = mounted.behind(name);
    let directory = behind.parent().unwrap();
    let _alone = without_new_processes();
    for _ in 0..TRIES {
        let file = File::create(mounted.path(name)).unwrap();
        for (number, piece) in content.chunks(128 << 10).enumerate() {
            file.write_all_at(piece, (number * (128 << 10)) as u64)
                .unwrap();
        }
        for _ in 0..TRIES {
            let sizes = temporaries(directory)
                .into_iter()
                .map(|path| fs::metadata(path).map_or(0, |found| found.len()));
            if sizes.sum::<u64>() >= 1 << 20 {
                return file;
            }
            if fs::read(&behind).is_ok_and(|found| found == content) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    panic!("no content comes before the close");
}

/// Whether a file has an old content, or as much of a new one as there was when
/// another test's new process closed its copy of the descriptor.
fn is_old(mounted: &Mounted, name: &str, old: &[u8], new: &[u8]) -> bool {
    let found = fs::read(mounted.behind(name)).unwrap();
    found == old || (found.len() >= 128 << 10 && new.starts_with(&found))
}

fn each(test: impl Fn(&mut Mounted)) {
    if !can_mount_remote() {
        return;
    }
    for setting in &SETTINGS {
        let mut mounted = Mounted::new(setting);
        test(&mut mounted);
        let (said, is_clean) = mounted.stop();
        assert!(is_clean, "{setting:?}: {said:?}");
        assert!(temporaries(&mounted.source).is_empty(), "{setting:?}");
    }
}

#[test]
fn what_is_written_again_after_it_was_sent_is_in_the_file() {
    each(|mounted| {
        let mut expected = content(1);
        fs::write(mounted.behind("f"), "old").unwrap();
        let file = write_some(mounted, "f", &expected);
        assert!(is_old(mounted, "f", b"old", &expected));
        for at in [0, 5_000, (1 << 20) - 3, BYTES - 5] {
            file.write_all_at(b"again", at as u64).unwrap();
            expected[at..at + 5].copy_from_slice(b"again");
        }
        file.write_all_at(b"end", BYTES as u64 + 100_000).unwrap();
        expected.resize(BYTES + 100_000, 0);
        expected.extend_from_slice(b"end");
        close(file).unwrap();
        assert!(fs::read(mounted.behind("f")).unwrap() == expected);
        assert!(fs::read(mounted.path("f")).unwrap() == expected);
    });
}

#[test]
fn what_is_cut_off_after_it_was_sent_is_not_in_the_file() {
    each(|mounted| {
        let file = write_some(mounted, "f", &content(2));
        file.set_len(5).unwrap();
        file.write_all_at(b"x", 2 << 20).unwrap();
        close(file).unwrap();
        let mut expected = content(2)[..5].to_vec();
        expected.resize(2 << 20, 0);
        expected.push(b'x');
        assert!(fs::read(mounted.behind("f")).unwrap() == expected);
    });
}

#[test]
fn a_hole_in_what_was_sent_is_zero() {
    each(|mounted| {
        let file = write_some(mounted, "f", &content(3));
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, flags, 4096, 1 << 20).unwrap();
        close(file).unwrap();
        let mut expected = content(3);
        expected[4096..4096 + (1 << 20)].fill(0);
        assert!(fs::read(mounted.behind("f")).unwrap() == expected);
    });
}

#[test]
fn a_file_that_is_removed_or_moved_while_it_is_sent_keeps_no_directory() {
    each(|mounted| {
        fs::create_dir(mounted.path("d")).unwrap();
        let file = write_some(mounted, "d/f", &content(4));
        fs::remove_file(mounted.path("d/f")).unwrap();
        fs::remove_dir(mounted.path("d")).unwrap();
        close(file).unwrap();
        fs::create_dir(mounted.path("d")).unwrap();
        let file = write_some(mounted, "d/f", &content(5));
        fs::rename(mounted.path("d/f"), mounted.path("f")).unwrap();
        fs::remove_dir(mounted.path("d")).unwrap();
        close(file).unwrap();
        assert!(fs::read(mounted.behind("f")).unwrap() == content(5));
        fs::create_dir(mounted.path("d")).unwrap();
        let file = write_some(mounted, "d/f", &content(6));
        fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
        close(file).unwrap();
        assert!(fs::read(mounted.behind("e/f")).unwrap() == content(6));
        assert!(temporaries(&mounted.behind("e")).is_empty());
    });
}

#[test]
fn a_connection_that_is_lost_while_a_file_is_sent_costs_neither_content() {
    each(|mounted| {
        for seed in 7..10 {
            let before = content(seed - 1);
            fs::write(mounted.behind("f"), &before).unwrap();
            let file = write_some(mounted, "f", &content(seed));
            mounted.server.as_ref().unwrap().kill_sessions();
            assert!(is_old(mounted, "f", &before, &content(seed)));
            if let Err(error) = close(file) {
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
                assert!(fs::read(mounted.path("f")).unwrap() == content(seed));
            }
            await_that("the new content", || {
                fs::read(mounted.behind("f")).unwrap() == content(seed)
            });
            await_that("an end of temporary files", || {
                temporaries(&mounted.source).is_empty()
            });
        }
    });
}

#[test]
fn what_a_killed_mount_had_sent_is_removed_by_the_next() {
    if !can_mount_remote() {
        return;
    }
    for setting in &SETTINGS {
        let mut mounted = Mounted::new(setting);
        fs::write(mounted.behind("f"), "old").unwrap();
        let file = write_some(&mounted, "f", &content(1));
        mounted.kill();
        drop(file);
        mounted.detach();
        assert!(is_old(&mounted, "f", b"old", &content(1)));
        mounted.mount();
        await_that("an end of temporary files", || {
            temporaries(&mounted.source).is_empty()
        });
    }
}
