//! Between what the system calls tell and the source's plain data.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Gid, Mode, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};

use super::by_descriptor;
use crate::source::{Attributes, Identity, Kind, SetAttributes, SetTime, Time};

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
        kind: Kind::of_mode(stat.st_mode).unwrap_or(Kind::File),
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
    let (tv_sec, tv_nsec) = match change {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::At(time)) => (time.seconds, time.nanoseconds.into()),
    };
    Timespec { tv_sec, tv_nsec }
}

/// Changes all of an open file but its length. The descriptor may be of the
/// kind `O_PATH`.
pub(super) fn change(file: impl AsFd, changes: &SetAttributes) -> rustix::io::Result<()> {
    let file = file.as_fd();
    if changes.uid.is_some() || changes.gid.is_some() {
        let (uid, gid) = (
            changes.uid.map(Uid::from_raw),
            changes.gid.map(Gid::from_raw),
        );
        rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = changes.mode {
        rustix::fs::chmod(by_descriptor(file), Mode::from_raw_mode(mode))?;
    }
    if changes.atime.is_some() || changes.mtime.is_some() {
        let times = Timestamps {
            last_access: timespec(changes.atime),
            last_modification: timespec(changes.mtime),
        };
        rustix::fs::utimensat(file, "", &times, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}
