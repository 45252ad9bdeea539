//! Mounts of a remote directory whose server is killed, goes away or is full: what close or
//! fsync acknowledged is on the server, anything else is reported as an error, and old
//! content stays until the new one is complete.

use std::fs::{self, File};
use std::io::{Result, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::mounts::common::{
    Mounted, REMOTE_CACHED, REMOTE_MODES, Small, assert_errno, assert_same, await_that, close,
    content, each, without_new_processes,
};

/// Overwrites a file, and synchronises it if `syncs`.
fn write(path: &Path, content: &[u8], syncs: bool) -> Result<()> {
    let mut file = File::create(path)?;
    let written = content
        .chunks(100_000)
        .try_for_each(|piece| file.write_all(piece))
        .and_then(|()| if syncs { file.sync_all() } else { Ok(()) });
    let closed = close(file);
    written.and(Ok(closed?))
}

/// Kills the server's sessions until four writes have failed.
fn kill_again_and_again(mounted: &Mounted, written: &AtomicUsize, failed: &AtomicUsize) {
    for number in 0..200 {
        if failed.load(Ordering::Relaxed) >= 4 {
            break;
        }
        // Kills at some point of the write after one that succeeded.
        let before = written.load(Ordering::Relaxed);
        for _ in 0..3000 {
            if written.load(Ordering::Relaxed) > before {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(number * 7 % 60));
        mounted.server.as_ref().unwrap().kill_sessions();
    }
}

#[test]
fn what_was_acknowledged_is_on_the_server_however_often_it_is_killed() {
    let content_of = |round| content(round, 1_500_000 + round);
    each(&REMOTE_MODES, |mounted| {
        let (written, failed, is_over) = <(AtomicUsize, AtomicUsize, AtomicBool)>::default();
        let mut acknowledged = Vec::new();
        let watched = &*mounted;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                kill_again_and_again(watched, &written, &failed);
                is_over.store(true, Ordering::Relaxed);
            });
            for round in 0.. {
                let name = format!("f{}", round % 7);
                let new = content_of(round);
                // After an error it has the old content or the new one, or is empty from
                // the open.
                acknowledged.retain(|(other, _)| *other != name);
                match write(&watched.path(&name), &new, round % 2 == 0) {
                    Ok(()) => {
                        written.fetch_add(1, Ordering::Relaxed);
                        watched.assert_behind(&name, &new);
                        // If the server is killed in between, the read is right or fails.
                        if let Ok(found) = fs::read(watched.path(&name)) {
                            assert_same(&found, &new, &name);
                        }
                        acknowledged.push((name, round));
                    }
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
                        failed.fetch_add(1, Ordering::Relaxed);
                        let found = fs::read(watched.behind(&name)).unwrap_or_default();
                        if watched.setting.mode == "whole" && !found.is_empty() {
                            // It has all the content of some write.
                            let round = found.len() - content_of(0).len();
                            assert_same(&found, &content_of(round), &name);
                        }
                    }
                }
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        assert!(failed.load(Ordering::Relaxed) >= 4, "nothing failed");
        assert!(!acknowledged.is_empty());
        let said = mounted.stop().0.join("\n");
        assert!(said.contains("connection lost") && said.contains("reconnected"));
        for (name, round) in acknowledged {
            mounted.assert_behind(&name, content_of(round));
        }
    });
}

/// Kills the server of an open file with new content. Returns the file, the content that
/// the server still has, and the new content.
fn without_server(mounted: &mut Mounted) -> (File, Vec<u8>, Vec<u8>) {
    let (old, new) = (content(1, 900_000), content(2, 800_000));
    fs::write(mounted.behind("f"), &old).unwrap();
    let file = mounted.open("f");
    file.set_len(new.len() as u64).unwrap();
    file.write_all_at(&new, 0).unwrap();
    mounted.server.as_mut().unwrap().kill();
    (file, old, new)
}

#[test]
fn an_old_content_stays_whole_while_a_new_one_cannot_be_brought() {
    each(REMOTE_CACHED, |mounted| {
        let alone = without_new_processes();
        let (file, old, new) = without_server(mounted);
        assert_errno(file.sync_all(), libc::EIO);
        mounted.assert_behind("f", old);
        drop(alone);
        mounted.start_server_again();
        await_that("the server", || file.sync_all().is_ok());
        mounted.assert_behind("f", new);
        close(file).unwrap();
    });
}

#[test]
fn a_file_that_was_closed_without_its_server_is_brought_when_that_is_back() {
    each(REMOTE_CACHED, |mounted| {
        let alone = without_new_processes();
        let (file, old, new) = without_server(mounted);
        assert_eq!(close(file), Err(rustix::io::Errno::IO));
        mounted.assert_behind("f", old);
        drop(alone);
        mounted.start_server_again();
        await_that("the new content", || mounted.read_behind("f") == new);
        mounted.stop_clean();
    });
}

#[test]
fn a_full_disk_of_the_server_ruins_no_file() {
    each(&REMOTE_MODES, |mounted| {
        let (setting, directory) = (mounted.setting.clone(), mounted.behind("small"));
        let small = Small::new(&directory, "size=4m").unwrap();
        let old = content(1, 1 << 20);
        fs::write(directory.join("f"), &old).unwrap();
        let alone = without_new_processes();
        // The content is written over the old content, without truncating the file
        // first.
        let mut file = mounted.open("small/f");
        let written = file.write_all(&content(2, 8 << 20));
        let synced = written.and_then(|()| file.sync_all());
        let closed = close(file);
        assert_errno(synced.and(closed.map_err(Into::into)), libc::ENOSPC);
        drop(alone);
        let found = mounted.read_behind("small/f");
        // The mount retries by itself, and has a temporary file meanwhile.
        await_that("the end of temporary files", || {
            fs::read_dir(&directory).unwrap().count() == 1
        });
        match setting.mode {
            "whole" => assert!(found == old, "{setting:?}: {} bytes", found.len()),
            // A long file is changed in place, starting with the part that makes it longer.
            "blocks" => assert!(found.starts_with(&old), "{setting:?}"),
            _ => {}
        }
        write(&mounted.path("small/g"), b"", true).unwrap();
        drop(small);
    });
}
