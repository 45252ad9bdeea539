//! `toll mount` as its users see it.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use toll_testing::{has, is_root, isolated, skip, wait_until};

use super::MOUNT;

/// A source, a mount point, and other directories of one test.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// `None` if nothing can be mounted here.
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

    /// Returns a `toll mount` command with these arguments.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(MOUNT);
        command.args(arguments);
        command.current_dir(self.directory.path());
        command.env("XDG_STATE_HOME", self.path("state"));
        command.stdin(Stdio::null());
        command
    }

    /// Mounts `source` on `at`.
    fn mount(&self, options: &[&str]) -> Output {
        let arguments = [&["source", "at"], options].concat();
        self.command(&arguments).output().unwrap()
    }

    fn is_mounted(&self) -> bool {
        let at = self.path("at").display().to_string();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        points.any(|point| point == at)
    }

    /// Unmounts as users do. A new process of another test has copies of this test's
    /// file descriptors until it executes its program, and the mount is busy as long.
    fn unmount(&self) {
        wait_until("it is unmounted", || {
            let unmounted = Command::new("umount").arg(self.path("at")).output();
            let unmounted = unmounted.unwrap();
            let said = String::from_utf8_lossy(&unmounted.stderr);
            assert!(
                unmounted.status.success() || said.contains("busy"),
                "{said}"
            );
            unmounted.status.success()
        });
    }

    /// Returns the names of files that the mount has left.
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

#[test]
fn a_mount_is_ready_in_the_background_refuses_another_and_ends_when_it_is_unmounted() {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = Place::new() else { return };
    let output = place.mount(&[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    assert!(place.is_mounted());
    fs::write(place.path("at/f"), b"content").unwrap();
    assert_eq!(fs::read(place.path("source/f")).unwrap(), b"content");
    // Only the user may read copies and messages.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = place.path("state/toll/mount");
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("messages")), 0o600);
    let again = place.mount(&[]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(2), "{said}");
    has(&said, &["is mounted there already; unmount it first"]);
    place.unmount();
    assert!(!place.is_mounted());
    wait_until("nothing is left", || place.left().is_empty());
}

#[test]
fn each_signal_ends_a_mount_with_everything_written_back() {
    let Some(place) = Place::new() else { return };
    for (signal, cache) in [
        (Signal::TERM, "whole"),
        (Signal::INT, "blocks"),
        (Signal::HUP, "none"),
    ] {
        let mut command = place.command(&["source", "at", "-f", "--cache", cache]);
        let mut child = command.spawn().unwrap();
        wait_until("it is mounted", || place.is_mounted());
        let file = fs::File::create(place.path("at/f")).unwrap();
        std::io::Write::write_all(&mut &file, cache.as_bytes()).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        wait_until("it is unmounted", || !place.is_mounted());
        assert_eq!(fs::read(place.path("source/f")).unwrap(), cache.as_bytes());
        assert_eq!(place.left(), Vec::<String>::new());
        drop(file);
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_is_mounted() {
    let Some(place) = Place::new() else { return };
    for (arguments, part) in [
        ("none at", "cannot use none"),
        ("source none", "cannot use none"),
        (". at", "the mount point is inside the source"),
        ("source at --kernel-cache passthrough", "--cache none"),
        ("source at --kernel-cache writeback", "--cache none"),
        ("source at --attribute-seconds -1", ""),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = place.command(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
    assert!(!place.is_mounted());
}

#[test]
fn copies_lie_in_a_private_directory_or_the_mount_is_refused() {
    isolated(|| {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let Some(place) = Place::new() else { return };
        let make = |name: &str, mode: u32| {
            fs::create_dir(place.path(name)).unwrap();
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        make("open", 0o755);
        make("own", 0o700);
        make("theirs", 0o700);
        chown(place.path("theirs"), Some(12_345), None).unwrap();
        symlink("own", place.path("link")).unwrap();
        for (copies, why) in [
            (
                "open",
                "others can enter it (mode 755); make it private with `chmod 700`",
            ),
            ("theirs", "it belongs to user 12345, not to 0"),
            ("link", "it is a link or not a directory"),
        ] {
            let output = place.mount(&["--copies", copies]);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            has(&said, &[why, "or name another directory with --copies"]);
            assert!(!place.is_mounted());
        }
        // A link in the place of one of the files is refused as well.
        symlink(place.path("open/elsewhere"), place.path("own/messages")).unwrap();
        assert!(!place.mount(&["--copies", "own"]).status.success());
        assert!(!place.is_mounted());
        assert!(!place.path("open/elsewhere").exists());
        fs::remove_file(place.path("own/messages")).unwrap();
        assert!(place.mount(&["--copies", "own"]).status.success());
        place.unmount();
    });
}

#[test]
fn copies_cannot_lie_in_the_mount_itself() {
    let Some(place) = Place::new() else { return };
    fs::create_dir(place.path("at/there")).unwrap();
    std::os::unix::fs::symlink(place.path("at"), place.path("link")).unwrap();
    for copies in [
        "at",
        "at/there",
        "at/new/below",
        "link/new",
        "source/../at/new",
    ] {
        let output = place.mount(&["--copies", copies]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        has(
            &said,
            &["the directory is inside the mount point", "--copies"],
        );
        assert!(!place.is_mounted());
    }
    let entries = fs::read_dir(place.path("at")).unwrap();
    assert_eq!(entries.count(), 1);
}

#[test]
fn a_mount_changes_no_umask_and_lets_nothing_become_another_user() {
    let Some(place) = Place::new() else { return };
    let mut child = place.command(&["source", "at", "-f"]).spawn().unwrap();
    wait_until("it is mounted", || place.is_mounted());
    let umask = |process: &str| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("Umask"));
        line.unwrap().to_owned()
    };
    assert_eq!(umask(&child.id().to_string()), umask("self"));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let at = format!(" {} ", place.path("at").display());
    let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
    has(line, &["nosuid", "nodev"]);
    place.unmount();
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_error_in_the_background_is_told_in_the_foreground() {
    let Some(place) = Place::new() else { return };
    // A file is where the directory for copies should be.
    fs::write(place.path("copies"), b"").unwrap();
    let output = place.mount(&["--copies", "copies"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot mount"), "{said}");
    assert!(!place.is_mounted());
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
        assert!(place.mount(&arguments).status.success());
        let found = rustix::fs::getxattr(place.path("at/f"), "user.kept", &mut [0; 16]);
        assert_eq!(found, expected, "{option:?}");
        // A file that is replaced at the source keeps its attributes.
        fs::write(place.path("at/f"), b"another").unwrap();
        let kept = rustix::fs::getxattr(&behind, "user.kept", &mut [0; 16]);
        assert_eq!(kept, Ok(5), "{option:?}");
        place.unmount();
    }
}

#[test]
fn a_mount_that_has_ended_leaves_alone_what_is_mounted_there_since() {
    let Some(place) = Place::new() else { return };
    for _ in 0..30 {
        let output = place.mount(&[]);
        assert!(output.status.success(), "{output:?}");
        place.unmount();
    }
    let output = place.mount(&[]);
    assert!(output.status.success(), "{output:?}");
    wait_until("the mounts before have ended", || place.left().len() <= 1);
    assert!(place.is_mounted());
}

#[test]
fn a_mount_whose_connection_is_aborted_goes() {
    let Some(place) = Place::new() else { return };
    assert!(place.mount(&[]).status.success());
    let open = fs::File::create(place.path("at/f")).unwrap();
    // The kernel first aborts the connection, and then finds the mount busy.
    let mut forced = Command::new("umount");
    let forced = forced.arg("-f").arg(place.path("at")).output().unwrap();
    assert!(!forced.status.success(), "{forced:?}");
    wait_until("it is unmounted", || !place.is_mounted());
    wait_until("nothing is left", || place.left().is_empty());
    drop(open);
}

#[test]
fn what_could_not_be_written_back_is_listed_and_sent_by_the_next_mount() {
    let Some(place) = Place::new() else { return };
    let listed = || {
        let ran = place.command(&["--kept"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(listed(), "");
    let options = CString::new("size=1m").unwrap();
    let source = place.path("source");
    mount(
        "none",
        &source,
        "tmpfs",
        MountFlags::empty(),
        Some(&*options),
    )
    .unwrap();
    let mounted = place.mount(&[]);
    assert!(mounted.status.success(), "{mounted:?}");
    fs::write(place.path("at/f\u{1b}[2J"), vec![1; 3 << 20]).unwrap();
    let shown = format!("{}/f\u{fffd}[2J: {} bytes", source.display(), 3 << 20);
    wait_until("it is kept", || listed().contains(&shown));
    assert!(listed().contains("No space left on device"), "{}", listed());
    let place_of = |line: &str| line.trim_start().strip_prefix("where: ").map(PathBuf::from);
    let content = listed().lines().find_map(place_of).unwrap();
    assert_eq!(fs::read(content).unwrap(), vec![1; 3 << 20]);
    // This mount cannot write the content back at its end, but the next mount can.
    place.unmount();
    wait_until("nobody has it", || listed().contains("the next mount"));
    let options = CString::new("size=10m").unwrap();
    mount_remount(&source, MountFlags::empty(), &*options).unwrap();
    let mounted = place.mount(&[]);
    let said = String::from_utf8_lossy(&mounted.stderr);
    assert!(said.contains("sending the kept content"), "{said}");
    wait_until("it is sent", || listed().is_empty());
    assert_eq!(
        fs::read(source.join("f\u{1b}[2J")).unwrap(),
        vec![1; 3 << 20]
    );
    place.unmount();
    unmount(&source, UnmountFlags::DETACH).unwrap();
}

#[test]
fn kept_copies_are_listed_however_many_they_are_and_whatever_their_records_say() {
    let Some(place) = Place::new() else { return };
    let kept = place.path("state/toll/mount/kept");
    fs::create_dir_all(&kept).unwrap();
    // There are more copies than a program may have open files. The time of the first
    // is in no calendar.
    for number in 0..100 {
        let record = serde_json::json!({
            "source": "/source", "path": {"Unix": [102]}, "size_bytes": 3,
            "kept_at_s": if number == 0 { u64::MAX } else { number }, "why": "full",
            "base": null, "dirty": [{"start": 9, "end": 1}], "present": [], "valid_bytes": 0,
            "mtime": null, "atime": null,
        });
        fs::write(kept.join(format!("{number}-f")), "new").unwrap();
        fs::write(kept.join(format!("{number}-f.json")), record.to_string()).unwrap();
    }
    fs::write(kept.join("damaged"), "new").unwrap();
    fs::write(kept.join("damaged.json"), "{").unwrap();
    let plain = place.command(&["--kept"]);
    let mut limited = Command::new("prlimit");
    limited.args(["--nofile=32", MOUNT]).args(plain.get_args());
    let ran = limited
        .env("XDG_STATE_HOME", place.path("state"))
        .output()
        .unwrap();
    let listed = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{listed}");
    assert_eq!(
        listed.matches("/source/f: 3 bytes").count(),
        100,
        "{listed}"
    );
}
