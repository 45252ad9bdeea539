//! Mounts of a remote directory whose server is killed, goes away or is full:
//! what close or fsync acknowledged is on the server, what they did not is
//! told, and an old content stays until a new one is complete.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Mounted, Setting, can_mount_remote, without_new_processes};

const MODES: [Setting; 3] = [
    Setting::remote("whole", "pages"),
    Setting::remote("blocks", "pages"),
    Setting::remote("none", "direct"),
];

/// How long is waited for what a mount tries again by itself.
const TRIES: usize = 3000;
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes that tell file, round and offset.
fn content(seed: usize, bytes: usize) -> Vec<u8> {
    let numbers = (0..bytes / 8 + 1).map(|number| (number as u64) << 20 | seed as u64);
    let mut content: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    content.truncate(bytes);
    content
}

/// `close(2)`, with its error.
fn close(file: File) -> std::io::Result<()> {
    // SAFETY: the descriptor is this function's own.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn write(path: &Path, content: &[u8], syncs: bool) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let written = content
        .chunks(100_000)
        .try_for_each(|piece| file.write_all(piece))
        .and_then(|()| if syncs { file.sync_all() } else { Ok(()) });
    let closed = close(file);
    written.and(closed)
}

#[test]
fn what_was_acknowledged_is_on_the_server_however_often_it_is_killed() {
    if !can_mount_remote() {
        return;
    }
    for setting in MODES {
        let mut mounted = Mounted::new(&setting);
        let (failed, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let written = AtomicUsize::new(0);
        let mut acknowledged = Vec::new();
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                for number in 0..200 {
                    if failed.load(Ordering::Relaxed) >= 4 {
                        break;
                    }
                    // Somewhere in the write after one that was done.
                    let before = written.load(Ordering::Relaxed);
                    for _ in 0..TRIES {
                        if written.load(Ordering::Relaxed) > before {
                            break;
                        }
                        std::thread::sleep(PAUSE);
                    }
                    std::thread::sleep(Duration::from_millis(number * 7 % 60));
                    mounted.server.as_ref().unwrap().kill_sessions();
                }
                is_over.store(true, Ordering::Relaxed);
            });
            for round in 0.. {
                let name = format!("f{}", round % 7);
                let new = content(round, 1_500_000 + round);
                match write(&mounted.path(&name), &new, round % 2 == 0) {
                    Ok(()) => {
                        written.fetch_add(1, Ordering::Relaxed);
                        let found = fs::read(mounted.behind(&name)).unwrap();
                        assert!(found == new, "{name} after round {round} in {setting:?}");
                        acknowledged.retain(|(other, _)| *other != name);
                        acknowledged.push((name, round));
                    }
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
                        failed.fetch_add(1, Ordering::Relaxed);
                        // It is what it was, or what it was to be, or empty
                        // from being opened.
                        acknowledged.retain(|(other, _)| *other != name);
                    }
                }
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            killer.join().unwrap();
        });
        assert!(
            failed.load(Ordering::Relaxed) >= 4,
            "nothing failed in {setting:?}"
        );
        assert!(!acknowledged.is_empty());
        mounted.stop();
        for (name, round) in acknowledged {
            let found = fs::read(mounted.behind(&name)).unwrap();
            assert!(
                found == content(round, 1_500_000 + round),
                "{name} in {setting:?}"
            );
        }
    }
}

#[test]
fn an_old_content_stays_whole_while_a_new_one_cannot_be_brought() {
    if !can_mount_remote() {
        return;
    }
    for setting in [&MODES[0], &MODES[1]] {
        let mut mounted = Mounted::new(setting);
        let (old, new) = (content(1, 900_000), content(2, 800_000));
        fs::write(mounted.behind("f"), &old).unwrap();
        let alone = without_new_processes();
        let file = File::options()
            .read(true)
            .write(true)
            .open(mounted.path("f"))
            .unwrap();
        file.set_len(new.len() as u64).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &new, 0).unwrap();
        mounted.server.as_mut().unwrap().kill();
        assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(fs::read(mounted.behind("f")).unwrap() == old);
        drop(alone);
        mounted.start_server_again();
        let is_back = (0..TRIES).any(|_| {
            std::thread::sleep(PAUSE);
            file.sync_all().is_ok()
        });
        assert!(is_back, "{:?}", mounted.said());
        assert!(fs::read(mounted.behind("f")).unwrap() == new, "{setting:?}");
        close(file).unwrap();
    }
}

#[test]
fn a_file_that_was_closed_without_its_server_is_brought_when_that_is_back() {
    if !can_mount_remote() {
        return;
    }
    for setting in [&MODES[0], &MODES[1]] {
        let mut mounted = Mounted::new(setting);
        let (old, new) = (content(1, 900_000), content(2, 950_000));
        fs::write(mounted.behind("f"), &old).unwrap();
        let alone = without_new_processes();
        let file = File::options().write(true).open(mounted.path("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &new, 0).unwrap();
        mounted.server.as_mut().unwrap().kill();
        assert_eq!(close(file).unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(fs::read(mounted.behind("f")).unwrap() == old);
        drop(alone);
        mounted.start_server_again();
        let is_brought = (0..TRIES).any(|_| {
            std::thread::sleep(PAUSE);
            fs::read(mounted.behind("f")).unwrap() == new
        });
        assert!(is_brought, "{setting:?}: {:?}", mounted.said());
        let (said, is_clean) = mounted.stop();
        assert!(is_clean, "{said:?}");
    }
}

#[test]
fn what_cannot_be_brought_before_the_end_is_kept_and_said() {
    if !can_mount_remote() {
        return;
    }
    let mut mounted = Mounted::new(&MODES[0]);
    let new = content(2, 950_000);
    fs::write(mounted.behind("f"), "old").unwrap();
    let alone = without_new_processes();
    let file = File::options().write(true).open(mounted.path("f")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &new, 0).unwrap();
    mounted.server.as_mut().unwrap().kill();
    assert!(close(file).is_err());
    drop(alone);
    let (said, is_clean) = mounted.stop();
    assert!(!is_clean, "{said:?}");
    assert_eq!(fs::read(mounted.behind("f")).unwrap(), b"old");
    let kept = fs::read_dir(mounted.copies.join("kept")).unwrap().flatten();
    let is_kept = kept
        .into_iter()
        .any(|entry| fs::read(entry.path()).unwrap_or_default() == new);
    assert!(is_kept, "{said:?}");
}

#[test]
fn a_full_disk_of_the_server_ruins_no_file() {
    if !can_mount_remote() {
        return;
    }
    for setting in MODES {
        let mounted = Mounted::new(&setting);
        let small = mounted.behind("small");
        fs::create_dir(&small).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("none", &small, "tmpfs", flags, c"size=4m").unwrap();
        let (old, big) = (content(1, 1 << 20), content(2, 8 << 20));
        fs::write(small.join("f"), &old).unwrap();
        let refused = write_over(&mounted.path("small/f"), &big);
        let found = fs::read(small.join("f")).unwrap();
        // The mount tries again by itself, and has a temporary file meanwhile.
        let is_alone = (0..TRIES).any(|_| {
            let is_alone = fs::read_dir(&small).unwrap().count() == 1;
            if !is_alone {
                std::thread::sleep(PAUSE);
            }
            is_alone
        });
        let empty = write(&mounted.path("small/g"), b"", true);
        drop(mounted);
        rustix::mount::unmount(&small, rustix::mount::UnmountFlags::DETACH).unwrap();
        let refused = refused.expect_err("it cannot fit");
        assert_eq!(
            refused.raw_os_error(),
            Some(libc::ENOSPC),
            "{setting:?}: {refused}"
        );
        assert!(is_alone, "{setting:?}");
        match setting.mode {
            "whole" => assert!(
                found == old,
                "{setting:?}: {} bytes, {:?}",
                found.len(),
                found.iter().zip(&old).position(|(found, old)| found != old)
            ),
            // A long file is changed in place, from what makes it longer on.
            "blocks" => assert!(found.starts_with(&old), "{setting:?}"),
            _ => {}
        }
        empty.unwrap();
    }
}

/// Writes a new content over an old one without emptying it first.
fn write_over(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let _alone = without_new_processes();
    let mut file = File::options().write(true).open(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let closed = close(file);
    written.and(closed)
}
