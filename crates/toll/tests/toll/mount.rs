//! `toll mount` as its users meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, TOLL, is_root, skip};

/// A source, a mountpoint, and directories of the test's own.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// None where nothing can be mounted.
    fn new() -> Option<Self> {
        if !is_root() || fs::File::open("/dev/fuse").is_err() {
            skip("only root can mount here, and with /dev/fuse");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        for name in ["source", "at"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Some(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOLL);
        command
            .args(["mount", "source", "at"])
            .args(arguments)
            .current_dir(self.directory.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn is_mounted(&self) -> bool {
        let at = self.path("at").display().to_string();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&at))
    }

    fn await_mounted(&self, wanted: bool) {
        let deadline = Instant::now() + PATIENCE;
        while self.is_mounted() != wanted {
            assert!(Instant::now() < deadline, "mounted is not {wanted}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Unmounts as users do. What a test has closed, another test's new process
    /// has open until it executes its program, and the mount is busy so long.
    fn unmount(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let unmounted = Command::new("umount").arg(self.path("at")).output();
            let unmounted = unmounted.unwrap();
            if unmounted.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&unmounted.stderr);
            let is_over = Instant::now() >= deadline;
            assert!(said.contains("busy") && !is_over, "{said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What a mount has left of its own.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("state/toll/mount")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "messages").collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let flags = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(self.path("at"), flags);
    }
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_mount_goes_to_the_background_when_it_is_ready_and_ends_when_it_is_unmounted() {
    let Some(place) = Place::new() else { return };
    let output = place.run(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert!(place.is_mounted());
    fs::write(place.path("at/f"), b"content").unwrap();
    assert_eq!(fs::read(place.path("source/f")).unwrap(), b"content");
    place.unmount();
    let deadline = Instant::now() + PATIENCE;
    while !place.left().is_empty() {
        assert!(Instant::now() < deadline, "{:?} is left", place.left());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_signal_ends_a_mount_with_everything_written_back() {
    use rustix::process::Signal;
    let Some(place) = Place::new() else { return };
    for (signal, cache) in [
        (Signal::TERM, "whole"),
        (Signal::INT, "blocks"),
        (Signal::HUP, "none"),
    ] {
        let mut child = place.command(&["-f", "--cache", cache]).spawn().unwrap();
        place.await_mounted(true);
        let file = fs::File::create(place.path("at/f")).unwrap();
        std::io::Write::write_all(&mut &file, cache.as_bytes()).unwrap();
        send(&child, signal);
        let status = child.wait().unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        place.await_mounted(false);
        assert_eq!(fs::read(place.path("source/f")).unwrap(), cache.as_bytes());
        assert_eq!(place.left(), Vec::<String>::new());
        drop(file);
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_is_mounted() {
    let Some(place) = Place::new() else { return };
    let told = |arguments: &[&str]| {
        let output = Command::new(TOLL)
            .arg("mount")
            .args(arguments)
            .current_dir(place.directory.path())
            .env("XDG_STATE_HOME", place.path("state"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = told(&["none", "at"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot use none"), "{said}");
    let (code, said) = told(&["source", "none"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = told(&[".", "at"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the mountpoint lies in the source"), "{said}");
    for kernel in ["passthrough", "writeback"] {
        let (code, said) = told(&["source", "at", "--kernel-cache", kernel]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--cache none"), "{said}");
    }
    let (code, said) = told(&["source", "at", "--attribute-seconds", "-1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(!place.is_mounted());
}

#[test]
fn an_error_in_the_background_is_told_in_the_foreground() {
    let Some(place) = Place::new() else { return };
    // A file where the directory for copies should be.
    fs::write(place.path("copies"), b"").unwrap();
    let output = place.run(&["--copies", "copies"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot mount"), "{said}");
    assert!(!place.is_mounted());
}

#[test]
fn copies_and_messages_are_nobody_elses_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = Place::new() else { return };
    assert!(place.run(&[]).status.success());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = place.path("state/toll/mount");
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("messages")), 0o600);
    place.unmount();
}

#[test]
fn extended_attributes_are_shown_unless_they_are_not_wanted() {
    let Some(place) = Place::new() else { return };
    let behind = place.path("source/f");
    fs::write(&behind, b"content").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&behind, "user.kept", b"value", flags).is_err() {
        return skip("the file system below has no extended attributes for users");
    }
    for (option, expected) in [
        (None, Ok(5)),
        (Some("--no-xattr"), Err(rustix::io::Errno::OPNOTSUPP)),
    ] {
        let arguments: Vec<&str> = option.into_iter().collect();
        assert!(place.run(&arguments).status.success());
        let found = rustix::fs::getxattr(place.path("at/f"), "user.kept", &mut [0; 16]);
        assert_eq!(found, expected, "{option:?}");
        // A file that is replaced at the source keeps them all the same.
        fs::write(place.path("at/f"), b"another").unwrap();
        let kept = rustix::fs::getxattr(&behind, "user.kept", &mut [0; 16]);
        assert_eq!(kept, Ok(5), "{option:?}");
        place.unmount();
    }
}
