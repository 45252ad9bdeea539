//! Every method of a source, and what it does to the files on the server.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use userfs::source::{
    Creation, Error, Kind, New, OpenFlags, Owner, RenameFlags, SetAttributes, SetTime, Source,
};

use crate::common::{
    Bench, CREATION, READ_WRITE, at, both_servers, is_root, list, open, pattern, set_mode, skip,
};

#[test]
fn a_file_that_is_written_is_what_is_read_on_either_server() {
    for settings in both_servers() {
        let Some(bench) = Bench::with(&settings) else {
            return;
        };
        let source = bench.connect();
        for bytes in [0, 1, 4096, (128 << 10) + 1, (9 << 20) + 7] {
            let content = pattern(bytes, 1);
            let name = format!("file {bytes}");
            let file = open(&source, &name, READ_WRITE).unwrap();
            file.write_at(&content, 0).unwrap();
            file.sync().unwrap();
            assert_eq!(std::fs::read(bench.path(&name)).unwrap(), content);
            let mut buffer = vec![0; bytes + 10];
            assert_eq!(file.read_at(&mut buffer, 0), Ok(bytes));
            assert_eq!(buffer[..bytes], content);
            assert_eq!(file.read_at(&mut buffer, bytes as u64), Ok(0));
            assert_eq!(file.attributes().unwrap().size_bytes, bytes as u64);
        }
    }
}

#[test]
fn parts_of_a_file_are_read_and_written_at_any_offset() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let file = open(&source, "sparse", READ_WRITE).unwrap();
    let far = (5 << 30) + 3;
    let content = pattern(300_000, 2);
    file.write_at(&content, far).unwrap();
    assert_eq!(file.attributes().unwrap().size_bytes, far + 300_000);
    let mut buffer = vec![1; 300_100];
    assert_eq!(file.read_at(&mut buffer, far - 50), Ok(300_050));
    assert_eq!(buffer[..50], [0; 50]);
    assert_eq!(buffer[50..300_050], content);
    file.truncate(far + 10).unwrap();
    assert_eq!(file.read_at(&mut buffer, far), Ok(10));
    assert_eq!(
        file.write_at(b"x", u64::MAX),
        Err(Error::Errno(libc::EFBIG))
    );
    assert_eq!(
        file.read_at(&mut buffer, u64::MAX - 5),
        Err(Error::Errno(libc::EINVAL))
    );
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
    let mut found: Vec<_> = list(&source, "")
        .unwrap()
        .into_iter()
        .map(|entry| {
            let attributes = entry.attributes.unwrap();
            let name = entry.name.into_string().unwrap();
            (name, attributes.kind, attributes.size_bytes)
        })
        .collect();
    found.sort_by(|one, two| one.0.cmp(&two.0));
    assert!(found == expected, "{} names", found.len());
}

#[test]
fn names_are_bytes() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let names: [&[u8]; 5] = [b"\xff\xfe", b"new\nline", b" ", b"...", &[b'n'; 255]];
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
fn directories_links_and_names_come_and_go() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let path = Path::new;
    source
        .make(
            path("d"),
            New::Directory,
            &Creation {
                mode: 0o1777,
                owner: None,
            },
        )
        .unwrap();
    assert_eq!(
        std::fs::metadata(bench.path("d")).unwrap().mode() & 0o7777,
        0o1777
    );
    open(&source, "d/f", READ_WRITE)
        .unwrap()
        .write_at(b"1", 0)
        .unwrap();
    source
        .make(
            path("d/s"),
            New::Symlink(OsStr::new("../x \u{e9}")),
            &CREATION,
        )
        .unwrap();
    assert_eq!(
        std::fs::read_link(bench.path("d/s")).unwrap(),
        path("../x \u{e9}")
    );
    assert_eq!(source.read_link(path("d/s")).unwrap(), "../x \u{e9}");
    assert_eq!(source.attributes(path("d/s")).unwrap().kind, Kind::Symlink);
    source.hard_link(path("d/f"), path("d/h")).unwrap();
    assert_eq!(std::fs::metadata(bench.path("d/h")).unwrap().nlink(), 2);
    source
        .rename(path("d"), path("e"), RenameFlags::empty())
        .unwrap();
    source.remove(path("e/f"), false).unwrap();
    source.remove(path("e/s"), false).unwrap();
    assert_eq!(std::fs::read(bench.path("e/h")).unwrap(), b"1");
    source.remove(path("e/h"), false).unwrap();
    source.remove(path("e"), true).unwrap();
    assert_eq!(list(&source, "").unwrap(), []);
}

#[test]
fn a_rename_replaces_or_refuses_as_it_is_told() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let path = Path::new;
    std::fs::write(bench.path("a"), "a").unwrap();
    std::fs::write(bench.path("b"), "b").unwrap();
    let refused = source.rename(path("a"), path("b"), RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Error::Errno(libc::EEXIST)));
    source
        .rename(path("a"), path("b"), RenameFlags::empty())
        .unwrap();
    assert_eq!(std::fs::read(bench.path("b")).unwrap(), b"a");
    source
        .rename(path("b"), path("c"), RenameFlags::NOREPLACE)
        .unwrap();
    assert!(!bench.path("b").exists());
    assert_eq!(std::fs::metadata(bench.path("c")).unwrap().nlink(), 1);
    let exchanged = source.rename(path("c"), path("c"), RenameFlags::EXCHANGE);
    assert_eq!(exchanged, Err(Error::Errno(libc::EINVAL)));
}

#[test]
fn attributes_are_set_and_a_symbolic_links_are_its_own() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let path = Path::new;
    std::fs::write(bench.path("f"), "12345").unwrap();
    std::os::unix::fs::symlink("f", bench.path("s")).unwrap();
    let changes = SetAttributes {
        mode: Some(0o640),
        size_bytes: Some(3),
        atime: at(1_000_000_000),
        mtime: at(1_100_000_000),
        ..SetAttributes::default()
    };
    source.set_attributes(path("f"), &changes).unwrap();
    let found = source.attributes(path("f")).unwrap();
    assert_eq!((found.mode, found.size_bytes), (0o640, 3));
    assert_eq!(
        (found.atime.seconds, found.mtime.seconds),
        (1_000_000_000, 1_100_000_000)
    );
    let later = SetAttributes {
        mtime: at(1_200_000_000),
        ..SetAttributes::default()
    };
    source.set_attributes(path("s"), &later).unwrap();
    assert_eq!(
        source.attributes(path("s")).unwrap().mtime.seconds,
        1_200_000_000
    );
    source.set_attributes(path("f"), &later).unwrap();
    let found = source.attributes(path("f")).unwrap();
    assert_eq!(
        (found.atime.seconds, found.mtime.seconds),
        (1_000_000_000, 1_200_000_000)
    );
    let now = SetAttributes {
        mtime: Some(SetTime::Now),
        ..SetAttributes::default()
    };
    source.set_attributes(path("f"), &now).unwrap();
    assert!(source.attributes(path("f")).unwrap().mtime.seconds > 1_200_000_000);
    let cut = SetAttributes {
        size_bytes: Some(0),
        ..SetAttributes::default()
    };
    assert!(source.set_attributes(path("s"), &cut).is_err());
    assert_eq!(source.attributes(path("f")).unwrap().size_bytes, 3);
}

#[test]
fn an_open_file_is_changed_whatever_its_name_is() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let file = open(&source, "f", READ_WRITE).unwrap();
    source
        .rename(Path::new("f"), Path::new("g"), RenameFlags::empty())
        .unwrap();
    file.write_at(b"123", 0).unwrap();
    let mode = SetAttributes {
        mode: Some(0o600),
        atime: at(7),
        ..SetAttributes::default()
    };
    file.set_attributes(&mode).unwrap();
    let found = std::fs::metadata(bench.path("g")).unwrap();
    assert_eq!(
        (found.mode() & 0o7777, found.len(), found.atime()),
        (0o600, 3, 7)
    );
    source.remove(Path::new("g"), false).unwrap();
    file.write_at(b"4", 3).unwrap();
    assert_eq!(file.attributes().unwrap().size_bytes, 4);
}

#[test]
fn what_is_made_has_just_the_permissions_that_were_asked_for() {
    let settings = toll_sshd::Settings {
        subsystem: toll_sshd::Subsystem::Internal(vec!["-u".into(), "077".into()]),
        ..Default::default()
    };
    let Some(bench) = Bench::with(&settings) else {
        return;
    };
    let source = bench.connect();
    for mode in [0o666, 0o4755, 0o600] {
        let creation = Creation { mode, owner: None };
        let (file, directory) = (format!("f{mode:o}"), format!("d{mode:o}"));
        let flags = OpenFlags {
            create: Some(creation),
            ..READ_WRITE
        };
        open(&source, &file, flags).unwrap();
        assert_eq!(
            std::fs::metadata(bench.path(&file)).unwrap().mode() & 0o7777,
            mode
        );
        source
            .make(Path::new(&directory), New::Directory, &creation)
            .unwrap();
        assert_eq!(
            std::fs::metadata(bench.path(&directory)).unwrap().mode() & 0o7777,
            mode
        );
    }
    let there = OpenFlags {
        create: Some(Creation {
            mode: 0o777,
            owner: None,
        }),
        ..READ_WRITE
    };
    open(&source, "f600", there).unwrap();
    assert_eq!(
        std::fs::metadata(bench.path("f600")).unwrap().mode() & 0o7777,
        0o600
    );
}

#[test]
fn a_server_that_works_as_root_gives_new_files_their_owner() {
    if !is_root() {
        skip("only root gives a directory another group");
        return;
    }
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let new = |mode| Creation {
        mode,
        owner: Some(Owner { uid: 12, gid: 34 }),
    };
    let flags = OpenFlags {
        create: Some(new(0o4755)),
        ..READ_WRITE
    };
    let make = |name: &str, what| source.make(Path::new(name), what, &new(0o700)).unwrap();
    open(&source, "f", flags).unwrap();
    make("d", New::Directory);
    make("s", New::Symlink(OsStr::new("x")));
    std::os::unix::fs::chown(bench.path("d"), None, Some(56)).unwrap();
    set_mode(&bench.path("d"), 0o2755);
    open(&source, "d/f", flags).unwrap();
    make("d/d", New::Directory);
    let expected = [
        ("f", 12, 34, 0o4755),
        ("d", 12, 56, 0o2755),
        ("s", 0, 0, 0o777),
        ("d/f", 12, 56, 0o4755),
        ("d/d", 12, 56, 0o2700),
    ];
    for (name, uid, gid, mode) in expected {
        let found = std::fs::symlink_metadata(bench.path(name)).unwrap();
        let found = (found.uid(), found.gid(), found.mode() & 0o7777);
        assert_eq!(found, (uid, gid, mode), "{name}");
    }
    let changes = SetAttributes {
        gid: Some(78),
        ..SetAttributes::default()
    };
    source.set_attributes(Path::new("d/d"), &changes).unwrap();
    let found = std::fs::metadata(bench.path("d/d")).unwrap();
    assert_eq!((found.uid(), found.gid()), (12, 78));
}

#[test]
fn a_server_without_extensions_does_what_it_can() {
    let denied = "posix-rename,statvfs,hardlink,fsync,lsetstat,limits";
    let settings = toll_sshd::Settings {
        subsystem: toll_sshd::Subsystem::Internal(vec!["-P".into(), denied.into()]),
        ..Default::default()
    };
    let Some(bench) = Bench::with(&settings) else {
        return;
    };
    let source = bench.connect();
    let path = Path::new;
    std::fs::write(bench.path("a"), "a").unwrap();
    std::fs::write(bench.path("b"), "b").unwrap();
    // There is no way to replace a file that never leaves its name without one.
    assert_eq!(
        source.rename(path("a"), path("b"), RenameFlags::empty()),
        Err(Error::Errno(libc::EOPNOTSUPP))
    );
    source
        .rename(path("a"), path("c"), RenameFlags::empty())
        .unwrap();
    assert_eq!(std::fs::read(bench.path("b")).unwrap(), b"b");
    assert_eq!(std::fs::read(bench.path("c")).unwrap(), b"a");
    source.remove(path("c"), false).unwrap();
    assert_eq!(
        source.hard_link(path("b"), path("c")),
        Err(Error::Errno(libc::EPERM))
    );
    assert_eq!(source.space().err(), Some(Error::Errno(libc::ENOSYS)));
    source.sync_directory(path("")).unwrap();
    let file = open(&source, "b", READ_WRITE).unwrap();
    let content = pattern(1 << 20, 5);
    file.write_at(&content, 0).unwrap();
    file.sync().unwrap();
    let mut read = vec![0; 1 << 20];
    assert_eq!(file.read_at(&mut read, 0), Ok(1 << 20));
    assert!(read == content);
    std::os::unix::fs::symlink("b", bench.path("s")).unwrap();
    let mode = SetAttributes {
        mode: Some(0o600),
        ..SetAttributes::default()
    };
    source.set_attributes(path("b"), &mode).unwrap();
    let refused = source.set_attributes(path("s"), &mode);
    assert_eq!(refused, Err(Error::Errno(libc::EOPNOTSUPP)));
    assert_eq!(source.attributes(path("b")).unwrap().mode, 0o600);
}

#[test]
fn the_space_is_that_of_the_servers_file_system() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let space = source.space().unwrap();
    let there = rustix::fs::statvfs(bench.directory.path()).unwrap();
    assert_eq!(
        space.f_blocks * space.f_frsize,
        there.f_blocks * there.f_frsize
    );
    assert_eq!(space.f_namemax, there.f_namemax);
    source.sync_directory(Path::new("")).unwrap();
}

#[test]
fn many_callers_share_one_connection() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    std::thread::scope(|scope| {
        for number in 0..16_u64 {
            let source = &source;
            scope.spawn(move || {
                let name = format!("f{number}");
                let content = pattern(700_000, number);
                let file = open(source, &name, READ_WRITE).unwrap();
                file.write_at(&content, number).unwrap();
                let mut read = vec![0; 700_000];
                for _ in 0..5 {
                    assert_eq!(file.read_at(&mut read, number), Ok(700_000));
                    assert!(read == content);
                    assert!(list(source, "").is_ok());
                }
                let mode = Creation {
                    mode: 0o755,
                    ..CREATION
                };
                source
                    .make(Path::new(&format!("d{number}")), New::Directory, &mode)
                    .unwrap();
            });
        }
    });
    assert_eq!(list(&source, "").unwrap().len(), 32);
}

#[test]
fn names_of_one_file_are_counted_wherever_they_go() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let path = Path::new;
    let links = |name| {
        let found = source.attributes(path(name)).unwrap();
        found.identity.map(|identity| (identity, found.links))
    };
    let rename = |from, to| source.rename(path(from), path(to), RenameFlags::empty());
    std::fs::create_dir(bench.path("d")).unwrap();
    std::fs::write(bench.path("d/a"), "").unwrap();
    std::fs::write(bench.path("other"), "").unwrap();
    assert_eq!(links("d/a"), None);
    source.hard_link(path("d/a"), path("b")).unwrap();
    source.hard_link(path("b"), path("c")).unwrap();
    let file = links("d/a").unwrap().0;
    assert_eq!(links("d/a"), Some((file, 3)));
    rename("d", "e").unwrap();
    assert_eq!(links("e/a"), Some((file, 3)));
    source.remove(path("c"), false).unwrap();
    assert_eq!(links("b"), Some((file, 2)));
    rename("other", "b").unwrap();
    assert_eq!(links("b"), None);
    assert_eq!(links("e/a"), Some((file, 1)));
    source.remove(path("e/a"), false).unwrap();
}

#[test]
fn a_rename_between_two_names_of_one_file_leaves_both() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let (a, b) = (Path::new("a"), Path::new("b"));
    let file = open(&source, "a", READ_WRITE).unwrap();
    source.hard_link(a, b).unwrap();
    source.rename(a, b, RenameFlags::empty()).unwrap();
    let found = source.attributes(b).unwrap();
    assert_eq!(found.links, 2);
    source.remove(b, false).unwrap();
    // The open file is still known as the first.
    let left = file.attributes().unwrap();
    assert_eq!((left.identity, left.links), (found.identity, 1));
}
