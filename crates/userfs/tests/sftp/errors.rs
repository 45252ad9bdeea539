//! The error numbers of a source are those that the server's files would
//! give without it.

use std::ffi::OsStr;
use std::path::Path;

use userfs::local::Local;
use userfs::source::{Creation, Error, New, OpenFlags, RenameFlags, Result, SetAttributes, Source};

use crate::common::{
    Bench, CREATION, READ_WRITE, both_servers, is_root, list, open, pattern, set_mode, skip,
};

/// What is done, by name.
type Case = (&'static str, fn(&dyn Source) -> Result<()>);

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn rename(source: &dyn Source, from: &str, to: &str) -> Result<()> {
    source.rename(path(from), path(to), RenameFlags::empty())
}

fn cut(source: &dyn Source, name: &str) -> Result<()> {
    let changes = SetAttributes {
        size_bytes: Some(0),
        ..SetAttributes::default()
    };
    source.set_attributes(path(name), &changes)
}

const EXCLUSIVE: OpenFlags = OpenFlags {
    exclusive: true,
    ..READ_WRITE
};

/// In a directory with a file `f`, a directory `d` with a file `d/f`, an
/// empty directory `e`, and a symbolic link `s` to `f`.
const CASES: &[Case] = &[
    ("lstat of nothing", |s| s.attributes(path("x")).map(drop)),
    ("list of nothing", |s| list(s, "x").map(drop)),
    ("list of a file", |s| list(s, "f").map(drop)),
    ("readlink of a file", |s| s.read_link(path("f")).map(drop)),
    ("readlink of nothing", |s| s.read_link(path("x")).map(drop)),
    ("open of nothing", |s| {
        open(s, "x", OpenFlags::READ).map(drop)
    }),
    ("open of a directory to write", |s| {
        open(s, "d", OpenFlags::WRITE).map(drop)
    }),
    ("open of a link", |s| {
        open(s, "s", OpenFlags::READ).map(drop)
    }),
    ("open in a file", |s| open(s, "f/x", READ_WRITE).map(drop)),
    ("exclusive open of a file", |s| {
        open(s, "f", EXCLUSIVE).map(drop)
    }),
    ("exclusive open of a link", |s| {
        open(s, "s", EXCLUSIVE).map(drop)
    }),
    ("exclusive open of a directory", |s| {
        open(s, "d", EXCLUSIVE).map(drop)
    }),
    ("open to make a directory", |s| {
        open(s, "d", READ_WRITE).map(drop)
    }),
    ("mkdir of a directory", |s| {
        s.make(path("d"), New::Directory, &CREATION)
    }),
    ("mkdir of a file", |s| {
        s.make(path("f"), New::Directory, &CREATION)
    }),
    ("mkdir in nothing", |s| {
        s.make(path("x/y"), New::Directory, &CREATION)
    }),
    ("mkdir in a file", |s| {
        s.make(path("f/y"), New::Directory, &CREATION)
    }),
    ("rmdir of a full directory", |s| {
        s.remove(path("d"), true).map(drop)
    }),
    ("rmdir of a file", |s| s.remove(path("f"), true).map(drop)),
    ("rmdir of a link", |s| s.remove(path("s"), true).map(drop)),
    ("rmdir of nothing", |s| s.remove(path("x"), true).map(drop)),
    ("unlink of a directory", |s| {
        s.remove(path("d"), false).map(drop)
    }),
    ("unlink of nothing", |s| {
        s.remove(path("x"), false).map(drop)
    }),
    ("symlink over a file", |s| {
        s.make(path("f"), New::Symlink(OsStr::new("t")), &CREATION)
    }),
    ("symlink in nothing", |s| {
        s.make(path("x/s"), New::Symlink(OsStr::new("t")), &CREATION)
    }),
    ("link over a file", |s| s.hard_link(path("f"), path("d/f"))),
    ("link of a directory", |s| s.hard_link(path("d"), path("l"))),
    ("link of nothing", |s| s.hard_link(path("x"), path("l"))),
    ("rename of nothing", |s| rename(s, "x", "y")),
    ("rename to nothing", |s| rename(s, "f", "x/y")),
    ("rename of a file over a directory", |s| rename(s, "f", "e")),
    ("rename of a directory over a file", |s| rename(s, "e", "f")),
    ("rename over a full directory", |s| rename(s, "e", "d")),
    ("rename into itself", |s| rename(s, "d", "d/x")),
    ("rename in a file", |s| rename(s, "f", "f/x")),
    ("rename over a file that must not be there", |s| {
        s.rename(path("f"), path("d/f"), RenameFlags::NOREPLACE)
    }),
    ("truncate of a directory", |s| cut(s, "d")),
    ("truncate of nothing", |s| cut(s, "x")),
    ("a name that is too long", |s| {
        s.make(path(&"n".repeat(256)), New::Directory, &CREATION)
    }),
    ("a path that is too long", |s| {
        s.attributes(path(&"n/".repeat(2200))).map(drop)
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
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        fill(bench.directory.path());
        let remote = bench.connect();
        let local = Local::new(bench.directory.path()).unwrap();
        let mut wrong = Vec::new();
        for (name, case) in CASES {
            let (expected, found) = (case(&local), case(&remote));
            assert!(expected.is_err(), "{name}: it is no error locally");
            if found != expected {
                wrong.push(format!("{name}: {found:?}, locally {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Runs a test in a mount namespace of its own with a small file system at
/// the served directory, if this is root.
fn with_mount(bench: &Bench, options: &str, test: impl FnOnce()) {
    let directory = bench.directory.path();
    let data = std::ffi::CString::new(options).unwrap();
    let mounted = rustix::mount::mount(
        "none",
        directory,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        data.as_c_str(),
    );
    if let Err(error) = mounted {
        skip(&format!("no tmpfs can be mounted: {error}"));
        return;
    }
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let flags = rustix::mount::UnmountFlags::DETACH;
            rustix::mount::unmount(self.0, flags).unwrap();
        }
    }
    let mounted = Mounted(directory);
    test();
    drop(mounted);
}

#[test]
fn a_full_disk_of_the_server_is_told_and_ruins_nothing() {
    let Some(bench) = Bench::start() else { return };
    with_mount(&bench, "size=4m", || {
        let source = bench.connect();
        let content = pattern(1 << 20, 1);
        open(&source, "f", READ_WRITE)
            .unwrap()
            .write_at(&content, 0)
            .unwrap();
        let file = open(&source, "g", READ_WRITE).unwrap();
        assert_eq!(
            file.write_at(&vec![1; 8 << 20], 0),
            Err(Error::Errno(libc::ENOSPC))
        );
        source.remove(path("g"), false).unwrap();
        drop(file);
        let file = open(&source, "g", READ_WRITE).unwrap();
        file.write_at(&content, 0).unwrap();
    });
}

#[test]
fn a_disk_without_inodes_is_full() {
    let Some(bench) = Bench::start() else { return };
    with_mount(&bench, "nr_inodes=5", || {
        let source = bench.connect();
        let mut last = Ok(());
        for number in 0..10 {
            last = last.and_then(|()| open(&source, &number.to_string(), READ_WRITE).map(drop));
        }
        assert_eq!(last, Err(Error::Errno(libc::ENOSPC)));
        let made = source.make(path("d"), New::Directory, &CREATION);
        assert_eq!(made, Err(Error::Errno(libc::ENOSPC)));
    });
}

#[test]
fn a_disk_that_is_read_only_is_told() {
    let Some(bench) = Bench::start() else { return };
    with_mount(&bench, "size=1m", || {
        fill(bench.directory.path());
        let source = bench.connect();
        let flags = rustix::mount::MountFlags::RDONLY;
        rustix::mount::mount_remount(bench.directory.path(), flags, c"").unwrap();
        let error = Err(Error::Errno(libc::EROFS));
        assert_eq!(open(&source, "f", OpenFlags::WRITE).map(drop), error);
        assert_eq!(open(&source, "x", READ_WRITE).map(drop), error);
        assert_eq!(source.remove(path("f"), false).map(drop), error);
        assert_eq!(source.remove(path("d"), true).map(drop), error);
        assert_eq!(rename(&source, "f", "x"), error);
        assert_eq!(cut(&source, "f"), error);
        let made = source.make(path("d"), New::Directory, &CREATION);
        assert_eq!(made, Err(Error::Errno(libc::EEXIST)));
        open(&source, "f", OpenFlags::READ).unwrap();
    });
}

#[test]
fn another_file_system_is_told() {
    let Some(bench) = Bench::start() else { return };
    fill(bench.directory.path());
    let inner = bench.path("e");
    let mounted = rustix::mount::mount(
        "none",
        &inner,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        None,
    );
    if let Err(error) = mounted {
        skip(&format!("no tmpfs can be mounted: {error}"));
        return;
    }
    let source = bench.connect();
    let renamed = rename(&source, "f", "e/f");
    let linked = source.hard_link(path("f"), path("e/f"));
    let removed = source.remove(path("e"), true);
    rustix::mount::unmount(&inner, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(renamed, Err(Error::Errno(libc::EXDEV)));
    assert_eq!(linked, Err(Error::Errno(libc::EXDEV)));
    assert_eq!(removed.map(drop), Err(Error::Errno(libc::ENOTEMPTY)));
}

#[test]
fn a_server_without_rights_refuses_and_says_so() {
    if !is_root() {
        skip("only root can serve another user");
        return;
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
    let source = bench.connect();
    let (denied, forbidden) = (
        Err(Error::Errno(libc::EACCES)),
        Err(Error::Errno(libc::EPERM)),
    );
    assert_eq!(open(&source, "d/f", OpenFlags::READ).map(drop), denied);
    assert_eq!(open(&source, "x", READ_WRITE).map(drop), denied);
    assert_eq!(source.remove(path("f"), false).map(drop), denied);
    assert_eq!(source.remove(path("t/f"), false).map(drop), forbidden);
    assert_eq!(rename(&source, "t/f", "t/g"), forbidden);
    assert_eq!(source.make(path("x"), New::Directory, &CREATION), denied);
    assert_eq!(cut(&source, "d/f"), denied);
    let mode = SetAttributes {
        mode: Some(0o777),
        ..SetAttributes::default()
    };
    assert_eq!(source.set_attributes(path("f"), &mode), forbidden);
    // What it makes is its own, whoever asks for it.
    let owner = Some(userfs::source::Owner { uid: 0, gid: 0 });
    let flags = OpenFlags {
        create: Some(Creation { mode: 0o640, owner }),
        ..READ_WRITE
    };
    for name in ["own/a", "own/b"] {
        open(&source, name, flags).unwrap();
        let made = source.attributes(path(name)).unwrap();
        assert_eq!((made.uid, made.mode), (65534, 0o640));
    }
}

#[test]
fn a_server_that_only_reads_refuses() {
    let settings = toll_sshd::Settings {
        subsystem: toll_sshd::Subsystem::Internal(vec!["-R".to_owned()]),
        ..Default::default()
    };
    let Some(bench) = Bench::with(&settings) else {
        return;
    };
    fill(bench.directory.path());
    let source = bench.connect();
    assert_eq!(
        open(&source, "x", READ_WRITE).map(drop),
        Err(Error::Errno(libc::EACCES))
    );
    assert_eq!(
        source.remove(path("f"), false).map(drop),
        Err(Error::Errno(libc::EACCES))
    );
    assert!(open(&source, "f", OpenFlags::READ).is_ok());
}
