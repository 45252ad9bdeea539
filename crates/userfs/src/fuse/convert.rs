//! Between `fuser`'s types and the source's plain data.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};

use crate::source::{Attributes, Error, Kind, SetTime, Time};

/// What `stat` tells as the best size of a transfer: one request's.
const BLOCK_BYTES: u32 = 128 << 10;

pub(super) fn errno(error: Error) -> Errno {
    Errno::from_i32(error.errno())
}

pub(super) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Pipe => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

/// The kind of file that the bits of a mode say, for `mknod`.
pub(super) fn kind_of_mode(mode: u32) -> Option<Kind> {
    Some(match mode & libc::S_IFMT {
        0 | libc::S_IFREG => Kind::File,
        libc::S_IFIFO => Kind::Pipe,
        libc::S_IFSOCK => Kind::Socket,
        libc::S_IFCHR => Kind::CharacterDevice,
        libc::S_IFBLK => Kind::BlockDevice,
        _ => return None,
    })
}

fn system_time(time: Time) -> SystemTime {
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = match time.seconds < 0 {
        true => UNIX_EPOCH - seconds,
        false => UNIX_EPOCH + seconds,
    };
    whole + Duration::from_nanos(u64::from(time.nanoseconds))
}

fn time(moment: SystemTime) -> Time {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => Time {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: after.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            let borrow = i64::from(before.subsec_nanos() > 0);
            Time {
                seconds: -i64::try_from(before.as_secs()).unwrap_or(i64::MAX) - borrow,
                nanoseconds: (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000,
            }
        }
    }
}

pub(super) fn set_time(change: TimeOrNow) -> SetTime {
    match change {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(moment) => SetTime::At(time(moment)),
    }
}

pub(super) fn file_attributes(ino: u64, attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: attributes.size_bytes,
        blocks: attributes.blocks,
        atime: system_time(attributes.atime),
        mtime: system_time(attributes.mtime),
        ctime: system_time(attributes.ctime),
        crtime: UNIX_EPOCH,
        kind: file_type(attributes.kind),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        // FUSE has 32 bits for it, as the kernel has.
        rdev: attributes.device_number as u32,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_and_nanoseconds_come_through() {
        for (seconds, nanoseconds) in [(0, 0), (1, 999_999_999), (-1, 1), (-5, 0), (1 << 33, 7)] {
            let there = Time {
                seconds,
                nanoseconds,
            };
            assert_eq!(time(system_time(there)), there);
        }
    }
}
