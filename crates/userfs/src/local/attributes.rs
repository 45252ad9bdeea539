//! Between what the system calls tell and the source's plain data.

use rustix::fs::{FileType, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use crate::source::{Attributes, Identity, Kind, SetTime, Time};

pub(super) fn kind_of(file_type: FileType) -> Option<Kind> {
    Some(match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::Unknown => return None,
    })
}

pub(super) fn file_type_of(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Pipe => FileType::Fifo,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharacterDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

fn time(seconds: i64, nanoseconds: u64) -> Time {
    Time {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
    }
}

#[expect(
    clippy::unnecessary_cast,
    reason = "the types of the fields differ between architectures"
)]
pub(super) fn attributes_of(stat: &Stat) -> Attributes {
    Attributes {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::File),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        device_number: stat.st_rdev,
        atime: time(stat.st_atime as i64, stat.st_atime_nsec as u64),
        mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
        ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        identity: Some(Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }),
    }
}

fn timespec(change: Option<SetTime>) -> Timespec {
    match change {
        None => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        Some(SetTime::Now) => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        },
        Some(SetTime::At(time)) => Timespec {
            tv_sec: time.seconds,
            tv_nsec: i64::from(time.nanoseconds),
        },
    }
}

pub(super) fn timestamps(atime: Option<SetTime>, mtime: Option<SetTime>) -> Timestamps {
    Timestamps {
        last_access: timespec(atime),
        last_modification: timespec(mtime),
    }
}
