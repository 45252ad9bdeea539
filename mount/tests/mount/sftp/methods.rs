//! Tests every method of a source, and its effect on the files at the server.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;

use toll_mount::source::{
    Creation, Finish, Kind, New, OpenFlags, Owner, RenameFlags, SetAttributes, SetTime, Source,
};

use crate::sftp::common::{
    Bench, READ_WRITE, assert_errno, at, attributes, both_servers, content, cut, internal, is_root,
    link, list, make, open, remove, rename, rename_new, set, set_mode, skip,
};

const BEGIN: OpenFlags = OpenFlags {
    begin: true,
    ..OpenFlags::READ
};

fn new(mode: u32) -> OpenFlags {
    let owner = None;
    OpenFlags {
        create: Some(Creation { mode, owner }),
        ..READ_WRITE
    }
}

fn mode_of(bench: &Bench, name: &str) -> u32 {
    bench.stat(name).mode() & 0o7777
}

#[test]
fn parts_of_a_file_are_read_and_written_at_any_offset() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let file = open(&source, "sparse", READ_WRITE).unwrap();
    let far = (5 << 30) + 3;
    let content = content(2, 300_000);
    file.write_at(&content, far).unwrap();
    assert_eq!(file.attributes().unwrap().size_bytes, far + 300_000);
    let mut buffer = vec![1; 300_100];
    assert_eq!(file.read_at(&mut buffer, far - 50), Ok(300_050));
    assert_eq!(buffer[..50], [0; 50]);
    assert!(buffer[50..300_050] == content);
    file.truncate(far + 10).unwrap();
    assert_eq!(file.read_at(&mut buffer, far), Ok(10));
    assert_errno(file.write_at(b"x", u64::MAX), libc::EFBIG);
    assert_errno(file.read_at(&mut buffer, u64::MAX - 5), libc::EINVAL);
}

#[test]
fn the_beginning_of_a_file_comes_with_its_opening() {
    // OpenSSH first assigns the handle that was closed last.
    for bench in both_servers() {
        let lengths = [1, 0, 40_000, 300, 32 << 10];
        for (number, length) in (0..).zip(lengths) {
            let content = content(number, length);
            std::fs::write(bench.path(&number.to_string()), content).unwrap();
        }
        let source = bench.connect();
        let _another = open(&source, "0", OpenFlags::READ).unwrap();
        drop(open(&source, "0", OpenFlags::READ).unwrap());
        for (number, length) in (0..).zip(lengths) {
            let found = source.open(Path::new(&number.to_string()), BEGIN).unwrap();
            assert!(
                found.begin == content(number, length.min(32 << 10)),
                "{length}"
            );
        }
    }
}

#[test]
fn a_write_back_is_finished_with_content_attributes_and_length() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    for (bytes, is_sync) in [(0, true), (5, false), (300_000, true), (5 << 20, true)] {
        let found = source.open(Path::new("f"), READ_WRITE).unwrap();
        let file = found.handle;
        assert_eq!(found.attributes, file.attributes().unwrap());
        let content = content(6, bytes);
        let end = Finish {
            bytes: &content,
            offset: 7,
            changes: &SetAttributes {
                mode: Some(0o4711),
                mtime: at(1_400_000_000),
                ..SetAttributes::default()
            },
            is_sync,
            looks_at_name: false,
        };
        let (found, _) = file.finish(&end).unwrap();
        let before = found.size_bytes - bytes as u64;
        assert!(bytes == 0 || before == 7, "{before}");
        assert_eq!((found.mode, found.mtime.tv_sec), (0o4711, 1_400_000_000));
        assert!(bench.read("f")[before as usize..] == content);
        remove(&source, "f").unwrap();
    }
}

#[test]
fn a_directory_of_10_000_files_is_listed_with_attributes() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let mut expected = Vec::new();
    for number in 0..10_000 {
        let name = format!("{number:05}");
        std::fs::write(bench.path(&name), vec![0; number % 7]).unwrap();
        expected.push((name, Kind::File, (number % 7) as u64));
    }
    let entries = list(&source, "").unwrap().into_iter();
    let found = entries.map(|entry| {
        let attributes = entry.attributes.unwrap();
        let name = entry.name.into_string().unwrap();
        (name, attributes.kind, attributes.size_bytes)
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by(|one, two| one.0.cmp(&two.0));
    assert!(found == expected, "{} names", found.len());
}

#[test]
fn names_are_bytes() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let accent = "\u{e9}".as_bytes();
    let names: [&[u8]; 6] = [
        b"\xff\xfe",
        b"new\nline",
        b" ",
        b"...",
        &[b'n'; 255],
        accent,
    ];
    for name in names {
        let name = Path::new(OsStr::from_bytes(name));
        source.open(name, READ_WRITE).unwrap();
        assert!(bench.directory.path().join(name).exists());
    }
    let mut found: Vec<_> = list(&source, "").unwrap();
    found.sort_by(|one, two| one.name.cmp(&two.name));
    let mut expected = names.map(OsStr::from_bytes);
    expected.sort();
    assert!(found.iter().map(|entry| &*entry.name).eq(expected));
    assert!(found.iter().all(|entry| entry.kind == Some(Kind::File)));
}

#[test]
fn a_symbolic_link_says_what_it_was_made_with() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let target = OsStr::new("../x \u{e9}");
    make(&source, "s", New::Symlink(target), 0o644).unwrap();
    assert_eq!(std::fs::read_link(bench.path("s")).unwrap(), target);
    assert_eq!(source.read_link(Path::new("s")).unwrap(), target);
    assert_eq!(attributes(&source, "s").unwrap().kind, Kind::Symlink);
}

#[test]
fn a_rename_replaces_or_refuses_as_it_is_told() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    std::fs::write(bench.path("a"), "a").unwrap();
    std::fs::write(bench.path("b"), "b").unwrap();
    assert_errno(rename_new(&source, "a", "b"), libc::EEXIST);
    rename(&source, "a", "b").unwrap();
    assert_eq!(bench.read("b"), b"a");
    rename_new(&source, "b", "c").unwrap();
    assert!(!bench.path("b").exists());
    assert_eq!(bench.stat("c").nlink(), 1);
    let c = Path::new("c");
    assert_errno(source.rename(c, c, RenameFlags::EXCHANGE), libc::EINVAL);
}

#[test]
fn attributes_are_set_and_a_symbolic_links_are_its_own() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    std::fs::write(bench.path("f"), "12345").unwrap();
    symlink("f", bench.path("s")).unwrap();
    let found = |name| attributes(&source, name).unwrap();
    let times = |name| (found(name).atime.tv_sec, found(name).mtime.tv_sec);
    let changes = SetAttributes {
        mode: Some(0o640),
        size_bytes: Some(3),
        atime: at(1_000_000_000),
        mtime: at(1_100_000_000),
        ..SetAttributes::default()
    };
    set(&source, "f", changes).unwrap();
    assert_eq!((found("f").mode, found("f").size_bytes), (0o640, 3));
    assert_eq!(times("f"), (1_000_000_000, 1_100_000_000));
    let mtime = |mtime| SetAttributes {
        mtime,
        ..SetAttributes::default()
    };
    for name in ["s", "f"] {
        set(&source, name, mtime(at(1_200_000_000))).unwrap();
        assert_eq!(times(name).1, 1_200_000_000);
    }
    assert_eq!(times("f").0, 1_000_000_000);
    set(&source, "f", mtime(Some(SetTime::Now))).unwrap();
    assert!(times("f").1 > 1_200_000_000);
    assert!(set(&source, "s", cut()).is_err());
    assert_eq!(found("f").size_bytes, 3);
}

#[test]
fn an_open_file_is_changed_whatever_its_name_is() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let file = open(&source, "f", READ_WRITE).unwrap();
    rename(&source, "f", "g").unwrap();
    file.write_at(b"123", 0).unwrap();
    let changes = SetAttributes {
        mode: Some(0o600),
        atime: at(7),
        ..SetAttributes::default()
    };
    file.set_attributes(&changes).unwrap();
    let found = bench.stat("g");
    assert_eq!(
        (mode_of(&bench, "g"), found.len(), found.atime()),
        (0o600, 3, 7)
    );
    remove(&source, "g").unwrap();
    file.write_at(b"4", 3).unwrap();
    assert_eq!(file.attributes().unwrap().size_bytes, 4);
}

#[test]
fn what_is_made_has_just_the_permissions_that_were_asked_for() {
    let Some(bench) = Bench::with(&internal(&["-u", "077"])) else {
        return;
    };
    let source = bench.connect();
    for mode in [0o666, 0o4755, 0o1777, 0o600] {
        let (file, directory) = (format!("f{mode:o}"), format!("d{mode:o}"));
        open(&source, &file, new(mode)).unwrap();
        assert_eq!(mode_of(&bench, &file), mode);
        make(&source, &directory, New::Directory, mode).unwrap();
        assert_eq!(mode_of(&bench, &directory), mode);
    }
    open(&source, "f600", new(0o777)).unwrap();
    assert_eq!(mode_of(&bench, "f600"), 0o600);
}

#[test]
fn a_server_that_works_as_root_gives_new_files_their_owner() {
    if !is_root() {
        return skip("only root can give a directory another group");
    }
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let owner = Some(Owner { uid: 12, gid: 34 });
    let flags = OpenFlags {
        create: Some(Creation {
            mode: 0o4755,
            owner,
        }),
        ..READ_WRITE
    };
    let creation = Creation { mode: 0o700, owner };
    let make = |name, what| source.make(Path::new(name), what, &creation).unwrap();
    open(&source, "f", flags).unwrap();
    make("d", New::Directory);
    make("s", New::Symlink(OsStr::new("x")));
    chown(bench.path("d"), None, Some(56)).unwrap();
    set_mode(&bench.path("d"), 0o2755);
    open(&source, "d/f", flags).unwrap();
    make("d/d", New::Directory);
    for (name, uid, gid, mode) in [
        ("f", 12, 34, 0o4755),
        ("d", 12, 56, 0o2755),
        ("s", 0, 0, 0o777),
        ("d/f", 12, 56, 0o4755),
        ("d/d", 12, 56, 0o2700),
    ] {
        let found = (
            bench.stat(name).uid(),
            bench.stat(name).gid(),
            mode_of(&bench, name),
        );
        assert_eq!(found, (uid, gid, mode), "{name}");
    }
    let gid = Some(78);
    set(
        &source,
        "d/d",
        SetAttributes {
            gid,
            ..SetAttributes::default()
        },
    )
    .unwrap();
    assert_eq!((bench.stat("d/d").uid(), bench.stat("d/d").gid()), (12, 78));
}

#[test]
fn a_server_without_extensions_does_what_it_can() {
    let denied = "posix-rename,statvfs,hardlink,fsync,lsetstat,limits";
    let Some(bench) = Bench::with(&internal(&["-P", denied])) else {
        return;
    };
    let source = bench.connect();
    std::fs::write(bench.path("a"), "a").unwrap();
    std::fs::write(bench.path("b"), "b").unwrap();
    // Without an extension, no request replaces a file such that its name always exists.
    assert_errno(rename(&source, "a", "b"), libc::EOPNOTSUPP);
    rename(&source, "a", "c").unwrap();
    assert_eq!(
        (bench.read("b"), bench.read("c")),
        (b"b".into(), b"a".into())
    );
    remove(&source, "c").unwrap();
    assert_errno(link(&source, "b", "c"), libc::EPERM);
    assert_errno(source.space().map(drop), libc::ENOSYS);
    source.sync_directory(Path::new("")).unwrap();
    let file = open(&source, "b", READ_WRITE).unwrap();
    let content = content(5, 1 << 20);
    file.write_at(&content, 0).unwrap();
    file.sync().unwrap();
    let mut read = vec![0; 1 << 20];
    assert_eq!(file.read_at(&mut read, 0), Ok(1 << 20));
    assert!(read == content);
    symlink("b", bench.path("s")).unwrap();
    let mode = SetAttributes {
        mode: Some(0o600),
        ..SetAttributes::default()
    };
    set(&source, "b", mode).unwrap();
    assert_errno(set(&source, "s", mode), libc::EOPNOTSUPP);
    assert_eq!(attributes(&source, "b").unwrap().mode, 0o600);
}

#[test]
fn the_space_is_that_of_the_servers_file_system() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let space = source.space().unwrap();
    let there = rustix::fs::statvfs(bench.directory.path()).unwrap();
    let bytes = |space: &rustix::fs::StatVfs| space.f_blocks * space.f_frsize;
    assert_eq!(bytes(&space), bytes(&there));
    assert_eq!(space.f_namemax, there.f_namemax);
    source.sync_directory(Path::new("")).unwrap();
}

#[test]
fn a_rename_between_two_names_of_one_file_leaves_both() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let file = open(&source, "a", READ_WRITE).unwrap();
    link(&source, "a", "b").unwrap();
    rename(&source, "a", "b").unwrap();
    let found = attributes(&source, "b").unwrap();
    assert_eq!(found.links, 2);
    remove(&source, "b").unwrap();
    // The open file is still known by the first name.
    let left = file.attributes().unwrap();
    assert_eq!((left.identity, left.links), (found.identity, 1));
}
