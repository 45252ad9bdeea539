//! Between `fuser`'s types and the source's plain data.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileType, TimeOrNow};

use crate::source::{Kind, SetTime, Time};

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

pub(super) fn system_time(time: Time) -> SystemTime {
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
pub(super) fn time(moment: SystemTime) -> Time {
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
