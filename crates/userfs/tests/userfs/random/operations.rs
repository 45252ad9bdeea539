//! The operations, each done to both.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use memmap2::MmapOptions;
use rustix::fs::{FallocateFlags, fallocate};

use super::Random;
use super::model::{Descriptor, Model};
use crate::common::{Mounted, assert_errno, assert_same, await_no_temporaries, await_that};

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
        let done = match self.random.below(1000) {
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
            988..998 => {
                self.settle();
                Some(())
            }
            _ => self.remount(),
        };
        if done.is_none() {
            // There was no descriptor that fits.
            self.open_one();
        }
    }

    fn open_one(&mut self) -> Option<()> {
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
        if known.is_none() && !creates {
            assert_errno(opened, libc::ENOENT);
            return Some(());
        }
        let file = known.unwrap_or_else(|| self.model.create(name));
        if truncates {
            self.model.truncate(file, 0);
        }
        let opened = opened.unwrap();
        let same = self.open.iter().find(|(_, other)| other.file == file);
        if let Some((other, _)) = same {
            // Else two sets of pages would stand for one file.
            let number = |file: &File| file.metadata().unwrap().ino();
            assert_eq!(number(&opened), number(other), "open {name}");
        }
        let descriptor = Descriptor {
            file,
            is_readable: read,
            is_writable: write,
            appends,
        };
        self.open.push((opened, descriptor));
        Some(())
    }

    fn close_one(&mut self) -> Option<()> {
        let index = self.any(|_| true)?;
        self.note(format!("close {index}"));
        drop(self.open.swap_remove(index));
        Some(())
    }

    /// The number of an open descriptor that is as wanted.
    fn any(&mut self, is_wanted: impl Fn(&Descriptor) -> bool) -> Option<usize> {
        let fitting = (0..self.open.len()).filter(|index| is_wanted(&self.open[*index].1));
        let fitting: Vec<usize> = fitting.collect();
        (!fitting.is_empty()).then(|| fitting[self.random.below(fitting.len())])
    }

    fn write(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_writable)?;
        let max = self.length_max();
        let offset = self.random.below(max);
        let length = match self.random.below(4) {
            0 => self.random.below(100),
            1 => 4096,
            _ => self.random.below(70_000),
        };
        let bytes = self.random.bytes(length.min(max - offset));
        let Descriptor { file, appends, .. } = self.open[index].1;
        let offset = match appends {
            true => self.model.content(file).len(),
            false => offset,
        };
        let length = bytes.len();
        self.note(format!("write {index} {offset}+{length} of file {file}"));
        self.open[index]
            .0
            .write_all_at(&bytes, offset as u64)
            .unwrap();
        self.model.write(file, offset, &bytes);
        Some(())
    }

    fn read(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_readable)?;
        let (open, descriptor) = &self.open[index];
        let content = self.model.content(descriptor.file);
        let offset = self.random.below(content.len() + 5000);
        let length = self.random.below(150_000);
        let mut buffer = vec![0; length];
        let mut done = 0;
        loop {
            let at = (offset + done) as u64;
            let count = open.read_at(&mut buffer[done..], at).unwrap();
            done += count;
            if count == 0 || done == length {
                break;
            }
        }
        let expected = &content[offset.min(content.len())..(offset + length).min(content.len())];
        let line = format!("read {index} {offset}+{length} of file {}", descriptor.file);
        assert_same(&buffer[..done], expected, &line);
        self.note(line);
        Some(())
    }

    fn truncate_open(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_writable)?;
        let max = self.length_max();
        let length = self.random.below(max);
        let file = self.open[index].1.file;
        self.note(format!("ftruncate {index} {length} of file {file}"));
        self.open[index].0.set_len(length as u64).unwrap();
        self.model.truncate(file, length);
        Some(())
    }

    fn truncate_name(&mut self) -> Option<()> {
        let name = self.name();
        let length = self.random.below(LENGTH_MAX);
        self.note(format!("truncate {name} {length}"));
        let path = std::ffi::CString::new(self.mounted.path(name).to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte and outlives the call.
        let outcome = unsafe { libc::truncate(path.as_ptr(), length as libc::off_t) };
        let file = self.model.names.get(name).copied();
        let error = std::io::Error::last_os_error();
        assert_eq!(outcome == 0, file.is_some(), "{error}");
        file.inspect(|file| self.model.truncate(*file, length));
        Some(())
    }

    /// A random part inside of a file, as a mapping.
    fn mapping(&mut self, file: usize) -> Option<(usize, usize, MmapOptions)> {
        let length = self.model.content(file).len();
        if length == 0 {
            return None;
        }
        let offset = self.random.below(length);
        let count = 1 + self.random.below((length - offset).min(50_000));
        let mut options = MmapOptions::new();
        options.offset(offset as u64).len(count);
        Some((offset, count, options))
    }

    fn write_mapped(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_readable && open.is_writable)?;
        let file = self.open[index].1.file;
        let Some((offset, count, mapping)) = self.mapping(file) else {
            return Some(());
        };
        let bytes = self.random.bytes(count);
        self.note(format!(
            "map and write {index} {offset}+{count} of file {file}"
        ));
        // SAFETY: the range lies inside of the file, which nobody cuts meanwhile.
        let mut mapped = unsafe { mapping.map_mut(&self.open[index].0) }.unwrap();
        mapped.copy_from_slice(&bytes);
        self.model.write(file, offset, &bytes);
        Some(())
    }

    fn read_mapped(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_readable)?;
        let file = self.open[index].1.file;
        let Some((offset, count, mapping)) = self.mapping(file) else {
            return Some(());
        };
        let line = format!("map and read {index} {offset}+{count} of file {file}");
        // SAFETY: likewise.
        let found = unsafe { mapping.map(&self.open[index].0) }.unwrap();
        let expected = &self.model.content(file)[offset..offset + count];
        assert_same(&found, expected, &line);
        self.note(line);
        Some(())
    }

    fn rename(&mut self) -> Option<()> {
        let (from, to) = (self.name(), self.name());
        self.note(format!("rename {from} {to}"));
        let outcome = fs::rename(self.mounted.path(from), self.mounted.path(to));
        let is_there = self.model.names.contains_key(from);
        assert_eq!(outcome.is_ok(), is_there, "{outcome:?}");
        if is_there {
            self.model.rename(from, to);
        }
        Some(())
    }

    fn unlink(&mut self) -> Option<()> {
        let name = self.name();
        self.note(format!("unlink {name}"));
        let outcome = fs::remove_file(self.mounted.path(name));
        let known = self.model.names.remove(name);
        assert_eq!(outcome.is_ok(), known.is_some(), "{outcome:?}");
        Some(())
    }

    fn link(&mut self) -> Option<()> {
        let (from, to) = (self.name(), self.name());
        self.note(format!("link {from} {to}"));
        let outcome = fs::hard_link(self.mounted.path(from), self.mounted.path(to));
        let known = self.model.names.get(from).copied();
        let file = known.filter(|_| !self.model.names.contains_key(to));
        assert_eq!(outcome.is_ok(), file.is_some(), "{outcome:?}");
        if let Some(file) = file {
            self.model.names.insert(to.to_owned(), file);
        }
        Some(())
    }

    fn allocate(&mut self) -> Option<()> {
        let index = self.any(|open| open.is_writable && !open.appends)?;
        let file = self.open[index].1.file;
        let (offset, length) = (self.random.below(LENGTH_MAX), 1 + self.random.below(60_000));
        let is_hole = self.random.below(2) == 0;
        self.note(format!(
            "allocate {index} {offset}+{length} hole {is_hole} of file {file}"
        ));
        let flags = match is_hole {
            true => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            false => FallocateFlags::empty(),
        };
        let done = fallocate(&self.open[index].0, flags, offset as u64, length as u64);
        if self.mounted.setting.is_remote && self.mounted.setting.mode == "none" {
            // SFTP has no word for it.
            assert_eq!(done, Err(rustix::io::Errno::OPNOTSUPP));
            return Some(());
        }
        done.unwrap();
        let end = self.model.content(file).len().max(offset + length);
        match is_hole {
            true => self.model.zero(file, offset, length),
            false => self.model.truncate(file, end),
        }
        Some(())
    }

    fn sync(&mut self) -> Option<()> {
        let index = self.any(|_| true)?;
        self.note(format!("fsync {index}"));
        let (open, descriptor) = &self.open[index];
        open.sync_all().unwrap();
        // What fsync acknowledged is at the source.
        let mut names = self.model.names.iter();
        if let Some((name, file)) = names.find(|(_, file)| **file == descriptor.file) {
            self.mounted.assert_behind(name, self.model.content(*file));
        }
        Some(())
    }

    /// Attributes by name and by descriptor.
    fn look(&mut self) -> Option<()> {
        let name = self.name();
        self.note(format!("stat {name}"));
        let found = fs::metadata(self.mounted.path(name)).ok();
        let found = found.map(|found| (found.len(), found.nlink()));
        let length = |file| self.model.content(file).len() as u64;
        let links = |file| self.model.links(file) as u64;
        let file = self.model.names.get(name).copied();
        assert_eq!(
            found,
            file.map(|file| (length(file), links(file))),
            "{name}"
        );
        let index = self.any(|_| true)?;
        let (open, descriptor) = &self.open[index];
        let expected = self.model.content(descriptor.file).len() as u64;
        assert_eq!(
            open.metadata().unwrap().len(),
            expected,
            "by descriptor {index}"
        );
        Some(())
    }

    /// Closes all and compares the source and the mount with the model.
    pub fn settle(&mut self) {
        self.note("close all and compare".to_owned());
        self.open.clear();
        for name in NAMES {
            if let Some(file) = self.model.names.get(name) {
                let expected = self.model.content(*file);
                // A file that was opened to be overwritten, and was not, is empty at
                // the source shortly after its last close and not before.
                let is_awaited = |length| expected.is_empty() && length > 0;
                await_that("an empty file", || {
                    !is_awaited(fs::metadata(self.mounted.behind(name)).unwrap().len())
                });
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

    fn remount(&mut self) -> Option<()> {
        self.settle();
        if self.mounted.setting.is_remote {
            // A mount over SFTP knows only of the hard links that it made: one name
            // of each file is left.
            for name in NAMES {
                let file = self.model.names.get(name).copied();
                if file.is_some_and(|file| self.model.links(file) > 1) {
                    self.note(format!("unlink {name}"));
                    fs::remove_file(self.mounted.path(name)).unwrap();
                    self.model.names.remove(name);
                }
            }
        }
        self.note("unmount and mount".to_owned());
        self.mounted.unmount_and_mount();
        Some(())
    }
}
