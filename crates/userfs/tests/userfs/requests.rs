//! What a mount asks its server for: the fewest requests, all that need not
//! wait for each other in one round trip.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use toll_sshd::{Settings, Subsystem};

use crate::common::{Mounted, Setting, can_mount_remote, start, without_new_processes};

const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A mount whose requests are written to a file.
struct Watched {
    mounted: Mounted,
    log: PathBuf,
    _place: tempfile::TempDir,
}

/// The first byte of a packet, as the draft numbers them, in words.
fn name(kind: u8) -> &'static str {
    match kind {
        3 => "OPEN",
        4 => "CLOSE",
        5 => "READ",
        6 => "WRITE",
        7 => "LSTAT",
        8 => "FSTAT",
        9 => "SETSTAT",
        10 => "FSETSTAT",
        11 => "OPENDIR",
        12 => "READDIR",
        13 => "REMOVE",
        200 => "EXTENDED",
        _ => "other",
    }
}

impl Watched {
    /// With attributes that last as long as the test.
    fn new(mode: &'static str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        let log = place.path().join("log");
        fs::create_dir(&source).unwrap();
        let settings = Settings {
            subsystem: Subsystem::Command(format!("tee {} | {SFTP_SERVER}", log.display())),
            ..Settings::default()
        };
        let setting = Setting {
            lifetime_ms: 1_000_000,
            ..Setting::remote(mode, if mode == "none" { "direct" } else { "pages" })
        };
        let server = start(&settings).expect("a server starts");
        Self {
            mounted: Mounted::over(&source, place.path(), &setting, Some(server)),
            log,
            _place: place,
        }
    }

    /// How often each kind of request was sent so far.
    fn requests(&self) -> BTreeMap<&'static str, usize> {
        let bytes = fs::read(&self.log).unwrap();
        let (mut counts, mut rest) = (BTreeMap::new(), &bytes[..]);
        while let Some((head, _)) = rest.split_at_checked(5) {
            let length = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
            *counts.entry(name(head[4])).or_insert(0) += 1;
            rest = rest.get(4 + length..).unwrap_or_default();
        }
        counts
    }

    /// What is asked for by some work, once it is all written down.
    fn by(&self, closes: usize, work: impl FnOnce(&Mounted)) -> Vec<(&'static str, usize)> {
        let before = self.requests();
        let alone = without_new_processes();
        work(&self.mounted);
        drop(alone);
        let closes = closes + before.get("CLOSE").unwrap_or(&0);
        // A file is closed after its last user was answered.
        for _ in 0..6000 {
            if self.requests().get("CLOSE").unwrap_or(&0) >= &closes {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let after = self.requests().into_iter();
        let more = after.map(|(kind, count)| (kind, count - before.get(kind).unwrap_or(&0)));
        more.filter(|(_, count)| *count > 0).collect()
    }
}

#[test]
fn a_small_file_is_made_in_three_round_trips() {
    if !can_mount_remote() {
        return;
    }
    for mode in ["whole", "blocks"] {
        let watched = Watched::new(mode);
        let make = |name: &'static str| {
            move |mounted: &Mounted| {
                let mut file = File::create_new(mounted.path(name)).unwrap();
                file.write_all(&[7; 4096]).unwrap();
            }
        };
        watched.by(1, make("a"));
        // Looked up; made and looked at with its directory; written, given its
        // time and looked at, by handle, and by name before and after; closed by
        // the way.
        let expected = [
            ("CLOSE", 1),
            ("FSETSTAT", 1),
            ("FSTAT", 1),
            ("LSTAT", 5),
            ("OPEN", 1),
            ("WRITE", 1),
        ];
        assert_eq!(watched.by(1, make("b")), expected, "{mode}");
        let removed = watched.by(0, |mounted| fs::remove_file(mounted.path("b")).unwrap());
        assert_eq!(removed, [("LSTAT", 1), ("REMOVE", 1)], "{mode}");
    }
}

#[test]
fn names_of_a_directory_are_asked_for_together_after_a_few() {
    if !can_mount_remote() {
        return;
    }
    let watched = Watched::new("whole");
    let directory = watched.mounted.behind("d");
    fs::create_dir(&directory).unwrap();
    for number in 0..50 {
        fs::write(directory.join(number.to_string()), vec![1; number]).unwrap();
    }
    let asked = watched.by(1, |mounted| {
        for number in 0..50 {
            let path = mounted.path(&format!("d/{number}"));
            assert_eq!(fs::metadata(path).unwrap().len(), number);
        }
    });
    // Of both directories and two files, then of all.
    let expected = [("CLOSE", 1), ("LSTAT", 4), ("OPENDIR", 1)];
    assert_eq!(asked[..3], expected, "{asked:?}");
    assert_eq!(asked.len(), 4, "{asked:?}");
}

#[test]
fn a_tree_that_was_listed_is_opened_without_being_looked_up() {
    if !can_mount_remote() {
        return;
    }
    let watched = Watched::new("whole");
    for name in ["a", "b"] {
        fs::write(watched.mounted.behind(name), name).unwrap();
    }
    let asked = watched.by(3, |mounted| {
        let names = fs::read_dir(&mounted.at).unwrap().flatten();
        for entry in names {
            assert_eq!(entry.metadata().unwrap().len(), 1);
            assert_eq!(fs::read(entry.path()).unwrap().len(), 1);
        }
    });
    // Of the directory, and with each opening.
    let expected = [
        ("CLOSE", 3),
        ("LSTAT", 3),
        ("OPEN", 2),
        ("OPENDIR", 1),
        ("READ", 2),
    ];
    let asked: Vec<_> = asked
        .into_iter()
        .filter(|(kind, _)| *kind != "READDIR")
        .collect();
    assert_eq!(asked, expected);
}

#[test]
fn who_goes_through_a_tree_gets_directories_beside_each_other_at_once() {
    if !can_mount_remote() {
        return;
    }
    let watched = Watched::new("whole");
    for number in 0..5 {
        let directory = watched.mounted.behind(&number.to_string());
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("f"), number.to_string()).unwrap();
    }
    let names = |path: PathBuf| {
        let entries = fs::read_dir(path).unwrap().flatten();
        let names = entries.map(|entry| entry.path());
        names.collect::<Vec<_>>()
    };
    let mut directories = Vec::new();
    watched.by(1, |mounted| directories = names(mounted.at.clone()));
    assert_eq!(directories.len(), 5);
    let first = watched.by(5, |_| assert_eq!(names(directories[0].clone()).len(), 1));
    let opened = first.iter().find(|(kind, _)| *kind == "OPENDIR");
    assert_eq!(opened, Some(&("OPENDIR", 5)), "{first:?}");
    let others = watched.by(0, |_| {
        for directory in &directories[1..] {
            assert_eq!(names(directory.clone()), [directory.join("f")]);
        }
    });
    assert_eq!(others, [], "they were told already");
    // A listing is reused until it is too old, or this mount changes something.
    let is_listed = |asked: &[(&str, usize)]| asked.iter().any(|(kind, _)| *kind == "OPENDIR");
    let again = watched.by(0, |_| assert_eq!(names(directories[2].clone()).len(), 1));
    assert!(!is_listed(&again), "{again:?}");
    let changed = watched.by(2, |_| {
        File::create_new(directories[2].join("g")).unwrap();
        assert_eq!(names(directories[2].clone()).len(), 2);
    });
    assert!(is_listed(&changed), "{changed:?}");
}

#[test]
fn a_page_at_a_random_place_brings_little_more_than_itself() {
    if !can_mount_remote() {
        return;
    }
    let watched = Watched::new("blocks");
    fs::write(watched.mounted.behind("f"), vec![3; 8 << 20]).unwrap();
    let asked = watched.by(1, |mounted| {
        let file = File::open(mounted.path("f")).unwrap();
        // Each far from the one before.
        for number in 1..16_u64 {
            let mut page = [0; 4096];
            let at = (number * 7 % 16) * (500 << 10);
            file.read_exact_at(&mut page, at).unwrap();
            assert_eq!(page, [3; 4096]);
        }
    });
    let reads = asked.iter().find(|(kind, _)| *kind == "READ");
    assert_eq!(reads, Some(&("READ", 15)), "{asked:?}");
}
