//! Requests that need more than a call and its outcome.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fuser::{
    Errno, FileHandle, FileType, INodeNo, ReplyAttr, ReplyCreate, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyStatfs, ReplyWrite, ReplyXattr,
};

use super::KernelCache;
use super::convert::{errno, file_attributes, file_type};
use super::filesystem::NEVER_REUSED;
use super::serve::{Server, without_flush};
use crate::cache::Mode;
use crate::mount::{Found, Listed, Opened};
use crate::source::{Result, Seek, SetAttributes};

/// What a listing says of a number that is not known yet: programs that need
/// it ask.
const INO_UNKNOWN: u64 = 0xffff_ffff;

pub(super) fn reply_entry(server: &Server, outcome: Result<Found>, reply: ReplyEntry) {
    match outcome {
        Ok(found) => reply.entry(&server.lifetime, &server.attr(&found), NEVER_REUSED),
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_empty(outcome: Result<()>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn reply_value(outcome: Result<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match outcome {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}

/// A write, but for its bytes.
pub(super) struct WriteTo {
    pub ino: u64,
    pub handle: u64,
    pub offset: u64,
    pub drops_privileges: bool,
    /// The kernel writes pages that somebody changed in memory.
    pub is_of_pages: bool,
    /// It is to be on the device when it returns (`O_DSYNC`, `O_SYNC`).
    pub is_durable: bool,
}

impl Server {
    /// Tells what a name leads to, for as long as that may be believed.
    pub fn look_up(&self, parent: u64, name: &OsStr, reply: ReplyEntry) {
        match self.volume.look_up_known(parent, name) {
            Ok((found, age)) => {
                let rest = self.lifetime.saturating_sub(age);
                reply.entry(&rest, &self.attr(&found), NEVER_REUSED);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Tells a file's attributes, likewise.
    pub fn attributes(&self, ino: u64, reply: ReplyAttr) {
        match self.volume.attributes_known(ino) {
            Ok((found, age)) => {
                let rest = self.lifetime.saturating_sub(age);
                reply.attr(&rest, &file_attributes(ino, &found));
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Changes attributes; `drops_privileges` if set-user-id has to go, too.
    pub fn change(
        &self,
        ino: u64,
        changes: &SetAttributes,
        is_open: bool,
        drops_privileges: bool,
        reply: ReplyAttr,
    ) {
        let volume = &self.volume;
        let outcome = match volume.set_attributes(ino, changes, is_open) {
            Ok(found) if drops_privileges && found.mode & 0o6000 != 0 => volume
                .drop_privileges(ino)
                .and_then(|()| volume.attributes(ino)),
            outcome => outcome,
        };
        match outcome {
            Ok(found) => reply.attr(&self.lifetime, &file_attributes(ino, &found)),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Tells of a file that was made and opened.
    pub fn reply_created(&self, (found, opened): (Found, Opened), reply: ReplyCreate) {
        let (attr, handle) = (self.attr(&found), FileHandle(opened.handle));
        let flags = self.open_flags(opened);
        let backing = self.backing(found.ino, |server| {
            let open = |descriptor: std::os::fd::BorrowedFd<'_>| reply.open_backing(descriptor);
            server.volume.with_descriptor(opened.handle, open)
        });
        let ttl = &self.lifetime;
        match backing {
            Some(backing) => {
                let flags = without_flush(flags);
                reply.created_passthrough(ttl, &attr, NEVER_REUSED, handle, flags, &backing);
            }
            None => reply.created(ttl, &attr, NEVER_REUSED, handle, flags),
        }
    }

    /// Writes and replies.
    pub fn write(&self, to: &WriteTo, data: &[u8], reply: ReplyWrite) {
        let WriteTo { handle, offset, .. } = *to;
        let may_end_later = self.writes_later() && !to.is_of_pages && !to.is_durable;
        let write = || {
            if to.drops_privileges {
                self.volume.drop_privileges(to.ino)?;
            }
            self.volume.write(handle, data, offset, may_end_later)?;
            // The kernel sees to it itself where it keeps pages.
            match to.is_durable && self.kernel == KernelCache::Direct {
                true => self.volume.sync(handle),
                false => Ok(()),
            }
        };
        match write() {
            // One request is at most some MiB.
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// A descriptor of a file is closed.
    pub fn flush(&self, handle: u64, reply: ReplyEmpty) {
        if self.mode == Mode::None && !self.writes_later() {
            // What was written is with the source already. The kernel still
            // writes its own pages before a close returns, and sends no such
            // request again after this answer (`fuse_flush`).
            return reply.error(Errno::ENOSYS);
        }
        reply_empty(self.volume.flush(handle), reply);
    }

    /// Removes a name.
    pub fn unlink(&self, parent: u64, name: &std::ffi::OsStr, reply: ReplyEmpty) {
        match self.volume.unlink(parent, name) {
            Ok(content) => {
                reply.ok();
                // Nobody waits for it any more.
                drop(content);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Tells where data or a hole begins.
    pub fn seek(&self, handle: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        if self.kernel == KernelCache::WriteBack {
            // The kernel has pages that the source has not; it then takes all
            // for data, up to the length that it knows.
            return reply.error(Errno::ENOSYS);
        }
        let what = match whence {
            libc::SEEK_DATA => Seek::Data,
            libc::SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        match self.volume.seek(handle, offset, what) {
            Ok(found) => reply.offset(found.cast_signed()),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Lists names.
    pub fn list(&self, handle: u64, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.volume.list(handle, offset, |entry| {
            let kind = entry.kind.map_or(FileType::RegularFile, file_type);
            let ino = self.volume.number(entry).unwrap_or(INO_UNKNOWN);
            reply.add(INodeNo(ino), entry.offset, kind, entry.name)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Lists names with attributes.
    pub fn list_plus(&self, handle: u64, offset: u64, mut reply: ReplyDirectoryPlus) {
        let add = |entry: &Listed<'_>| self.add_plus(entry, &mut reply);
        match self.volume.list(handle, offset, add) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Tells of free space.
    pub fn space(&self, reply: ReplyStatfs) {
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        match self.volume.space() {
            Ok(space) => reply.statfs(
                space.f_blocks,
                space.f_bfree,
                space.f_bavail,
                space.f_files,
                space.f_ffree,
                narrow(space.f_frsize),
                narrow(space.f_namemax),
                narrow(space.f_frsize),
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Tells the value of an extended attribute.
    pub fn extended(&self, ino: u64, name: &std::ffi::OsStr, size: u32, reply: ReplyXattr) {
        if !self.has_extended() {
            return reply.error(Errno::ENOSYS);
        }
        reply_value(self.volume.extended(ino, name), size, reply);
    }

    /// Tells the names of all extended attributes.
    pub fn list_extended(&self, ino: u64, size: u32, reply: ReplyXattr) {
        if !self.has_extended() {
            return reply.error(Errno::ENOSYS);
        }
        let names = self.volume.list_extended(ino).map(|names| {
            let with_end = |name: &std::ffi::OsString| [name.as_bytes(), &[0]].concat();
            names.iter().flat_map(with_end).collect()
        });
        reply_value(names, size, reply);
    }
}
