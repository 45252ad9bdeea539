//! Refusals of a source while a file is written back: a user who may write a file gets the
//! content there, and after a refusal the source has the old content or the new one.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::io::Errno;
use toll_sshd::{Settings, Subsystem};
use toll_testing::isolated;

use crate::mounts::common::{
    CACHED, Mounted, REMOTE_CACHED, REMOTE_SETTINGS, SETTINGS, Setting, await_that, close, content,
    each, watched, without_new_processes,
};
use crate::mounts::users::{GROUP, OTHER_USER, each_of_user, put_shared};

#[track_caller]
fn assert_shared(mounted: &Mounted, name: &str, expected: &[u8]) {
    mounted.assert_behind(name, expected);
    mounted.assert_read(name, expected);
    let found = fs::metadata(mounted.behind(name)).unwrap();
    let is = (found.uid(), found.gid(), found.mode() & 0o7777);
    assert_eq!(is, (OTHER_USER, GROUP, 0o664), "{name}");
    assert!(mounted.kept().is_empty(), "{:?}", mounted.said());
}

/// Overwrites a file as a shell's `>` does. Returns the result of the last close.
fn overwrite(path: &Path, content: &[u8]) -> rustix::io::Result<()> {
    let alone = without_new_processes();
    let mut file = File::create(path).unwrap();
    file.write_all(content).unwrap();
    let closed = close(file);
    drop(alone);
    closed
}

#[test]
fn a_file_of_somebody_else_that_the_group_may_write_gets_the_new_content() {
    isolated(|| {
        let all = [&SETTINGS[..4], &REMOTE_SETTINGS[..4]].concat();
        each_of_user(&all, |mounted| {
            let name = "project/f";
            for (old, new) in [
                (3000, 5000),
                (5000, 3000),
                (40_000, 70_000),
                (2_500_000, 900_000),
            ] {
                put_shared(&mounted.source, name, &content(1, old));
                let new = content(2, new);
                assert_eq!(overwrite(&mounted.path(name), &new), Ok(()));
                assert_shared(mounted, name, &new);
            }
            put_shared(&mounted.source, name, b"first ");
            let alone = without_new_processes();
            let mut options = File::options();
            let mut file = options.append(true).open(mounted.path(name)).unwrap();
            file.write_all(b"more").unwrap();
            assert_eq!(close(file), Ok(()));
            drop(alone);
            assert_shared(mounted, name, b"first more");
            let file = mounted.open(name);
            file.set_len(0).unwrap();
            file.set_len(8).unwrap();
            file.sync_all().unwrap();
            assert_shared(mounted, name, &[0; 8]);
            drop(file);
            // The new content has holes, and changes in the middle of the old content.
            put_shared(&mounted.source, name, &content(3, 3_000_000));
            let file = mounted.open(name);
            let mut expected = content(3, 3_000_000);
            for (at, piece) in [
                (10, content(4, 300_000)),
                (2_000_000, content(5, 1_500_000)),
            ] {
                file.write_all_at(&piece, at as u64).unwrap();
                expected.resize(expected.len().max(at + piece.len()), 0);
                expected[at..at + piece.len()].copy_from_slice(&piece);
            }
            file.sync_all().unwrap();
            assert_shared(mounted, name, &expected);
            drop(file);
            mounted.stop_clean();
        });
    });
}

/// Creates a file that is written in place, because it has a second name.
fn put_linked(mounted: &Mounted, content: &[u8]) {
    let _ = fs::remove_file(mounted.behind("g"));
    fs::write(mounted.behind("f"), content).unwrap();
    fs::hard_link(mounted.behind("f"), mounted.behind("g")).unwrap();
}

#[test]
fn a_write_in_place_that_is_refused_leaves_the_old_content() {
    each(&watched(CACHED), |mounted| {
        let refusals = [
            ("write", libc::ENOSPC),
            ("write", libc::EDQUOT),
            ("write", libc::EROFS),
            ("truncate", libc::EPERM),
            ("truncate", libc::EIO),
        ];
        for (call, errno) in refusals {
            let (old, new) = match call {
                "write" => (content(1, 60_000), content(2, 90_000)),
                _ => (content(1, 90_000), content(2, 60_000)),
            };
            put_linked(mounted, &old);
            mounted.control.fail(call, "f", errno);
            let refused = Err(Errno::from_raw_os_error(errno));
            assert_eq!(overwrite(&mounted.path("f"), &new), refused);
            mounted.assert_behind("g", &old);
            mounted.assert_read("f", &new);
            mounted.control.succeed(call);
            mounted.open("f").sync_all().unwrap();
            mounted.assert_behind("g", &new);
        }
    });
}

#[test]
fn a_write_in_place_that_is_refused_in_the_middle_says_so() {
    each(&watched(CACHED), |mounted| {
        put_linked(mounted, &content(1, 60_000));
        let file = mounted.open("f");
        // This ends the write-back, after the content.
        mounted.control.fail("set_handle", "f", libc::EDQUOT);
        file.write_all_at(b"new", 0).unwrap();
        assert!(file.sync_all().is_err());
        await_that("the message", || {
            mounted
                .said()
                .join("\n")
                .contains("may have only part of it")
        });
        mounted.control.succeed("set_handle");
        file.sync_all().unwrap();
        mounted.assert_behind("g", mounted.read("f"));
    });
}

fn each_without(requests: &str, settings: &[Setting], test: impl Fn(&mut Mounted)) {
    for setting in settings.iter().filter(|setting| setting.is_possible()) {
        let options = ["-P", requests].map(str::to_owned).to_vec();
        test(&mut Mounted::with(setting, |_| Settings {
            subsystem: Subsystem::Program(options.clone()),
            ..Settings::default()
        }));
    }
}

#[test]
fn a_server_that_sets_no_attributes_gets_the_content() {
    each_without("setstat,fsetstat,lsetstat", REMOTE_CACHED, |mounted| {
        for (old, new) in [
            (0, 10_000),
            (3000, 5000),
            (3000, 3000),
            (1_500_000, 2_000_000),
        ] {
            fs::write(mounted.behind("f"), content(1, old)).unwrap();
            let new = content(2, new);
            assert_eq!(overwrite(&mounted.path("f"), &new), Ok(()));
            mounted.assert_behind("f", &new);
            mounted.assert_read("f", &new);
        }
        // The server cannot shorten a file, which the mount knows before it overwrites one.
        let old = content(1, 5000);
        fs::write(mounted.behind("f"), &old).unwrap();
        assert!(overwrite(&mounted.path("f"), &content(2, 3000)).is_err());
        mounted.assert_behind("f", &old);
    });
}
