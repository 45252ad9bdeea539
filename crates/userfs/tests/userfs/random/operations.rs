//! The operations, each done to both.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use memmap2::MmapOptions;

use super::Random;
use super::model::{Descriptor, Model};
use crate::common::{Mounted, assert_same, await_no_temporaries, await_that};

const NAMES: [&str; 6] = ["a", "b", "c", "d/a", "d/b", "d/e/f"];
const OPEN_MAX: usize = 6;
/// Most files stay below this length.
const LENGTH_MAX: usize = 300_000;
/// Some get longer than what a copy holds in memory.
const LONG: usize = 1_400_000;
const LOG_LINES: usize = 60;

pub struct Run<'a> {
    mounted: &'a mut Mounted,
    random: Random,
    model: Model,
    open: Vec<(File, Descriptor)>,
    log: VecDeque<String>,
    steps: usize,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("after {} operations, the last ones:", self.steps);
            for line in &self.log {
                eprintln!("  {line}");
            }
            eprintln!("the server said {:?}", self.mounted.said());
        }
    }
}

impl<'a> Run<'a> {
    pub fn new(mounted: &'a mut Mounted, random: Random) -> Self {
        fs::create_dir_all(mounted.path("d/e")).unwrap();
        Self {
            mounted,
            random,
            model: Model::default(),
            open: Vec::new(),
            log: VecDeque::new(),
            steps: 0,
        }
    }

    fn note(&mut self, line: String) {
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(format!("{}: {line}", self.steps));
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(NAMES.len())]
    }

    fn length_max(&mut self) -> usize {
        match self.random.below(40) {
            0 => LONG,
            _ => LENGTH_MAX,
        }
    }

    /// One operation.
    pub fn step(&mut self) {
        self.steps += 1;
        match self.random.below(1000) {
            0..120 => self.open_one(),
            120..200 => self.close_one(),
            200..420 => self.write(),
            420..620 => self.read(),
            620..680 => self.truncate_open(),
            680..710 => self.truncate_name(),
            710..780 => self.write_mapped(),
            780..840 => self.read_mapped(),
            840..870 => self.rename(),
            870..895 => self.unlink(),
            895..910 => self.link(),
            910..930 => self.allocate(),
            930..960 => self.sync(),
            960..988 => self.look(),
            988..998 => self.settle(),
            _ => self.remount(),
        }
    }

    fn open_one(&mut self) {
        if self.open.len() == OPEN_MAX {
            return self.close_one();
        }
        let name = self.name();
        let (read, write) =
            [(true, true), (true, true), (true, false), (false, true)][self.random.below(4)];
        let creates = write && self.random.below(2) == 0;
        let truncates = write && self.random.below(4) == 0;
        let appends = write && !truncates && self.random.below(5) == 0;
        self.note(format!(
            "open {name} read {read} write {write} create {creates} truncate {truncates} append {appends}"
        ));
        let opened = File::options()
            .read(read)
            .write(write && !appends)
            .append(appends)
            .create(creates)
            .truncate(truncates)
            .open(self.mounted.path(name));
        let known = self.model.names.get(name).copied();
        let file = match (known, creates) {
            (Some(file), _) => file,
            (None, true) => self.model.create(name),
            (None, false) => {
                let error = opened.expect_err("there is no such file");
                assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
                return;
            }
        };
        if truncates {
            self.model.truncate(file, 0);
        }
        let descriptor = Descriptor {
            file,
            is_readable: read,
            is_writable: write,
            appends,
        };
        let opened = opened.unwrap();
        let same = self.open.iter().find(|(_, other)| other.file == file);
        if let Some((other, _)) = same {
            // Else two sets of pages would stand for one file.
            let number = |file: &File| file.metadata().unwrap().ino();
            assert_eq!(number(&opened), number(other), "open {name}");
        }
        self.open.push((opened, descriptor));
    }

    fn close_one(&mut self) {
        if self.open.is_empty() {
            return self.open_one();
        }
        let index = self.random.below(self.open.len());
        self.note(format!("close {index}"));
        drop(self.open.swap_remove(index));
    }

    /// The number of an open descriptor that is as wanted.
    fn any(&mut self, is_wanted: impl Fn(&Descriptor) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.open.len())
            .filter(|index| is_wanted(&self.open[*index].1))
            .collect();
        match fitting.is_empty() {
            true => None,
            false => Some(fitting[self.random.below(fitting.len())]),
        }
    }

    fn write(&mut self) {
        let Some(index) = self.any(|open| open.is_writable) else {
            return self.open_one();
        };
        let max = self.length_max();
        let offset = self.random.below(max);
        let length = match self.random.below(4) {
            0 => self.random.below(100),
            1 => 4096,
            _ => self.random.below(70_000),
        };
        let length = length.min(max - offset);
        let bytes = self.random.bytes(length);
        let descriptor = self.open[index].1;
        let offset = match descriptor.appends {
            true => self.model.content(descriptor.file).len(),
            false => offset,
        };
        self.note(format!(
            "write {index} {offset}+{length} of file {}",
            descriptor.file
        ));
        self.open[index]
            .0
            .write_all_at(&bytes, offset as u64)
            .unwrap();
        self.model.write(descriptor.file, offset, &bytes);
    }

    fn read(&mut self) {
        let Some(index) = self.any(|open| open.is_readable) else {
            return self.open_one();
        };
        let (file, descriptor) = &self.open[index];
        let content = self.model.content(descriptor.file);
        let offset = self.random.below(content.len() + 5000);
        let length = self.random.below(150_000);
        let mut buffer = vec![0; length];
        let mut done = 0;
        loop {
            let count = file
                .read_at(&mut buffer[done..], (offset + done) as u64)
                .unwrap();
            done += count;
            if count == 0 || done == length {
                break;
            }
        }
        let expected = &content[offset.min(content.len())..(offset + length).min(content.len())];
        let line = format!("read {index} {offset}+{length} of file {}", descriptor.file);
        assert_same(&buffer[..done], expected, &line);
        self.note(line);
    }

    fn truncate_open(&mut self) {
        let Some(index) = self.any(|open| open.is_writable) else {
            return self.open_one();
        };
        let max = self.length_max();
        let length = self.random.below(max);
        let file = self.open[index].1.file;
        self.note(format!("ftruncate {index} {length} of file {file}"));
        self.open[index].0.set_len(length as u64).unwrap();
        self.model.truncate(file, length);
    }

    fn truncate_name(&mut self) {
        let name = self.name();
        let length = self.random.below(LENGTH_MAX);
        self.note(format!("truncate {name} {length}"));
        let path = std::ffi::CString::new(self.mounted.path(name).to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte and outlives the call.
        let outcome = unsafe { libc::truncate(path.as_ptr(), length as libc::off_t) };
        match self.model.names.get(name) {
            Some(file) => {
                assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
                self.model.truncate(*file, length);
            }
            None => assert_eq!(outcome, -1),
        }
    }

    /// A random part inside of a file.
    fn part(&mut self, length: usize) -> Option<(usize, usize)> {
        if length == 0 {
            return None;
        }
        let offset = self.random.below(length);
        let count = 1 + self.random.below((length - offset).min(50_000));
        Some((offset, count))
    }

    fn write_mapped(&mut self) {
        let Some(index) = self.any(|open| open.is_readable && open.is_writable) else {
            return self.open_one();
        };
        let file = self.open[index].1.file;
        let Some((offset, count)) = self.part(self.model.content(file).len()) else {
            return;
        };
        let bytes = self.random.bytes(count);
        self.note(format!(
            "map and write {index} {offset}+{count} of file {file}"
        ));
        let mut options = MmapOptions::new();
        let mapped = options.offset(offset as u64).len(count);
        // SAFETY: the range lies inside of the file, which nobody cuts meanwhile.
        let mut mapped = unsafe { mapped.map_mut(&self.open[index].0) }.unwrap();
        mapped.copy_from_slice(&bytes);
        self.model.write(file, offset, &bytes);
    }

    fn read_mapped(&mut self) {
        let Some(index) = self.any(|open| open.is_readable) else {
            return self.open_one();
        };
        let file = self.open[index].1.file;
        let Some((offset, count)) = self.part(self.model.content(file).len()) else {
            return;
        };
        let line = format!("map and read {index} {offset}+{count} of file {file}");
        let mut options = MmapOptions::new();
        let mapped = options.offset(offset as u64).len(count);
        // SAFETY: likewise.
        let found = unsafe { mapped.map(&self.open[index].0) }.unwrap();
        let expected = &self.model.content(file)[offset..offset + count];
        assert_same(&found, expected, &line);
        self.note(line);
    }

    fn rename(&mut self) {
        let (from, to) = (self.name(), self.name());
        self.note(format!("rename {from} {to}"));
        let outcome = fs::rename(self.mounted.path(from), self.mounted.path(to));
        assert_eq!(
            outcome.is_ok(),
            self.model.names.contains_key(from),
            "{outcome:?}"
        );
        if outcome.is_ok() {
            self.model.rename(from, to);
        }
    }

    fn unlink(&mut self) {
        let name = self.name();
        self.note(format!("unlink {name}"));
        let outcome = fs::remove_file(self.mounted.path(name));
        assert_eq!(
            outcome.is_ok(),
            self.model.names.remove(name).is_some(),
            "{outcome:?}"
        );
    }

    fn link(&mut self) {
        let (from, to) = (self.name(), self.name());
        self.note(format!("link {from} {to}"));
        let outcome = fs::hard_link(self.mounted.path(from), self.mounted.path(to));
        let known = self.model.names.get(from).copied();
        let can = known.is_some() && !self.model.names.contains_key(to);
        assert_eq!(outcome.is_ok(), can, "{outcome:?}");
        if let Some(file) = known.filter(|_| can) {
            self.model.names.insert(to.to_owned(), file);
        }
    }

    fn allocate(&mut self) {
        let Some(index) = self.any(|open| open.is_writable && !open.appends) else {
            return self.open_one();
        };
        let file = self.open[index].1.file;
        let (offset, length) = (self.random.below(LENGTH_MAX), 1 + self.random.below(60_000));
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        let is_hole = self.random.below(2) == 0;
        self.note(format!(
            "allocate {index} {offset}+{length} hole {is_hole} of file {file}"
        ));
        let flags = match is_hole {
            true => flags,
            false => rustix::fs::FallocateFlags::empty(),
        };
        let descriptor = &self.open[index].0;
        let done = rustix::fs::fallocate(descriptor, flags, offset as u64, length as u64);
        if self.mounted.setting.is_remote && self.mounted.setting.mode == "none" {
            // SFTP has no word for it.
            assert_eq!(done, Err(rustix::io::Errno::OPNOTSUPP));
            return;
        }
        done.unwrap();
        match is_hole {
            true => self.model.zero(file, offset, length),
            false => {
                let end = self.model.content(file).len().max(offset + length);
                self.model.truncate(file, end);
            }
        }
    }

    fn sync(&mut self) {
        let Some(index) = self.any(|_| true) else {
            return self.open_one();
        };
        self.note(format!("fsync {index}"));
        let (file, descriptor) = &self.open[index];
        file.sync_all().unwrap();
        // What fsync acknowledged is at the source.
        let names = &self.model.names;
        let name = names.iter().find(|(_, file)| **file == descriptor.file);
        if let Some((name, file)) = name {
            self.mounted.assert_behind(name, self.model.content(*file));
        }
    }

    /// Attributes by name and by descriptor.
    fn look(&mut self) {
        let name = self.name();
        self.note(format!("stat {name}"));
        let found = fs::metadata(self.mounted.path(name));
        match self.model.names.get(name) {
            None => assert!(found.is_err(), "{name} is there"),
            Some(file) => {
                let found = found.unwrap();
                assert_eq!(
                    found.len(),
                    self.model.content(*file).len() as u64,
                    "{name}"
                );
                assert_eq!(found.nlink(), self.model.links(*file) as u64, "{name}");
            }
        }
        if let Some(index) = self.any(|_| true) {
            let (file, descriptor) = &self.open[index];
            let expected = self.model.content(descriptor.file).len() as u64;
            assert_eq!(
                file.metadata().unwrap().len(),
                expected,
                "by descriptor {index}"
            );
        }
    }

    /// Closes all and compares the source and the mount with the model.
    pub fn settle(&mut self) {
        self.note("close all and compare".to_owned());
        self.open.clear();
        for name in NAMES {
            self.await_emptied(name);
            if let Some(file) = self.model.names.get(name) {
                let expected = self.model.content(*file);
                self.mounted.assert_behind(name, expected);
                self.mounted.assert_read(name, expected);
            } else {
                for path in [self.mounted.behind(name), self.mounted.path(name)] {
                    assert!(fs::read(path).is_err(), "{name} is there");
                }
            }
        }
        for name in ["", "d", "d/e"] {
            await_no_temporaries(&self.mounted.behind(name));
        }
    }

    /// Leaves one name of each file.
    fn separate(&mut self) {
        for name in NAMES {
            let file = self.model.names.get(name).copied();
            if file.is_some_and(|file| self.model.links(file) > 1) {
                self.note(format!("unlink {name}"));
                fs::remove_file(self.mounted.path(name)).unwrap();
                self.model.names.remove(name);
            }
        }
    }

    /// A file that was opened to be overwritten, and was not, is empty at the
    /// source shortly after its last close and not before.
    fn await_emptied(&self, name: &str) {
        let file = self.model.names.get(name);
        if file.is_none_or(|file| !self.model.content(*file).is_empty()) {
            return;
        }
        await_that("an empty file", || {
            fs::metadata(self.mounted.behind(name)).is_ok_and(|found| found.len() == 0)
        });
    }

    fn remount(&mut self) {
        self.settle();
        if self.mounted.setting.is_remote {
            // A mount over SFTP knows only of the hard links that it made.
            self.separate();
        }
        self.note("unmount and mount".to_owned());
        self.mounted.unmount_and_mount();
    }
}
