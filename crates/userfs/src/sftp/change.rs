//! Changes of attributes, in the steps in which a server does them rightly.
//!
//! OpenSSH's server does what one request asks for in the order length,
//! permissions, times, owner, and goes on after an error. A change of owner
//! clears set-user-id, so it is a request of its own and goes first, and what
//! follows waits for it: a file that could not be given away must not become
//! set-user-id.

use std::time::{SystemTime, UNIX_EPOCH};

use super::stat::{Stat, seconds};
use crate::source::{SetAttributes, SetTime};

/// Whether what a file is now must be known: the protocol sets both times or
/// none.
pub(super) fn needs_present(changes: &SetAttributes) -> bool {
    changes.atime.is_some() != changes.mtime.is_some()
}

/// The requests that make the changes, in their order.
pub(super) fn steps(changes: &SetAttributes, now: &Stat) -> Vec<Stat> {
    let mut steps = Vec::new();
    if changes.uid.is_some() || changes.gid.is_some() {
        steps.push(Stat {
            owner: Some((
                changes.uid.unwrap_or(u32::MAX),
                changes.gid.unwrap_or(u32::MAX),
            )),
            ..Stat::default()
        });
    }
    let (accessed, modified) = now.times.unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let present = since.map_or(0, |since| {
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    });
    let time = |set: Option<SetTime>, now: u32| match set {
        None => now,
        Some(SetTime::At(time)) => seconds(time),
        // The protocol has no word for the server's present; this host's is
        // the nearest that there is.
        Some(SetTime::Now) => present,
    };
    let has_times = changes.atime.is_some() || changes.mtime.is_some();
    let rest = Stat {
        size_bytes: changes.size_bytes,
        owner: None,
        permissions: changes.mode.map(|mode| mode & 0o7777),
        times: has_times.then(|| (time(changes.atime, accessed), time(changes.mtime, modified))),
    };
    if !rest.is_empty() {
        steps.push(rest);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Time;

    #[test]
    fn the_owner_changes_before_the_permissions() {
        let changes = SetAttributes {
            mode: Some(0o4755),
            uid: Some(7),
            ..SetAttributes::default()
        };
        let steps = steps(&changes, &Stat::default());
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].owner, Some((7, u32::MAX)));
        assert_eq!(steps[1].permissions, Some(0o4755));
    }

    #[test]
    fn a_time_that_is_not_changed_stays_what_it_is() {
        let changes = SetAttributes {
            mtime: Some(SetTime::At(Time {
                seconds: 50,
                nanoseconds: 0,
            })),
            ..SetAttributes::default()
        };
        assert!(needs_present(&changes));
        let now = Stat {
            times: Some((10, 20)),
            ..Stat::default()
        };
        assert_eq!(steps(&changes, &now)[0].times, Some((10, 50)));
    }

    #[test]
    fn no_change_is_no_step() {
        let changes = SetAttributes::default();
        assert!(!needs_present(&changes));
        assert_eq!(steps(&changes, &Stat::default()), []);
    }
}
