//! Between what the system calls tell and the source's plain data.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Gid, Mode, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};

use super::by_descriptor;
use crate::source::{Attributes, Identity, Kind, SetAttributes, SetTime};

#[expect(
    clippy::unnecessary_cast,
    reason = "the types of the fields differ between architectures"
)]
pub(super) fn attributes_of(stat: &Stat) -> Attributes {
    let at = |tv_sec, tv_nsec| Timespec {
        tv_sec: tv_sec as i64,
        tv_nsec: tv_nsec as i64,
    };
    Attributes {
        kind: Kind::of_mode(stat.st_mode).unwrap_or(Kind::File),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        device_number: stat.st_rdev,
        atime: at(stat.st_atime, stat.st_atime_nsec),
        mtime: at(stat.st_mtime, stat.st_mtime_nsec),
        ctime: at(stat.st_ctime, stat.st_ctime_nsec),
        identity: Some(Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }),
    }
}

fn timespec(change: Option<SetTime>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match change {
        None => special(UTIME_OMIT),
        Some(SetTime::Now) => special(UTIME_NOW),
        Some(SetTime::At(time)) => time,
    }
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
