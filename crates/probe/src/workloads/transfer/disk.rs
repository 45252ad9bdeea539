//! Counts what the disk below a file has written, from its driver's statistics.
//!
//! `getrusage` and `/proc/self/io` count pages when they become dirty, so they
//! show neither when the kernel writes them nor in how many requests.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{major, minor};

/// Bytes of a sector in `/sys/dev/block/*/stat`, whatever the disk's own sector
/// size.
const SECTOR_BYTES: u64 = 512;

pub struct Disk {
    statistics: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Completed requests, after the kernel has merged adjacent ones.
    pub requests: u64,
    pub bytes: u64,
}

impl Disk {
    /// Returns the disk of a file; `None` for a file system without one, such
    /// as tmpfs.
    pub fn containing(file: &File) -> Option<Self> {
        let device = file.metadata().ok()?.dev();
        let name = format!("{}:{}", major(device), minor(device));
        let statistics = PathBuf::from("/sys/dev/block").join(name).join("stat");
        statistics.exists().then_some(Self { statistics })
    }

    /// Returns what the disk has written since it appeared; `None` if it does
    /// not report that.
    pub fn written(&self) -> Option<Written> {
        parse(&std::fs::read_to_string(&self.statistics).ok()?)
    }
}

impl Written {
    pub fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// Parses fields 5 and 7 of Documentation/block/stat.rst: completed writes and
/// their sectors.
fn parse(statistics: &str) -> Option<Written> {
    let mut fields = statistics.split_whitespace().skip(4);
    let requests = fields.next()?.parse().ok()?;
    let sectors: u64 = fields.nth(1)?.parse().ok()?;
    Some(Written {
        requests,
        bytes: sectors * SECTOR_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_the_fifth_and_the_seventh_field() {
        let line = "    1221       14    89266      100       77       33     1904       21        0 \
                    136      121        0        0        0        0        0        0\n";
        let written = parse(line).unwrap();
        assert_eq!((written.requests, written.bytes), (77, 1904 * 512));
        assert_eq!(parse("1 2 3"), None);
        let before = Written {
            requests: 70,
            bytes: 512,
        };
        let since = written.since(before);
        assert_eq!((since.requests, since.bytes), (7, 1903 * 512));
    }

    #[test]
    fn memory_is_no_disk() {
        let file =
            File::from(rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        assert!(Disk::containing(&file).is_none());
    }
}
