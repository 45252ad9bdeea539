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

fn system_time(time: Time) -> SystemTime {
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = match time.seconds < 0 {
        true => UNIX_EPOCH - seconds,
        false => UNIX_EPOCH + seconds,
    };
    whole + Duration::from_nanos(u64::from(time.nanoseconds))
}

/// Of a time before 1970, which the kernel counts in whole seconds before and
/// nanoseconds after these, `fuser` makes a moment with the nanoseconds before
/// these, too. This takes it back.
fn time(moment: SystemTime) -> Time {
    let whole = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => Time {
            seconds: whole(after.as_secs()),
            nanoseconds: after.subsec_nanos(),
        },
        Err(before) => Time {
            seconds: -whole(before.duration().as_secs()),
            nanoseconds: before.duration().subsec_nanos(),
        },
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
        let at = |seconds, nanoseconds| Time {
            seconds,
            nanoseconds,
        };
        for there in [at(0, 0), at(1, 999_999_999), at(-5, 0), at(1 << 33, 7)] {
            assert_eq!(time(system_time(there)), there);
        }
        let half_before = UNIX_EPOCH - Duration::from_millis(500);
        assert_eq!(system_time(at(-1, 500_000_000)), half_before);
        // What `fuser` makes of one second before and a nanosecond after.
        assert_eq!(time(UNIX_EPOCH - Duration::new(1, 1)), at(-1, 1));
    }
}
