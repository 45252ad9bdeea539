//! Conversions between `fuser`'s types and the source's plain data.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo, TimeOrNow};

use crate::mount::NodeAttributes;
use crate::source::{Error, Kind, SetTime, Timespec};

/// Best transfer size that `stat` reports, which is the size of one request.
const BLOCK_BYTES: u32 = 128 << 10;
/// Generation of every inode number. It is always the same, because inode numbers are
/// never reused.
pub(super) const NEVER_REUSED: Generation = Generation(0);

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

pub(super) fn system_time(time: Timespec) -> SystemTime {
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = if time.tv_sec < 0 {
        UNIX_EPOCH - seconds
    } else {
        UNIX_EPOCH + seconds
    };
    whole + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Undoes a conversion of `fuser`. For times before 1970, the kernel uses negative
/// whole seconds plus positive nanoseconds, but `fuser` also subtracts the nanoseconds.
pub(super) fn time(moment: SystemTime) -> Timespec {
    let (distance, is_before) = match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => (after, false),
        Err(before) => (before.duration(), true),
    };
    let seconds = i64::try_from(distance.as_secs()).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: if is_before { -seconds } else { seconds },
        tv_nsec: distance.subsec_nanos().into(),
    }
}

pub(super) fn set_time(change: TimeOrNow) -> SetTime {
    match change {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(moment) => SetTime::At(time(moment)),
    }
}

pub(super) fn attributes(found: &NodeAttributes) -> FileAttr {
    let attributes = &found.attributes;
    FileAttr {
        ino: INodeNo(found.ino),
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
        // FUSE and the kernel have 32 bits for a device number.
        rdev: attributes.device_number as u32,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

#[cfg(test)]
mod tests;
