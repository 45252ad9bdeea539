//! Random changes on both sides of a mount, compared with the same changes in a plain
//! directory. One user changes files at the source; another, with access through their
//! group, changes them on the mount, where file descriptors stay open. Whatever is closed
//! or synchronised must be at the source, and an open must see it.
//!
//! The seed is printed; `USERFS_SEED` repeats it. `USERFS_OPERATIONS` sets the number of
//! operations over all settings.

use std::fs::{self, File};
use std::io::{Result, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use toll_testing::isolated;

use crate::mounts::common::{Mounted, REMOTE_SETTINGS, SETTINGS, Setting, assert_same, set_mode};
use crate::mounts::script::{Random, number_of, seed_of_now};
use crate::mounts::users::{GROUP, OTHER_USER, USER, as_user, each_of_user, put_shared};

const OPERATIONS: u64 = 4_000;
const FILES: usize = 3;
const HELD_MAX: usize = 4;
const LENGTH_MAX: usize = 200_000;
/// Length above which mode `blocks` changes a file in place.
const LONG: usize = 1_400_000;

fn at_source<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> T {
    as_user(OTHER_USER, OTHER_USER, work)
}

fn on_mount<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> T {
    as_user(USER, GROUP, work)
}

#[derive(Debug, Clone)]
enum Change {
    Overwrite(Vec<u8>),
    Append(Vec<u8>),
    Write(Vec<u8>, u64),
    Cut(u64),
    /// New content with the old length and modification time.
    Disguise(Vec<u8>),
}

impl Change {
    fn make(&self, path: &Path) -> Result<()> {
        match self {
            Self::Overwrite(content) => File::create(path)?.write_all(content),
            Self::Append(content) => File::options().append(true).open(path)?.write_all(content),
            Self::Write(content, at) => {
                let file = File::options().write(true).open(path)?;
                file.write_all_at(content, *at)
            }
            Self::Cut(length) => File::options().write(true).open(path)?.set_len(*length),
            Self::Disguise(content) => {
                let file = File::options().write(true).open(path)?;
                let mtime = file.metadata()?.modified()?;
                file.write_all_at(content, 0)?;
                file.set_modified(mtime)
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Overwrite(content) => format!("overwrite with {}", content.len()),
            Self::Append(content) => format!("append {}", content.len()),
            Self::Write(content, at) => format!("write {} at {at}", content.len()),
            Self::Cut(length) => format!("cut to {length}"),
            Self::Disguise(_) => "disguise".to_owned(),
        }
    }
}

/// A file descriptor on the mount, and one of the same file in the plain directory.
struct Held {
    file: usize,
    mounted: File,
    plain: File,
    is_append: bool,
}

struct Run<'a> {
    mounted: &'a Mounted,
    plain: TempDir,
    random: Random,
    held: Vec<Held>,
    log: Vec<String>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.log.len().saturating_sub(40);
            eprintln!("the last operations:\n  {}", self.log[last..].join("\n  "));
            eprintln!("the server said {:?}", self.mounted.said());
        }
    }
}

fn name(file: usize) -> String {
    format!("project/f{file}")
}

impl<'a> Run<'a> {
    fn new(mounted: &'a Mounted, seed: u64) -> Self {
        let plain = tempfile::tempdir().unwrap();
        set_mode(plain.path(), 0o755);
        for file in 0..FILES {
            for base in [&mounted.source, plain.path()] {
                put_shared(base, &name(file), b"first");
            }
        }
        Self {
            mounted,
            plain,
            random: Random(seed),
            held: Vec::new(),
            log: Vec::new(),
        }
    }

    fn behind(&self, file: usize) -> PathBuf {
        self.mounted.behind(&name(file))
    }

    fn expected(&self, file: usize) -> Vec<u8> {
        fs::read(self.plain.path().join(name(file))).unwrap()
    }

    fn content(&mut self) -> Vec<u8> {
        let length = match self.random.below(40) {
            0 => LONG,
            _ => 1 + self.random.below(LENGTH_MAX),
        };
        self.random.bytes(length)
    }

    fn change(&mut self, length: usize, is_disguised: bool) -> Change {
        let content = self.content();
        match self.random.below(5) {
            0 => Change::Overwrite(content),
            1 => Change::Append(content),
            // Within a second, SFTP shows a change only by the length.
            2 => Change::Write(
                content,
                1 + (length / 2) as u64 + u64::from(!is_disguised) * length as u64,
            ),
            3 => Change::Cut(1 + self.random.below(length) as u64),
            _ if is_disguised && length > 0 => Change::Disguise(self.random.bytes(length)),
            _ => Change::Append(content),
        }
    }

    fn step(&mut self) {
        let file = self.random.below(FILES);
        if self.random.below(4) == 0 {
            // The kernel may request attributes again, or not.
            std::thread::sleep(Duration::from_millis(self.random.below(12) as u64));
        }
        let what = match self.random.below(10) {
            0..3 => self.change_at_source(file),
            3..6 => self.change_on_mount(file),
            6 => self.hold(file),
            7 | 8 => self.write_held(),
            _ => self.drop_held(),
        };
        self.log.push(what);
        self.compare(file);
    }

    fn change_at_source(&mut self, file: usize) -> String {
        let length = self.expected(file).len();
        let change = self.change(length, !self.mounted.setting.is_remote);
        let paths = [self.behind(file), self.plain.path().join(name(file))];
        at_source(|| paths.iter().try_for_each(|path| change.make(path)));
        format!("at the source, {}: {}", name(file), change.name())
    }

    fn change_on_mount(&mut self, file: usize) -> String {
        let length = self.expected(file).len();
        let change = match self.change(length, true) {
            // Only the owner may set times.
            Change::Disguise(content) => Change::Overwrite(content),
            change => change,
        };
        let path = self.mounted.path(&name(file));
        on_mount(|| change.make(&path));
        change.make(&self.plain.path().join(name(file))).unwrap();
        format!("on the mount, {}: {}", name(file), change.name())
    }

    fn hold(&mut self, file: usize) -> String {
        if self.held.len() == HELD_MAX {
            return self.drop_held();
        }
        // Without a copy over SFTP, an append goes to the end known at open.
        let appends = self.mounted.setting.mode != "none" || !self.mounted.setting.is_remote;
        let is_append = appends && self.random.below(2) == 0;
        let mut options = File::options();
        let options = options.read(true).write(true).append(is_append);
        let path = self.mounted.path(&name(file));
        self.held.push(Held {
            file,
            mounted: on_mount(|| options.open(&path)),
            plain: options.open(self.plain.path().join(name(file))).unwrap(),
            is_append,
        });
        format!("hold {}, append: {is_append}", name(file))
    }

    fn write_held(&mut self) -> String {
        if self.held.is_empty() {
            return "nothing is held".to_owned();
        }
        let at = self.random.below(self.held.len());
        let content = self.content();
        let held = &mut self.held[at];
        let length = held.plain.metadata().unwrap().len();
        let offset = 1 + self.random.below(length as usize) as u64;
        for file in [&mut held.mounted, &mut held.plain] {
            if held.is_append {
                file.write_all(&content).unwrap()
            } else {
                file.write_all_at(&content, offset).unwrap()
            }
            file.sync_all().unwrap();
        }
        let (file, is_append) = (held.file, held.is_append);
        self.log.push(format!(
            "held {}: {} bytes, append: {is_append}, else at {offset}",
            name(file),
            content.len()
        ));
        self.compare(file);
        "written".to_owned()
    }

    fn drop_held(&mut self) -> String {
        if self.held.is_empty() {
            return "nothing is held".to_owned();
        }
        let at = self.random.below(self.held.len());
        let held = self.held.swap_remove(at);
        format!("let go of {}", name(held.file))
    }

    fn compare(&mut self, file: usize) {
        let (expected, name) = (self.expected(file), name(file));
        let what = format!("{name}, {}", self.log.last().unwrap());
        let behind = fs::read(self.behind(file)).unwrap();
        assert_same(&behind, &expected, &format!("at the source, {what}"));
        if self.random.below(2) == 0 {
            let read = on_mount(|| fs::read(self.mounted.path(&name)));
            assert_same(&read, &expected, &format!("on the mount, {what}"));
        }
    }
}

fn agree(settings: &[Setting]) {
    let seed = number_of("USERFS_SEED").unwrap_or_else(seed_of_now);
    let count = number_of("USERFS_OPERATIONS").unwrap_or(OPERATIONS) / 7;
    let brief = settings.iter().map(|setting| Setting {
        lifetime_ms: 5,
        ..setting.clone()
    });
    each_of_user(&brief.collect::<Vec<_>>(), |mounted| {
        eprintln!("{count} operations with USERFS_SEED={seed}");
        let mut run = Run::new(mounted, seed);
        for _ in 0..count {
            run.step();
        }
        run.held.clear();
        (0..FILES).for_each(|file| run.compare(file));
        drop(run);
        assert!(mounted.kept().is_empty(), "{:?}", mounted.said());
    });
}

#[test]
fn changes_on_both_sides_of_a_local_source_agree_with_a_directory() {
    isolated(|| {
        agree(&SETTINGS[..4]);
    });
}

#[test]
fn changes_on_both_sides_over_sftp_agree_with_a_directory() {
    isolated(|| {
        agree(&[&REMOTE_SETTINGS[..2], &REMOTE_SETTINGS[3..4]].concat());
    });
}
