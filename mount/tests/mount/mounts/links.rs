//! Symbolic links of a server, which the kernel follows on this machine.

use std::fs;
use std::os::unix::fs::symlink;

use crate::mounts::common::{Mounted, REMOTE_MODES, Setting, assert_errno, await_that, each};

fn with_links(mounted: &Mounted) {
    fs::create_dir_all(mounted.behind("d/e")).unwrap();
    fs::write(mounted.behind("f"), b"inside").unwrap();
    let outside = mounted.source.with_file_name("outside");
    fs::write(&outside, b"outside").unwrap();
    for (name, target) in [
        ("absolute", outside.to_str().unwrap()),
        ("up", "../outside"),
        ("d/e/up", "../../../outside"),
        ("d/here", "."),
        // Judging by its names alone, this link stays inside.
        ("d/twisted", "here/here/../../../outside"),
        ("d/e/good", "../../f"),
        ("good", "./d/e/good"),
    ] {
        symlink(target, mounted.behind(name)).unwrap();
    }
}

#[test]
fn links_of_a_server_that_lead_out_of_the_mount_cannot_be_followed() {
    each(&REMOTE_MODES, |mounted| {
        with_links(mounted);
        for name in ["absolute", "up", "d/e/up", "d/twisted"] {
            assert_errno(fs::read_link(mounted.path(name)), libc::EACCES);
            assert_errno(fs::read(mounted.path(name)), libc::EACCES);
            assert_errno(fs::write(mounted.path(name), b"changed"), libc::EACCES);
            assert!(
                fs::symlink_metadata(mounted.path(name))
                    .unwrap()
                    .is_symlink()
            );
        }
        mounted.assert_read("d/e/good", b"inside");
        mounted.assert_read("good", b"inside");
        let count = || {
            let said = mounted.said();
            let found = said.iter().filter(|line| line.contains("out of the mount"));
            found.count()
        };
        await_that("a message", || count() > 0);
        assert_eq!(count(), 1);
        let outside = mounted.source.with_file_name("outside");
        assert_eq!(fs::read(outside).unwrap(), b"outside");
    });
}

#[test]
fn links_of_a_local_source_are_as_they_are() {
    each(&[Setting::new("none", "pages")], |mounted| {
        with_links(mounted);
        for name in ["absolute", "up", "d/e/up"] {
            mounted.assert_read(name, b"outside");
        }
    });
}
