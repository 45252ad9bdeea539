//! Root serves users who may rename files in the source. They may put another file at a
//! name while root works for them.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, RenameFlags, XattrFlags};
use toll_testing::isolated;

use crate::mounts::common::{CACHED, Mounted, SETTINGS, Setting, each, set_mode};

const USER: u32 = 54_321;

/// Runs work in a thread whose requests are a user's.
fn as_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let become_user = || {
        // SAFETY: it changes the calling thread's credentials alone.
        unsafe { libc::setfsgid(USER) };
        // SAFETY: the same.
        unsafe { libc::setfsuid(USER) };
        work()
    };
    std::thread::scope(|scope| scope.spawn(become_user).join().unwrap())
}

type Act = fn(&Path);

const KINDS: [(&str, Act); 4] = [
    ("directory", |path| _ = fs::create_dir(path)),
    ("link", |path| _ = symlink("target", path)),
    ("pipe", |path| {
        let mode = Mode::from_raw_mode(0o644);
        _ = rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0);
    }),
    ("file", |path| _ = File::create_new(path)),
];

/// Swaps a file with a file of root's whenever the former exists, and swaps back a little
/// later.
fn swap(mounted: &Mounted, is_over: &AtomicBool) {
    let (name, roots) = (mounted.behind("d/n"), mounted.behind("d/roots"));
    let swap = || rustix::fs::renameat_with(CWD, &name, CWD, &roots, RenameFlags::EXCHANGE);
    while !is_over.load(Ordering::Relaxed) {
        if swap().is_ok() {
            std::thread::sleep(Duration::from_micros(50));
            swap().unwrap();
            let _ = fs::remove_file(&name).or_else(|_| fs::remove_dir(&name));
        }
    }
}

#[test]
fn a_name_that_is_swapped_while_root_makes_a_file_for_a_user_gives_nothing_away() {
    isolated(|| {
        each(&[Setting::new("none", "pages")], |mounted| {
            fs::create_dir(mounted.behind("d")).unwrap();
            set_mode(&mounted.behind("d"), 0o777);
            let roots = File::create(mounted.behind("d/roots")).unwrap();
            for (kind, make) in KINDS {
                let is_over = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| swap(mounted, &is_over));
                    as_user(|| (0..2000).for_each(|_| make(&mounted.path("d/n"))));
                    is_over.store(true, Ordering::Relaxed);
                });
                assert_eq!(roots.metadata().unwrap().uid(), 0, "{kind}");
                let name = mounted.behind("d/n");
                let _ = fs::remove_file(&name).or_else(|_| fs::remove_dir(&name));
            }
        });
    });
}

#[test]
fn what_a_user_makes_is_the_users_with_the_permissions_that_were_asked_for() {
    isolated(|| {
        each(&SETTINGS, |mounted| {
            for (directory, mode, group) in [("d", 0o777, USER), ("shared", 0o2777, 1234)] {
                let behind = mounted.behind(directory);
                fs::create_dir(&behind).unwrap();
                chown(&behind, None, Some(1234)).unwrap();
                set_mode(&behind, mode);
                for (kind, make) in KINDS {
                    as_user(|| make(&mounted.path(directory).join(kind)));
                    let made = fs::symlink_metadata(behind.join(kind)).unwrap();
                    assert_eq!(
                        (made.uid(), made.gid()),
                        (USER, group),
                        "{kind} in {mode:o}"
                    );
                }
                as_user(|| {
                    let mode = Mode::from_raw_mode(0o4751);
                    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
                    rustix::fs::open(mounted.path(directory).join("program"), flags, mode).unwrap()
                });
                // The umask of this test has been applied, and no other.
                let umask = rustix::process::umask(Mode::from_raw_mode(0o022));
                rustix::process::umask(umask);
                let made = fs::metadata(behind.join("program")).unwrap();
                assert_eq!(made.mode() & 0o7777, 0o4751 & !umask.as_raw_mode());
            }
        });
    });
}

/// Returns settings under which the kernel notices no change at the source.
fn forgetful<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Vec<Setting> {
    let slow = |setting: &Setting| Setting {
        lifetime_ms: 600_000,
        ..setting.clone()
    };
    settings.into_iter().map(slow).collect()
}

/// Creates a file of the user's that the mount knows, and then puts another file at its
/// name.
fn swapped(mounted: &Mounted, name: &str, put: impl FnOnce(&Path)) {
    let behind = mounted.behind(name);
    fs::write(&behind, b"user's").unwrap();
    chown(&behind, Some(USER), Some(USER)).unwrap();
    assert_eq!(fs::metadata(mounted.path(name)).unwrap().uid(), USER);
    fs::remove_file(&behind).unwrap();
    put(&behind);
}

#[test]
fn a_user_cannot_change_a_file_of_roots_that_has_taken_the_name_of_an_own_one() {
    isolated(|| {
        each(&forgetful(&SETTINGS), |mounted| {
            let changes: [(&str, Act); 5] = [
                ("mode", |path| _ = rustix::fs::chmod(path, Mode::RWXO)),
                ("length", |path| {
                    _ = rustix::fs::open(
                        path,
                        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::TRUNC,
                        Mode::empty(),
                    )
                }),
                ("length by name", |path| {
                    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
                    // SAFETY: the path ends with a zero byte.
                    let _ = unsafe { libc::truncate(path.as_ptr(), 0) };
                }),
                ("times", |path| {
                    let zero = rustix::time::Timespec {
                        tv_sec: 1,
                        tv_nsec: 0,
                    };
                    let times = rustix::fs::Timestamps {
                        last_access: zero,
                        last_modification: zero,
                    };
                    let _ = rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty());
                }),
                ("extended attribute", |path| {
                    let _ = rustix::fs::setxattr(path, "user.mark", b"x", XattrFlags::empty());
                }),
            ];
            for (what, change) in changes {
                swapped(mounted, what, |behind| {
                    fs::write(behind, b"root's").unwrap();
                    set_mode(behind, 0o600);
                });
                let before = fs::metadata(mounted.behind(what)).unwrap();
                as_user(|| change(&mounted.path(what)));
                let after = fs::metadata(mounted.behind(what)).unwrap();
                assert_eq!(after.mode(), before.mode(), "{what}");
                assert_eq!(
                    after.modified().unwrap(),
                    before.modified().unwrap(),
                    "{what}"
                );
                mounted.assert_behind(what, b"root's");
                let mark = rustix::fs::getxattr(mounted.behind(what), "user.mark", &mut [0; 8]);
                assert!(mark.is_err(), "{what}");
            }
        });
    });
}

#[test]
fn a_pipe_that_has_taken_the_name_of_a_file_holds_nobody_up() {
    isolated(|| {
        each(&forgetful(CACHED), |mounted| {
            swapped(mounted, "f", |behind| {
                rustix::fs::mknodat(CWD, behind, FileType::Fifo, Mode::RWXO, 0).unwrap();
            });
            // The open does not wait for a reader or writer of the pipe at the source. The
            // kernel looks up the name again, and finds a pipe, which it serves itself.
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
            let opened = rustix::fs::open(mounted.path("f"), flags, Mode::empty());
            assert!(opened.is_ok(), "{opened:?}");
            drop(opened);
            mounted.stop_clean();
        });
    });
}
