//! Data that is sent to another host before a file is closed: it becomes part of the file
//! as it is at the close, or is discarded.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::mounts::common::{
    self, Mounted, REMOTE_CACHED, assert_same, await_no_temporaries, await_that, close, each,
    temporaries, without_new_processes,
};

const BYTES: usize = 6 << 20;
const PIECE_BYTES: usize = 128 << 10;
const TRIES: usize = 600;

fn content(seed: usize) -> Vec<u8> {
    common::content(seed, BYTES)
}

/// Truncates a file, writes new content, and waits until some of it is at the source.
/// Starts again if the file has already been written back.
fn write_some(mounted: &Mounted, name: &str, content: &[u8]) -> File {
    let behind = mounted.behind(name);
    let directory = behind.parent().unwrap();
    let _alone = without_new_processes();
    for _ in 0..TRIES {
        let file = File::create(mounted.path(name)).unwrap();
        for (at, piece) in (0..).step_by(PIECE_BYTES).zip(content.chunks(PIECE_BYTES)) {
            file.write_all_at(piece, at).unwrap();
        }
        for _ in 0..TRIES {
            let sizes = temporaries(directory).into_iter();
            let sizes = sizes.map(|path| fs::metadata(path).map_or(0, |found| found.len()));
            if sizes.sum::<u64>() >= 1 << 20 {
                return file;
            }
            if fs::read(&behind).is_ok_and(|found| found == content) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    panic!("no content arrives before the close");
}

/// Panics unless a file has the old content or the beginning of the new one. Another test's
/// child process may have closed its copy of the file descriptor, which writes the file
/// back.
fn assert_old(mounted: &Mounted, name: &str, old: &[u8], new: &[u8]) {
    let found = mounted.read_behind(name);
    let is_new = found.len() >= PIECE_BYTES && new.starts_with(&found);
    assert!(found == old || is_new, "{} bytes", found.len());
}

fn each_cached(test: impl Fn(&mut Mounted)) {
    each(REMOTE_CACHED, |mounted| {
        test(mounted);
        mounted.stop_clean();
        assert_eq!(
            temporaries(&mounted.source).len(),
            0,
            "{:?}",
            mounted.setting
        );
    });
}

/// Changes a file that was partly sent, closes it, and compares.
fn check_changed(change: impl Fn(&File, &mut Vec<u8>)) {
    each_cached(|mounted| {
        let mut expected = content(1);
        fs::write(mounted.behind("f"), "old").unwrap();
        let file = write_some(mounted, "f", &expected);
        assert_old(mounted, "f", b"old", &expected);
        change(&file, &mut expected);
        close(file).unwrap();
        mounted.assert_behind("f", &expected);
        mounted.assert_read("f", &expected);
    });
}

#[test]
fn what_is_written_again_after_it_was_sent_is_in_the_file() {
    check_changed(|file, expected| {
        for at in [0, 5_000, (1 << 20) - 3, BYTES - 5] {
            file.write_all_at(b"again", at as u64).unwrap();
            expected[at..at + 5].copy_from_slice(b"again");
        }
        file.write_all_at(b"end", BYTES as u64 + 100_000).unwrap();
        expected.resize(BYTES + 100_000, 0);
        expected.extend_from_slice(b"end");
    });
}

#[test]
fn what_is_cut_off_after_it_was_sent_is_not_in_the_file() {
    check_changed(|file, expected| {
        file.set_len(5).unwrap();
        file.write_all_at(b"x", 2 << 20).unwrap();
        expected.truncate(5);
        expected.resize(2 << 20, 0);
        expected.push(b'x');
    });
}

#[test]
fn a_hole_in_what_was_sent_is_zero() {
    check_changed(|file, expected| {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(file, flags, 4096, 1 << 20).unwrap();
        expected[4096..4096 + (1 << 20)].fill(0);
    });
}

#[test]
fn a_file_that_is_removed_or_moved_while_it_is_sent_keeps_no_directory() {
    each_cached(|mounted| {
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
        mounted.assert_behind("f", content(5));
        fs::create_dir(mounted.path("d")).unwrap();
        let file = write_some(mounted, "d/f", &content(6));
        fs::rename(mounted.path("d"), mounted.path("e")).unwrap();
        close(file).unwrap();
        mounted.assert_behind("e/f", content(6));
        assert_eq!(temporaries(&mounted.behind("e")).len(), 0);
    });
}

#[test]
fn a_connection_that_is_lost_while_a_file_is_sent_costs_neither_content() {
    each_cached(|mounted| {
        for seed in 7..10 {
            let (before, new) = (content(seed - 1), content(seed));
            fs::write(mounted.behind("f"), &before).unwrap();
            let file = write_some(mounted, "f", &new);
            mounted.server.as_ref().unwrap().kill_sessions();
            assert_old(mounted, "f", &before, &new);
            if let Err(error) = close(file) {
                assert_eq!(error, rustix::io::Errno::IO);
                assert_same(&mounted.read("f"), &new, "content in the mount");
            }
            await_that("the new content", || mounted.read_behind("f") == new);
            await_no_temporaries(&mounted.source);
        }
    });
}

#[test]
fn what_a_killed_mount_had_sent_is_removed_by_the_next() {
    each(REMOTE_CACHED, |mounted| {
        fs::write(mounted.behind("f"), "old").unwrap();
        let file = write_some(mounted, "f", &content(1));
        mounted.kill();
        drop(file);
        assert_old(mounted, "f", b"old", &content(1));
        mounted.mount_anew();
        await_no_temporaries(&mounted.source);
    });
}
