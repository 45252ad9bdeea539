//! A source returns the error numbers that the server's files would return without it.

use std::ffi::OsStr;
use std::path::Path;

use toll_mount::local::Local;
use toll_mount::source::{Creation, New, OpenFlags, Owner, Result, SetAttributes, Source};
use toll_testing::isolated;

use crate::sftp::common::{
    Bench, READ_WRITE, Small, assert_errno, attributes, both_servers, content, cut, internal,
    is_root, link, list, make, open, remove, remove_directory, rename, rename_new, set, set_mode,
    skip,
};

/// An operation with its name.
type Case = (&'static str, fn(&dyn Source) -> Result<()>);

const EXCLUSIVE: OpenFlags = OpenFlags {
    exclusive: true,
    ..READ_WRITE
};

const DIRECTORY: New<'_> = New::Directory;

fn symlink() -> New<'static> {
    New::Symlink(OsStr::new("t"))
}

fn opened(source: &dyn Source, path: &str, flags: OpenFlags) -> Result<()> {
    open(source, path, flags).map(drop)
}

fn read_link(source: &dyn Source, path: &str) -> Result<()> {
    source.read_link(Path::new(path)).map(drop)
}

/// Operations that fail in a directory with a file `f`, a directory `d` with a file `d/f`,
/// an empty directory `e`, and a symbolic link `s` to `f`.
const CASES: &[Case] = &[
    ("lstat of nothing", |s| attributes(s, "x").map(drop)),
    ("list of nothing", |s| list(s, "x").map(drop)),
    ("list of a file", |s| list(s, "f").map(drop)),
    ("readlink of a file", |s| read_link(s, "f")),
    ("readlink of nothing", |s| read_link(s, "x")),
    ("open of nothing", |s| opened(s, "x", OpenFlags::READ)),
    ("write to a directory", |s| opened(s, "d", OpenFlags::WRITE)),
    ("open of a link", |s| opened(s, "s", OpenFlags::READ)),
    ("open in a file", |s| opened(s, "f/x", READ_WRITE)),
    ("new file over a file", |s| opened(s, "f", EXCLUSIVE)),
    ("new file over a link", |s| opened(s, "s", EXCLUSIVE)),
    ("new file over a directory", |s| opened(s, "d", EXCLUSIVE)),
    ("open to make a directory", |s| opened(s, "d", READ_WRITE)),
    ("mkdir of a directory", |s| make(s, "d", DIRECTORY, 0o755)),
    ("mkdir of a file", |s| make(s, "f", DIRECTORY, 0o755)),
    ("mkdir in nothing", |s| make(s, "x/y", DIRECTORY, 0o755)),
    ("mkdir in a file", |s| make(s, "f/y", DIRECTORY, 0o755)),
    ("rmdir of a full directory", |s| remove_directory(s, "d")),
    ("rmdir of a file", |s| remove_directory(s, "f")),
    ("rmdir of a link", |s| remove_directory(s, "s")),
    ("rmdir of nothing", |s| remove_directory(s, "x")),
    ("unlink of a directory", |s| remove(s, "d")),
    ("unlink of nothing", |s| remove(s, "x")),
    ("symlink over a file", |s| make(s, "f", symlink(), 0o644)),
    ("symlink in nothing", |s| make(s, "x/s", symlink(), 0o644)),
    ("link over a file", |s| link(s, "f", "d/f")),
    ("link of a directory", |s| link(s, "d", "l")),
    ("link of nothing", |s| link(s, "x", "l")),
    ("rename of nothing", |s| rename(s, "x", "y")),
    ("rename to nothing", |s| rename(s, "f", "x/y")),
    ("rename of a file over a directory", |s| rename(s, "f", "e")),
    ("rename of a directory over a file", |s| rename(s, "e", "f")),
    ("rename over a full directory", |s| rename(s, "e", "d")),
    ("rename into itself", |s| rename(s, "d", "d/x")),
    ("rename in a file", |s| rename(s, "f", "f/x")),
    ("rename that must be new", |s| rename_new(s, "f", "d/f")),
    ("truncate of a directory", |s| set(s, "d", cut())),
    ("truncate of nothing", |s| set(s, "x", cut())),
    ("a long name", |s| {
        make(s, &"n".repeat(256), DIRECTORY, 0o755)
    }),
    ("a long path", |s| {
        attributes(s, &"n/".repeat(2200)).map(drop)
    }),
];

fn fill(directory: &Path) {
    std::fs::create_dir_all(directory.join("d")).unwrap();
    std::fs::create_dir_all(directory.join("e")).unwrap();
    std::fs::write(directory.join("f"), "f").unwrap();
    std::fs::write(directory.join("d/f"), "f").unwrap();
    std::os::unix::fs::symlink("f", directory.join("s")).unwrap();
}

#[test]
fn errors_are_those_of_the_directory_itself_on_either_server() {
    for bench in both_servers() {
        fill(bench.directory.path());
        let remote = bench.connect();
        let local = Local::new(bench.directory.path()).unwrap();
        let mut wrong = Vec::new();
        for (name, case) in CASES {
            let (expected, found) = (case(&local), case(&remote));
            assert!(expected.is_err(), "{name}: no error locally");
            if found != expected {
                wrong.push(format!("{name}: {found:?}, locally {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// A small file system at a served directory; None where nothing can be mounted.
fn small(directory: &Path, options: &str) -> Option<Small> {
    let small = Small::new(directory, options);
    small
        .inspect_err(|error| skip(&format!("cannot mount a tmpfs: {error}")))
        .ok()
}

fn with_small(options: &str, test: impl FnOnce(&Bench, &dyn Source)) {
    if let Some(bench) = Bench::start()
        && let Some(_mounted) = small(bench.directory.path(), options)
    {
        test(&bench, &bench.connect());
    }
}

#[test]
fn a_full_disk_of_the_server_is_told_and_ruins_nothing() {
    with_small("size=4m", |_, source| {
        let content = content(1, 1 << 20);
        let write = |name, bytes: &[u8]| open(source, name, READ_WRITE)?.write_at(bytes, 0);
        write("f", &content).unwrap();
        let file = open(source, "g", READ_WRITE).unwrap();
        assert_errno(file.write_at(&vec![1; 8 << 20], 0), libc::ENOSPC);
        remove(source, "g").unwrap();
        drop(file);
        write("g", &content).unwrap();
    });
}

#[test]
fn a_disk_without_inodes_is_full() {
    with_small("nr_inodes=5", |_, source| {
        let mut numbers = 0..10;
        let made = numbers.try_for_each(|number| opened(source, &number.to_string(), READ_WRITE));
        assert_errno(made, libc::ENOSPC);
        assert_errno(make(source, "d", DIRECTORY, 0o755), libc::ENOSPC);
    });
}

#[test]
fn a_disk_that_is_read_only_is_told() {
    with_small("size=1m", |bench, source| {
        fill(bench.directory.path());
        let flags = rustix::mount::MountFlags::RDONLY;
        rustix::mount::mount_remount(bench.directory.path(), flags, c"").unwrap();
        for refused in [
            opened(source, "f", OpenFlags::WRITE),
            opened(source, "x", READ_WRITE),
            remove(source, "f"),
            remove_directory(source, "d"),
            rename(source, "f", "x"),
            set(source, "f", cut()),
        ] {
            assert_errno(refused, libc::EROFS);
        }
        assert_errno(make(source, "d", DIRECTORY, 0o755), libc::EEXIST);
        opened(source, "f", OpenFlags::READ).unwrap();
    });
}

#[test]
fn another_file_system_is_told() {
    let Some(bench) = Bench::start() else { return };
    fill(bench.directory.path());
    let Some(_mounted) = small(&bench.path("e"), "") else {
        return;
    };
    let source = bench.connect();
    assert_errno(rename(&source, "f", "e/f"), libc::EXDEV);
    assert_errno(link(&source, "f", "e/f"), libc::EXDEV);
    assert_errno(remove_directory(&source, "e"), libc::ENOTEMPTY);
}

#[test]
fn a_server_without_rights_refuses_and_says_so() {
    isolated(|| {
        if !is_root() {
            return skip("only root can serve another user");
        }
        let settings = toll_sshd::Settings {
            user: Some("nobody".to_owned()),
            ..Default::default()
        };
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        fill(bench.directory.path());
        set_mode(&bench.path("d/f"), 0o600);
        std::fs::create_dir(bench.path("own")).unwrap();
        std::os::unix::fs::chown(bench.path("own"), Some(65534), None).unwrap();
        std::fs::create_dir(bench.path("t")).unwrap();
        set_mode(&bench.path("t"), 0o1777);
        std::fs::write(bench.path("t/f"), "f").unwrap();
        let source = &bench.connect();
        let mode = SetAttributes {
            mode: Some(0o777),
            ..SetAttributes::default()
        };
        for (refused, errno) in [
            (opened(source, "d/f", OpenFlags::READ), libc::EACCES),
            (opened(source, "x", READ_WRITE), libc::EACCES),
            (remove(source, "f"), libc::EACCES),
            (remove(source, "t/f"), libc::EPERM),
            (rename(source, "t/f", "t/g"), libc::EPERM),
            (make(source, "x", DIRECTORY, 0o755), libc::EACCES),
            (set(source, "d/f", cut()), libc::EACCES),
            (set(source, "f", mode), libc::EPERM),
        ] {
            assert_errno(refused, errno);
        }
        // New files belong to the server's user, no matter who made them.
        let owner = Some(Owner { uid: 0, gid: 0 });
        let flags = OpenFlags {
            create: Some(Creation { mode: 0o640, owner }),
            ..READ_WRITE
        };
        for name in ["own/a", "own/b"] {
            opened(source, name, flags).unwrap();
            let made = attributes(source, name).unwrap();
            assert_eq!((made.uid, made.mode), (65534, 0o640));
        }
    });
}

#[test]
fn a_server_that_only_reads_refuses() {
    let Some(bench) = Bench::with(&internal(&["-R"])) else {
        return;
    };
    fill(bench.directory.path());
    let source = &bench.connect();
    assert_errno(opened(source, "x", READ_WRITE), libc::EACCES);
    assert_errno(remove(source, "f"), libc::EACCES);
    opened(source, "f", OpenFlags::READ).unwrap();
}
