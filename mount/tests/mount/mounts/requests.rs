//! Requests of a mount to its server. There should be as few as possible, and those
//! that need not wait for each other should share a round trip.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::mounts::common::{Mounted, REMOTE_CACHED, await_that, without_new_processes};
use crate::mounts::recorder::{Recorded, each};

impl Recorded {
    /// Counts each kind of request that was sent so far.
    fn requests(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.lines() {
            if let [request, _, kind, ..] = &line[..]
                && request == "request"
                && kind != "sent"
            {
                *counts.entry(kind.clone()).or_insert(0) += 1;
            }
        }
        counts
    }

    /// Counts each kind of request that some work sends, once the log has all of them.
    fn by(&self, closes: usize, work: impl FnOnce(&Mounted)) -> BTreeMap<String, usize> {
        let before = self.requests();
        let count_before = |kind: &str| before.get(kind).copied().unwrap_or(0);
        let alone = without_new_processes();
        work(&self.mounted);
        drop(alone);
        // A file is closed after the reply to its last user.
        let closes = closes + count_before("close");
        await_that("a close", || {
            closes == 0 || self.requests().get("close") >= Some(&closes)
        });
        let mut asked = self.requests();
        asked.retain(|kind, count| {
            *count -= count_before(kind);
            *count > 0
        });
        asked
    }
}

fn expected<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    BTreeMap::from(counts.map(|(kind, count)| (kind.to_owned(), count)))
}

#[test]
fn a_small_file_is_made_in_three_round_trips() {
    each(REMOTE_CACHED, |recorded| {
        let make = |name: &'static str| {
            move |mounted: &Mounted| {
                let mut file = File::create_new(mounted.path(name)).unwrap();
                file.write_all(&[7; 4096]).unwrap();
            }
        };
        recorded.by(1, make("a"));
        // Looked up; created and looked at, with its directory; written, given its time and
        // looked at, by handle, and by name before and after. The close needs no round trip
        // of its own.
        let made = expected([
            ("close", 1),
            ("fsetstat", 1),
            ("fstat", 1),
            ("lstat", 5),
            ("open", 1),
            ("write", 1),
        ]);
        assert_eq!(recorded.by(1, make("b")), made);
        let removed = recorded.by(0, |mounted| fs::remove_file(mounted.path("b")).unwrap());
        assert_eq!(removed, expected([("lstat", 1), ("remove", 1)]));
    });
}

#[test]
fn names_of_a_directory_are_asked_for_together_after_a_few() {
    each(&REMOTE_CACHED[..1], |recorded| {
        let directory = recorded.mounted.behind("d");
        fs::create_dir(&directory).unwrap();
        for number in 0..50 {
            fs::write(directory.join(number.to_string()), vec![1; number]).unwrap();
        }
        let mut asked = recorded.by(1, |mounted| {
            for number in 0..50 {
                let path = mounted.path(&format!("d/{number}"));
                assert_eq!(fs::metadata(path).unwrap().len(), number);
            }
        });
        asked.remove("readdir");
        // `lstat` of both directories and two files, then a listing of all.
        assert_eq!(
            asked,
            expected([("close", 1), ("lstat", 4), ("opendir", 1)])
        );
    });
}

#[test]
fn a_tree_that_was_listed_is_opened_without_being_looked_up() {
    each(&REMOTE_CACHED[..1], |recorded| {
        for name in ["a", "b"] {
            fs::write(recorded.mounted.behind(name), name).unwrap();
        }
        let mut asked = recorded.by(3, |mounted| {
            let names = fs::read_dir(&mounted.at).unwrap().flatten();
            for entry in names {
                assert_eq!(entry.metadata().unwrap().len(), 1);
                assert_eq!(fs::read(entry.path()).unwrap().len(), 1);
            }
        });
        // There is an `lstat` of the directory, and one with each open.
        asked.remove("readdir");
        let counts = [
            ("close", 3),
            ("lstat", 3),
            ("open", 2),
            ("opendir", 1),
            ("read", 2),
        ];
        assert_eq!(asked, expected(counts));
    });
}

#[test]
fn who_goes_through_a_tree_gets_directories_beside_each_other_at_once() {
    each(&REMOTE_CACHED[..1], |recorded| {
        for number in 0..5 {
            let directory = recorded.mounted.behind(&number.to_string());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("f"), number.to_string()).unwrap();
        }
        let names = |path: PathBuf| {
            let entries = fs::read_dir(path).unwrap().flatten();
            let names = entries.map(|entry| entry.path());
            names.collect::<Vec<_>>()
        };
        let mut directories = Vec::new();
        recorded.by(1, |mounted| directories = names(mounted.at.clone()));
        assert_eq!(directories.len(), 5);
        let first = recorded.by(5, |_| assert_eq!(names(directories[0].clone()).len(), 1));
        assert_eq!(first.get("opendir"), Some(&5), "{first:?}");
        let others = recorded.by(0, |_| {
            for directory in &directories[1..] {
                assert_eq!(names(directory.clone()), [directory.join("f")]);
            }
        });
        assert_eq!(others, expected([]), "they were read already");
        // A listing is reused until it is too old, or this mount changes something.
        let again = recorded.by(0, |_| assert_eq!(names(directories[2].clone()).len(), 1));
        assert!(!again.contains_key("opendir"), "{again:?}");
        let changed = recorded.by(2, |_| {
            File::create_new(directories[2].join("g")).unwrap();
            assert_eq!(names(directories[2].clone()).len(), 2);
        });
        assert!(changed.contains_key("opendir"), "{changed:?}");
    });
}

#[test]
fn a_page_at_a_random_place_brings_little_more_than_itself() {
    each(&REMOTE_CACHED[1..], |recorded| {
        fs::write(recorded.mounted.behind("f"), vec![3; 8 << 20]).unwrap();
        let asked = recorded.by(1, |mounted| {
            let file = File::open(mounted.path("f")).unwrap();
            // Each read is far from the previous one.
            for number in 1..16_u64 {
                let mut page = [0; 4096];
                let at = (number * 7 % 16) * (500 << 10);
                file.read_exact_at(&mut page, at).unwrap();
                assert_eq!(page, [3; 4096]);
            }
        });
        assert_eq!(asked.get("read"), Some(&15), "{asked:?}");
    });
}
