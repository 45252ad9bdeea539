//! File descriptors, threads and disk space run out: one call fails, and everything
//! else continues.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::statvfs;
use rustix::process::{Pid, Resource, prlimit};

use crate::mounts::common::{
    CACHED, Mounted, REMOTE_CACHED, SETTINGS, Setting, Small, assert_errno, await_that, content,
    each,
};

fn with_limit<'a>(
    settings: impl IntoIterator<Item = &'a Setting>,
    limit: &'static str,
) -> Vec<Setting> {
    let limited = |setting: &Setting| Setting {
        limit: Some(limit),
        ..setting.clone()
    };
    settings.into_iter().map(limited).collect()
}

#[test]
fn an_open_that_would_take_the_last_descriptors_fails_and_nothing_else_does() {
    // With passthrough, a file does not need a file descriptor here for long.
    each(&with_limit(&SETTINGS[..5], "--nofile=100:600"), |mounted| {
        fs::create_dir(mounted.behind("d")).unwrap();
        for number in 0..600 {
            fs::write(mounted.behind(&format!("d/{number}")), b"content").unwrap();
        }
        let mut first = mounted.open("d/0");
        let mut open = Vec::new();
        let refused = loop {
            match File::open(mounted.path(&format!("d/{}", open.len() + 1))) {
                Ok(file) => open.push(file),
                Err(error) => break error,
            }
        };
        assert_errno(Err::<(), _>(refused), libc::ENFILE);
        // More than the soft limit would allow.
        let each = if mounted.setting.mode == "none" { 1 } else { 2 };
        assert!(open.len() * each > 250, "{} files", open.len());
        assert_errno(File::create(mounted.path("new")), libc::ENFILE);
        assert!(!mounted.behind("new").exists());
        let mut listed = Vec::new();
        for _ in 0..100 {
            let mut names = fs::read_dir(mounted.path("d")).unwrap();
            assert!(names.next().is_some());
            listed.push(names);
        }
        assert_eq!(fs::metadata(mounted.path("d/299")).unwrap().len(), 7);
        assert_eq!(std::io::read_to_string(&open[9]).unwrap(), "content");
        first.write_all(b"changed").unwrap();
        first.sync_all().unwrap();
        drop(first);
        mounted.assert_behind("d/0", b"changed");
        drop(open);
        await_that("room for another file", || {
            File::open(mounted.path("d/299")).is_ok()
        });
    });
}

#[test]
fn programs_that_a_mount_starts_get_the_limit_that_it_was_started_with() {
    let remote = with_limit(&[Setting::remote("whole", "pages")], "--nofile=300:3000");
    each(&remote, |mounted| {
        let server = mounted.server.as_ref().unwrap();
        server.kill_sessions();
        // The first call may still find the old connection.
        await_that("a new connection", || fs::read_dir(&mounted.at).is_ok());
        let pid = mounted.process_id();
        let children = format!("/proc/{pid}/task/");
        let threads = fs::read_dir(children).unwrap().flatten();
        let children = threads
            .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default())
            .collect::<String>();
        let ssh = children.split_whitespace().next().expect("ssh runs");
        let of = |file: &str, process: &str| {
            let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
            let line = text
                .lines()
                .find(|line| line.starts_with("Max open files") || line.starts_with("Umask"));
            line.unwrap().to_owned()
        };
        let words = of("limits", ssh);
        assert_eq!(words.split_whitespace().nth(3), Some("300"), "{words}");
        let words = of("limits", &pid.to_string());
        assert_eq!(words.split_whitespace().nth(3), Some("3000"), "{words}");
        assert_eq!(of("status", ssh), of("status", "self"));
        assert_eq!(of("status", &pid.to_string()), of("status", "self"));
    });
}

/// Prevents the serving process from creating threads, permanently. Root is exempt from
/// limits on processes, but not from a limit on address space.
fn allow_no_further_thread(mounted: &Mounted) {
    let pid = mounted.process_id();
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    // This leaves less room than the stack of a thread.
    let bytes = pages * 4096 + (1 << 20);
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    let limit = rustix::process::Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    prlimit(pid, Resource::As, limit).unwrap();
}

#[test]
fn where_no_thread_can_be_had_requests_are_answered_all_the_same() {
    each(CACHED, |mounted| {
        let large = content(3, 3 << 20);
        fs::write(mounted.behind("large"), &large).unwrap();
        // This read makes sure that all buffers exist.
        mounted.assert_read("large", &large);
        fs::write(mounted.path("other"), &large[..100_000]).unwrap();
        allow_no_further_thread(mounted);
        std::thread::scope(|scope| {
            for number in 0..24 {
                let (mounted, large) = (&*mounted, &large);
                scope.spawn(move || {
                    for round in 0..20 {
                        let name = format!("{number}-{round}");
                        fs::write(mounted.path(&name), &large[..9000]).unwrap();
                        mounted.assert_read(&name, &large[..9000]);
                    }
                });
            }
        });
        mounted.stop_clean();
    });
}

#[test]
fn a_length_that_does_not_fit_is_refused_before_the_disk_of_copies_is_full() {
    for setting in REMOTE_CACHED.iter().filter(|setting| setting.is_possible()) {
        refuse_lengths(setting);
    }
}

/// In mode `whole`, lengths are refused at open, before anything is fetched; in mode
/// `blocks`, at the read.
fn refuse_lengths(setting: &Setting) {
    let is_whole = setting.mode == "whole";
    let mut mounted = Mounted::new(setting);
    mounted.stop_clean();
    fs::remove_dir(&mounted.copies).unwrap();
    let small = Small::new(&mounted.copies, "size=80m,mode=700").unwrap();
    mounted.mount();
    for size_bytes in [90 << 20, 1 << 40, i64::MAX.cast_unsigned()] {
        let file = File::create(mounted.behind("f")).unwrap();
        if file.set_len(size_bytes).is_err() {
            // The file system of the source cannot have such files.
            continue;
        }
        let (least, is_over) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let free = statvfs(&mounted.copies).unwrap().f_bavail;
                    least.fetch_min(free, Ordering::Relaxed);
                }
            });
            let read = File::open(mounted.path("f")).and_then(|mut file| {
                assert!(!is_whole, "the open succeeded");
                std::io::copy(&mut file, &mut std::io::sink())
            });
            is_over.store(true, Ordering::Relaxed);
            assert_errno(read, libc::ENOSPC);
        });
        let all = statvfs(&mounted.copies).unwrap().f_blocks;
        let least = least.into_inner();
        let needed = if is_whole { all * 3 / 4 } else { all / 20 };
        assert!(least >= needed, "{least} of {all} blocks");
    }
    fs::write(mounted.path("g"), vec![1; 3 << 20]).unwrap();
    mounted.assert_behind("g", vec![1; 3 << 20]);
    mounted.stop_clean();
    drop(small);
}

#[test]
fn a_write_to_what_has_become_too_long_to_copy_fails_and_replaces_nothing() {
    for setting in CACHED.iter().filter(|setting| setting.is_possible()) {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        let small = Small::new(&source, "size=1m").unwrap();
        let size_bytes = 1 << 60;
        let copy = File::create(place.path().join("copy")).unwrap();
        if copy.set_len(size_bytes).is_ok() {
            eprintln!("skipped: a copy may have any length here");
            return;
        }
        let mut mounted = Mounted::existing(&source, place.path(), setting);
        fs::write(mounted.behind("f"), b"content").unwrap();
        let file = mounted.open("f");
        let behind = File::options().write(true).open(mounted.behind("f"));
        let behind = behind.unwrap();
        behind.set_len(size_bytes).unwrap();
        for _ in 0..2 {
            assert_errno(file.write_all_at(b"new", 0), libc::EFBIG);
        }
        // A write also fails while the mount cannot find out what the source has now.
        let aside = mounted.behind("aside");
        fs::rename(mounted.behind("f"), &aside).unwrap();
        assert_errno(file.write_all_at(b"new", 0), libc::EIO);
        fs::rename(&aside, mounted.behind("f")).unwrap();
        file.sync_all().unwrap();
        assert_eq!(behind.metadata().unwrap().len(), size_bytes);
        behind.set_len(4).unwrap();
        file.write_all_at(b"new", 0).unwrap();
        drop(file);
        mounted.assert_behind("f", b"newt");
        mounted.stop_clean();
        drop((mounted, small));
    }
}
