//! Kept copies: changes that could not be written back outlive the mount, are listed, and
//! are sent by the next mount of the source unless the file there has changed.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::io::Errno;
use toll_mount::cache::{KeptCopy, kept};

use crate::mounts::common::{
    CACHED, Mounted, REMOTE_CACHED, Setting, Small, await_that, close, content, each,
    without_new_processes,
};

fn listed(mounted: &Mounted) -> Vec<KeptCopy> {
    kept(&mounted.copies).unwrap()
}

/// Changes the beginning of a file, and closes it after the server was killed.
fn close_without_server(mounted: &mut Mounted, old: &[u8], piece: &[u8]) {
    let alone = without_new_processes();
    fs::write(mounted.behind("f"), old).unwrap();
    let file = mounted.open("f");
    file.write_all_at(piece, 0).unwrap();
    mounted.server.as_mut().unwrap().kill();
    assert_eq!(close(file), Err(Errno::IO));
    drop(alone);
    // `close` returns once the copy is on disk.
    assert_eq!(listed(mounted).len(), 1, "{:?}", mounted.said());
}

fn changed(old: &[u8], piece: &[u8]) -> Vec<u8> {
    [piece, &old[piece.len()..]].concat()
}

#[derive(Clone, Copy)]
enum End {
    Kill,
    Stop,
}

fn end(mounted: &mut Mounted, how: End) {
    match how {
        End::Kill => mounted.kill(),
        End::Stop => assert!(!mounted.stop().1),
    }
    mounted.detach();
}

#[track_caller]
fn assert_sent(mounted: &Mounted, expected: &[u8]) {
    await_that("the end of the kept copy", || {
        mounted.kept().is_empty() && listed(mounted).is_empty()
    });
    // The copy is removed only once the source has its content.
    mounted.assert_behind("f", expected);
    let left = fs::read_dir(mounted.copies.join("kept")).unwrap().count();
    assert_eq!(left, 0, "records are left");
    mounted.assert_read("f", expected);
}

#[test]
fn what_is_kept_while_the_server_is_away_is_sent_by_the_next_mount() {
    // In mode `blocks`, the copy has only a part of the longer file.
    for (how, size_bytes) in [
        (End::Kill, 10_000),
        (End::Kill, 3_000_000),
        (End::Stop, 10_000),
    ] {
        each(REMOTE_CACHED, |mounted| {
            let old = content(1, size_bytes);
            close_without_server(mounted, &old, b"new content");
            let found = listed(mounted);
            assert_eq!(found.len(), 1);
            assert!(found[0].is_served);
            end(mounted, how);
            // An `ssh` that was being started holds the lock until it executes its program.
            await_that("the end of the mount", || !listed(mounted)[0].is_served);
            let found = &listed(mounted)[0];
            assert!(found.source.ends_with("/source"), "{found:?}");
            assert_eq!(found.path, std::path::Path::new("f"));
            assert_eq!(found.size_bytes, size_bytes as u64);
            assert!(mounted.kept().iter().eq([&found.place]));
            let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
            assert_eq!(mode(&found.place), 0o600);
            assert_eq!(mode(found.place.parent().unwrap()), 0o700);
            mounted.assert_behind("f", &old);
            mounted.start_server_again();
            mounted.mount();
            // Even before it is sent.
            mounted.assert_read("f", changed(&old, b"new content"));
            assert_sent(mounted, &changed(&old, b"new content"));
            mounted.stop_clean();
        });
    }
}

#[test]
fn what_is_kept_of_a_file_that_has_changed_since_is_left_and_said() {
    each(REMOTE_CACHED, |mounted| {
        close_without_server(mounted, &content(1, 10_000), b"new content");
        end(mounted, End::Kill);
        let others = content(2, 9_000);
        fs::write(mounted.behind("f"), &others).unwrap();
        mounted.start_server_again();
        mounted.mount();
        let said = mounted.said().join("\n");
        assert!(said.contains("has changed since"), "{said}");
        mounted.assert_read("f", &others);
        mounted.stop_clean();
        mounted.assert_behind("f", &others);
        // Removing the content discards the copy.
        let place = listed(mounted)[0].place.clone();
        assert!(fs::read(&place).unwrap().starts_with(b"new content"));
        fs::remove_file(place).unwrap();
        assert!(listed(mounted).is_empty());
        assert_eq!(
            fs::read_dir(mounted.copies.join("kept")).unwrap().count(),
            0
        );
        mounted.mount();
    });
}

#[test]
fn a_file_that_changes_after_the_mount_has_begun_is_not_overwritten_by_what_was_kept() {
    let watched = |setting: &Setting| setting.clone().watched();
    each(
        &REMOTE_CACHED.iter().map(watched).collect::<Vec<_>>(),
        |mounted| {
            close_without_server(mounted, &content(1, 10_000), b"new content");
            end(mounted, End::Kill);
            mounted.start_server_again();
            // Write-backs fail until somebody else has changed the file.
            mounted.control.fail("write", "f", libc::ENOSPC);
            mounted.control.fail("rename", "", libc::ENOSPC);
            mounted.mount();
            let others = content(2, 9_000);
            fs::write(mounted.behind("f"), &others).unwrap();
            mounted.control.succeed("write");
            mounted.control.succeed("rename");
            await_that("the message", || {
                mounted.said().join("\n").contains("has changed since")
            });
            assert!(!mounted.stop().1);
            mounted.assert_behind("f", &others);
            assert_eq!(listed(mounted).len(), 1);
        },
    );
}

#[test]
fn what_is_kept_as_the_disk_was_full_is_sent_by_the_next_mount_when_there_is_room() {
    for setting in CACHED.iter().filter(|setting| setting.is_possible()) {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        let small = Small::new(&source, "size=4m").unwrap();
        let mounted = &mut Mounted::existing(&source, place.path(), setting);
        fs::write(mounted.behind("ballast"), vec![2; 3 << 20]).unwrap();
        let new = content(3, 2_000_000);
        let alone = without_new_processes();
        let written = fs::write(mounted.path("f"), &new);
        drop(alone);
        // `fs::write` ignores the result of close.
        written.unwrap();
        await_that("a kept copy", || !listed(mounted).is_empty());
        assert_eq!(
            listed(mounted)[0].why,
            "No space left on device (os error 28)"
        );
        end(mounted, End::Kill);
        fs::remove_file(mounted.behind("ballast")).unwrap();
        mounted.mount();
        assert_sent(mounted, &new);
        mounted.stop_clean();
        drop(small);
    }
}

#[test]
fn what_had_no_room_to_be_kept_is_kept_once_there_is_some() {
    for setting in CACHED.iter().filter(|setting| setting.is_possible()) {
        let place = tempfile::tempdir().unwrap();
        let (source, copies) = (place.path().join("source"), place.path().join("copies"));
        fs::create_dir(&source).unwrap();
        let small = Small::new(&copies, "size=4m,mode=700").unwrap();
        let mounted = &mut Mounted::existing(&source, place.path(), &setting.clone().watched());
        let ballast = copies.join("ballast");
        fs::write(&ballast, vec![2; 3 << 20]).unwrap();
        mounted.control.fail("write", "", libc::ENOSPC);
        mounted.control.fail("rename", "", libc::ENOSPC);
        let new = content(3, 2_000_000);
        fs::write(mounted.path("f"), &new).unwrap();
        let said = |what: &str| mounted.said().join("\n").matches(what).count();
        // One after the close, one when the kernel gives up the file.
        await_that("two messages", || said("is kept in memory") == 2);
        assert_eq!(mounted.kept(), Vec::<std::path::PathBuf>::new());
        fs::remove_file(ballast).unwrap();
        await_that("a kept copy", || !listed(mounted).is_empty());
        await_that("a message", || said(" now") == 1);
        end(mounted, End::Kill);
        mounted.control.succeed("write");
        mounted.control.succeed("rename");
        mounted.mount();
        assert_sent(mounted, &new);
        mounted.stop_clean();
        drop(small);
    }
}
