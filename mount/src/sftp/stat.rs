//! The protocol's attributes of a file, and their conversion for a
//! [`Source`](crate::source::Source).
//!
//! Version 3 has times in whole seconds from 1970 to 2106, and knows neither
//! the number of links, nor the inode, nor the time of the last change of
//! the inode.

use super::packet::{Decoder, Encoder, Malformed};
use crate::source::{Attributes, Kind, Timespec};

/// Flags of the fields that are present (the draft, section 5).
mod flag {
    pub const SIZE: u32 = 0x0000_0001;
    pub const OWNER: u32 = 0x0000_0002;
    pub const PERMISSIONS: u32 = 0x0000_0004;
    pub const TIMES: u32 = 0x0000_0008;
    pub const EXTENDED: u32 = 0x8000_0000;
}

const EXTENDED_MAX: u32 = 1024;

/// Attributes in the form of the protocol. Each may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stat {
    pub size_bytes: Option<u64>,
    /// User and group. `u32::MAX` leaves a number unchanged: OpenSSH's server passes
    /// both to `chown(2)`, where it means -1.
    pub owner: Option<(u32, u32)>,
    /// `st_mode`, including the file type if the server sends it.
    pub permissions: Option<u32>,
    /// Access and modification time, in seconds since 1970.
    pub times: Option<(u32, u32)>,
}

impl Stat {
    pub fn of_mode(mode: u32) -> Self {
        Self {
            permissions: Some(mode & 0o7777),
            ..Self::default()
        }
    }

    pub fn encode(&self, packet: &mut Encoder<'_>) {
        let fields = [
            (self.size_bytes.is_some(), flag::SIZE),
            (self.owner.is_some(), flag::OWNER),
            (self.permissions.is_some(), flag::PERMISSIONS),
            (self.times.is_some(), flag::TIMES),
        ];
        let there = fields.iter().filter(|(is_there, _)| *is_there);
        packet.u32(there.map(|(_, flag)| flag).sum());
        if let Some(size_bytes) = self.size_bytes {
            packet.u64(size_bytes);
        }
        if let Some((uid, gid)) = self.owner {
            packet.u32(uid).u32(gid);
        }
        if let Some(permissions) = self.permissions {
            packet.u32(permissions);
        }
        if let Some((accessed, modified)) = self.times {
            packet.u32(accessed).u32(modified);
        }
    }

    pub fn decode(packet: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let flags = packet.u32()?;
        let has = |flag: u32| flags & flag != 0;
        let mut stat = Self::default();
        if has(flag::SIZE) {
            stat.size_bytes = Some(packet.u64()?);
        }
        if has(flag::OWNER) {
            stat.owner = Some((packet.u32()?, packet.u32()?));
        }
        if has(flag::PERMISSIONS) {
            stat.permissions = Some(packet.u32()?);
        }
        if has(flag::TIMES) {
            stat.times = Some((packet.u32()?, packet.u32()?));
        }
        if has(flag::EXTENDED) {
            let count = packet.u32()?;
            if count > EXTENDED_MAX {
                return Err("attributes with too many fields");
            }
            for _ in 0..count {
                packet.string()?;
                packet.string()?;
            }
        }
        Ok(stat)
    }

    /// Returns whether all attributes except the access time are equal.
    pub fn is_as(&self, other: &Self) -> bool {
        let times = self
            .times
            .map(|(accessed, _)| accessed)
            .zip(other.modified());
        let other = Self { times, ..*other };
        *self == other
    }

    pub fn modified(&self) -> Option<u32> {
        self.times.map(|(_, modified)| modified)
    }

    pub fn mode(&self) -> Option<u32> {
        self.permissions.map(|bits| bits & 0o7777)
    }

    pub fn kind(&self) -> Option<Kind> {
        Kind::of_mode(self.permissions?)
    }

    /// Converts to the attributes of a source. `None` if the file type is missing, or
    /// if the length is larger than a file can be.
    pub fn attributes(&self) -> Option<Attributes> {
        let kind = self.kind()?;
        let size_bytes = self.size_bytes.unwrap_or(0);
        i64::try_from(size_bytes).ok()?;
        let (uid, gid) = self.owner.unwrap_or((0, 0));
        let (accessed, modified) = self.times.unwrap_or((0, 0));
        let at = |seconds: u32| Timespec {
            tv_sec: i64::from(seconds),
            tv_nsec: 0,
        };
        Some(Attributes {
            kind,
            mode: self.mode()?,
            uid,
            gid,
            size_bytes,
            blocks: size_bytes.div_ceil(512),
            links: 1,
            device_number: 0,
            atime: at(accessed),
            mtime: at(modified),
            ctime: at(modified),
            identity: None,
        })
    }
}

/// Converts a time to seconds of the protocol. A time before 1970 or after 2106 becomes
/// the nearest possible time.
pub(super) fn seconds(time: Timespec) -> u32 {
    u32::try_from(time.tv_sec.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(stat: &Stat) -> Vec<u8> {
        let mut buffer = Vec::new();
        let mut packet = Encoder::begin(&mut buffer, 0);
        stat.encode(&mut packet);
        packet.finish(0);
        buffer.split_off(5)
    }

    proptest! {
        #[test]
        fn attributes_that_were_sent_are_what_is_read(
            size_bytes: Option<u64>,
            owner: Option<(u32, u32)>,
            permissions: Option<u32>,
            times: Option<(u32, u32)>,
        ) {
            let stat = Stat { size_bytes, owner, permissions, times };
            let bytes = encoded(&stat);
            let mut packet = Decoder::new(&bytes);
            prop_assert_eq!(Stat::decode(&mut packet), Ok(stat));
            prop_assert!(packet.is_empty());
        }
    }
}
