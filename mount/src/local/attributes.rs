//! Conversions between the results of system calls and the source's plain data.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, Gid, Mode, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps, UTIME_NOW,
    UTIME_OMIT, Uid, makedev,
};

use super::descriptor::by_descriptor;
use crate::source::{Attributes, Identity, Kind, SetAttributes, SetTime};

/// Returns the attributes of a name in a directory, or of the descriptor's own file if
/// the name is empty. Does not follow a symbolic link in the last component.
pub(super) fn look(at: impl AsFd, name: &OsStr) -> rustix::io::Result<Attributes> {
    let how = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(attributes_of(&rustix::fs::statx(at, name, how, wanted)?))
}

pub(super) fn look_at(file: impl AsFd) -> rustix::io::Result<Attributes> {
    look(file, OsStr::new(""))
}

fn attributes_of(stat: &Statx) -> Attributes {
    let at = |time: StatxTimestamp| Timespec {
        tv_sec: time.tv_sec,
        tv_nsec: time.tv_nsec.into(),
    };
    let mode = u32::from(stat.stx_mode);
    Attributes {
        kind: Kind::of_mode(mode).unwrap_or(Kind::File),
        mode: mode & 0o7777,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        size_bytes: stat.stx_size,
        blocks: stat.stx_blocks,
        links: stat.stx_nlink,
        device_number: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        atime: at(stat.stx_atime),
        mtime: at(stat.stx_mtime),
        ctime: at(stat.stx_ctime),
        identity: Some(Identity {
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            // The kernel leaves it 0 if the file system has no creation times.
            birth: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
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

/// Changes all attributes of an open file except its length. The descriptor may
/// have been opened with `O_PATH`.
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
