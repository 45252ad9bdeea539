//! Conversions between `fuser`'s types and the source's plain data.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileType, TimeOrNow};

use crate::source::{Kind, SetTime, Timespec};

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

/// Undoes a conversion of `fuser`. The kernel counts times before 1970 in negative
/// whole seconds plus positive nanoseconds, but `fuser` subtracts the nanoseconds
/// as well.
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

#[cfg(test)]
mod tests;
