//! Maps users and groups of a server to the numbers of this machine and back.
//!
//! A person has different numbers on different machines. A mount runs as some user at
//! the server. Files of that user and group are shown as files of the mounting user and
//! that user's group. All other numbers stay unchanged.

use crate::source::{Owner, Source};

/// Number shown for a server user who has the mounting user's number here but is
/// somebody else. It is -2, which no user has, as in NFS. The number of `nobody` would
/// give that user rights with `--allow-other`.
const NOBODY: u32 = u32::MAX - 1;

/// Mapping of a user number or of a group number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    here: u32,
    there: u32,
}

impl Pair {
    fn shown(self, number: u32) -> u32 {
        match number {
            number if number == self.there => self.here,
            number if number == self.here => NOBODY,
            number => number,
        }
    }

    fn sent(self, number: u32) -> u32 {
        if number == self.here {
            self.there
        } else {
            number
        }
    }
}

/// Mapping of the owners that the mount shows and of those that it sends to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdMap {
    uid: Pair,
    gid: Pair,
}

impl IdMap {
    /// Maps the user that a source runs as to the user of this process. `None` if users
    /// have the same numbers at the source as here, or if the source's user is unknown.
    pub fn from_source(source: &dyn Source) -> Option<Self> {
        let there = source.user()?;
        let here = Owner {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        };
        Some(Self::new(here, there))
    }

    fn new(here: Owner, there: Owner) -> Self {
        let pair = |here, there| Pair { here, there };
        Self {
            uid: pair(here.uid, there.uid),
            gid: pair(here.gid, there.gid),
        }
    }

    /// Returns an owner as the mount shows it.
    pub fn shown(self, owner: Owner) -> Owner {
        Owner {
            uid: self.uid.shown(owner.uid),
            gid: self.gid.shown(owner.gid),
        }
    }

    pub fn sent_uid(self, uid: u32) -> u32 {
        self.uid.sent(uid)
    }

    pub fn sent_gid(self, gid: u32) -> u32 {
        self.gid.sent(gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_the_server_is_shown_as_the_one_who_mounted_it_and_nobody_else_is() {
        let owner = |uid, gid| Owner { uid, gid };
        let map = IdMap::new(owner(1000, 100), owner(2001, 50));
        for (there, here) in [
            (owner(2001, 50), owner(1000, 100)),
            (owner(0, 0), owner(0, 0)),
            (owner(1000, 100), owner(NOBODY, NOBODY)),
            (owner(50, 2001), owner(50, 2001)),
        ] {
            assert_eq!(map.shown(there), here);
        }
        assert_eq!((map.sent_uid(1000), map.sent_gid(100)), (2001, 50));
        assert_eq!((map.sent_uid(7), map.sent_gid(1000)), (7, 1000));
    }

    #[test]
    fn equal_numbers_stay_as_they_are() {
        let same = Owner { uid: 7, gid: 8 };
        let map = IdMap::new(same, same);
        assert_eq!(map.shown(same), same);
        assert_eq!((map.sent_uid(7), map.sent_gid(8)), (7, 8));
    }
}
