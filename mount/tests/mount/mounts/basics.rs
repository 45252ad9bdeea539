//! Behaviour that every program expects, in every cache setting.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

use crate::mounts::common::{Mounted, REMOTE_MODES, SETTINGS, each};

fn everywhere(test: impl Fn(&Mounted)) {
    each(&SETTINGS, |mounted| test(mounted));
}

#[test]
fn replacing_a_file_keeps_its_mode_owner_and_extended_attributes() {
    everywhere(|mounted| {
        let behind = mounted.behind("f");
        fs::write(&behind, b"old content").unwrap();
        fs::set_permissions(&behind, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::chown(&behind, Some(1234), Some(4321)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&behind, "user.note", b"kept", flags).unwrap();
        let file = File::options().append(true).open(mounted.path("f"));
        file.unwrap().write_all(b" and new").unwrap();
        let found = fs::metadata(&behind).unwrap();
        mounted.assert_behind("f", b"old content and new");
        let found = (found.mode() & 0o7777, found.uid(), found.gid());
        assert_eq!(found, (0o640, 1234, 4321));
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&behind, "user.note", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
    });
}

#[test]
fn a_file_over_4_gib_with_holes_keeps_its_length_its_data_and_its_holes() {
    everywhere(|mounted| {
        const FAR: u64 = (5 << 30) + 12_345;
        let file = File::create(mounted.path("f")).unwrap();
        file.write_all_at(b"near", 0).unwrap();
        file.write_all_at(b"far", FAR).unwrap();
        drop(file);
        let behind = fs::metadata(mounted.behind("f")).unwrap();
        assert_eq!(behind.len(), FAR + 3);
        let blocks = behind.blocks();
        assert!(blocks * 512 < 16 << 20, "{blocks} blocks");
        let mut read = [0; 8];
        let file = File::open(mounted.path("f")).unwrap();
        file.read_exact_at(&mut read, FAR - 5).unwrap();
        assert_eq!(&read, b"\0\0\0\0\0far");
        let whole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(4096)).unwrap();
        assert!(whole <= FAR && file.metadata().unwrap().len() == FAR + 3);
    });
}

#[test]
fn a_directory_of_10_000_names_is_listed_whole_and_goes_again() {
    everywhere(|mounted| {
        fs::create_dir(mounted.path("d")).unwrap();
        for number in 0..10_000 {
            File::create(mounted.behind(&format!("d/{number:05}"))).unwrap();
        }
        let names = fs::read_dir(mounted.path("d")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let expected: Vec<std::ffi::OsString> = (0..10_000)
            .map(|number| format!("{number:05}").into())
            .collect();
        assert!(names == expected, "{} names", names.len());
        fs::remove_dir_all(mounted.path("d")).unwrap();
        assert!(!mounted.behind("d").exists());
    });
}

#[test]
fn extended_attributes_come_through() {
    everywhere(|mounted| {
        use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
        let path = mounted.path("f");
        fs::write(&path, b"x").unwrap();
        let mut value = [0; 8];
        let missing = getxattr(&path, "user.a", &mut value);
        assert_eq!(missing, Err(rustix::io::Errno::NODATA));
        setxattr(&path, "user.a", b"one", XattrFlags::CREATE).unwrap();
        let again = setxattr(&path, "user.a", b"two", XattrFlags::CREATE);
        assert_eq!(again, Err(rustix::io::Errno::EXIST));
        let other = setxattr(&path, "user.b", b"two", XattrFlags::REPLACE);
        assert_eq!(other, Err(rustix::io::Errno::NODATA));
        setxattr(&path, "user.a", b"three", XattrFlags::REPLACE).unwrap();
        assert_eq!(getxattr(&path, "user.a", &mut value), Ok(5));
        assert_eq!(&value[..5], b"three");
        let short = getxattr(&path, "user.a", &mut value[..2]);
        assert_eq!(short, Err(rustix::io::Errno::RANGE));
        let length = getxattr(mounted.behind("f"), "user.a", &mut value).unwrap();
        assert_eq!(&value[..length], b"three");
        let mut names = [0; 64];
        let length = listxattr(&path, &mut names).unwrap();
        assert_eq!(&names[..length], b"user.a\0");
        removexattr(&path, "user.a").unwrap();
        assert_eq!(removexattr(&path, "user.a"), Err(rustix::io::Errno::NODATA));
    });
}

#[test]
fn free_space_is_the_sources_and_a_file_without_a_name_is_refused() {
    everywhere(|mounted| {
        let [through, behind] = [&mounted.at, &mounted.source].map(|at| {
            let space = rustix::fs::statvfs(at).unwrap();
            (space.f_blocks, space.f_files, space.f_namemax)
        });
        assert_eq!(through, behind);
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::WRONLY;
        let refused = rustix::fs::open(&mounted.at, flags, rustix::fs::Mode::RWXU);
        assert_eq!(refused.unwrap_err(), rustix::io::Errno::OPNOTSUPP);
    });
}

#[test]
fn many_threads_work_on_files_of_their_own_and_on_one() {
    each(SETTINGS.iter().chain(&REMOTE_MODES), |mounted| {
        let mounted = &*mounted;
        fs::write(mounted.path("shared"), vec![0; 64 * 4096]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..24_u8 {
                scope.spawn(move || {
                    let shared = mounted.open("shared");
                    for round in 0..10 {
                        let name = format!("{thread}-{round}");
                        fs::write(mounted.path(&name), [thread; 5000]).unwrap();
                        let at = u64::from(thread) * 4096;
                        shared.write_all_at(&[thread + 1; 4096], at).unwrap();
                        mounted.assert_read(&name, [thread; 5000]);
                        fs::remove_file(mounted.path(&name)).unwrap();
                    }
                });
            }
        });
        let parts = (0..24).flat_map(|thread| [thread + 1; 4096]);
        let expected: Vec<u8> = parts.chain([0; 40 * 4096]).collect();
        mounted.assert_behind("shared", expected);
        assert_eq!(fs::read_dir(&mounted.source).unwrap().count(), 1);
    });
}
