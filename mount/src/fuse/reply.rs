//! Encodes the replies to the kernel, by their kind.

use fuser::{
    Errno, FileHandle, FopenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr,
};

use super::convert::{NEVER_REUSED, errno};
use super::serve::{Server, Written};
use crate::mount::{NodeAttributes, Opened};
use crate::source::{Result, StatVfs};

/// The only flags that the kernel accepts for pass-through files.
const PASSES: FopenFlags = FopenFlags::FOPEN_NOFLUSH;

pub(super) trait Reply: Send + Sized + 'static {
    type Value;

    fn tell(self, server: &Server, value: Self::Value);

    fn fail(self, errno: Errno);

    fn send(self, server: &Server, outcome: Result<Self::Value>) {
        match outcome {
            Ok(value) => self.tell(server, value),
            Err(error) => self.fail(errno(error)),
        }
    }
}

/// Implements [`Reply`] for each line of the form `reply: value, function that sends
/// the value;`.
macro_rules! replies {
    ($($reply:ty: $value:ty, $tell:expr;)*) => {$(
        impl Reply for $reply {
            type Value = $value;

            fn tell(self, server: &Server, value: $value) {
                let tell: fn($reply, &Server, $value) = $tell;
                tell(self, server, value);
            }

            fn fail(self, errno: Errno) {
                self.error(errno);
            }
        }
    )*};
}

replies! {
    ReplyEmpty: (), |reply, _, ()| reply.ok();
    ReplyDirectory: (), |reply, _, ()| reply.ok();
    ReplyDirectoryPlus: (), |reply, _, ()| reply.ok();
    ReplyEntry: NodeAttributes, tell_entry;
    ReplyAttr: NodeAttributes, |reply, server, found| reply.attr(&server.rest(&found), &server.give(&found));
    ReplyData: Vec<u8>, |reply, _, bytes| reply.data(&bytes);
    ReplyWrite: Written, tell_written;
    ReplyLseek: u64, |reply, _, offset| reply.offset(offset.cast_signed());
    ReplyXattr: (Vec<u8>, u32), tell_extended;
    ReplyStatfs: StatVfs, tell_space;
    ReplyOpen: (u64, Opened), tell_opened;
    ReplyCreate: (NodeAttributes, Opened), tell_created;
}

fn tell_entry(reply: ReplyEntry, server: &Server, found: NodeAttributes) {
    reply.entry(&server.rest(&found), &server.give(&found), NEVER_REUSED);
}

fn tell_written(reply: ReplyWrite, server: &Server, written: Written) {
    reply.written(written.bytes);
    if written.is_moved {
        // The kernel holds the locks of these pages until the reply, so they are
        // dropped after it.
        server.invalidate_content(written.ino);
    }
}

fn tell_extended(reply: ReplyXattr, _: &Server, (value, size): (Vec<u8>, u32)) {
    match size {
        0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        size if value.len() > size as usize => reply.error(Errno::ERANGE),
        _ => reply.data(&value),
    }
}

fn tell_space(reply: ReplyStatfs, _: &Server, space: StatVfs) {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    reply.statfs(
        space.f_blocks,
        space.f_bfree,
        space.f_bavail,
        space.f_files,
        space.f_ffree,
        narrow(space.f_frsize),
        narrow(space.f_namemax),
        narrow(space.f_frsize),
    );
}

fn tell_opened(reply: ReplyOpen, server: &Server, (ino, opened): (u64, Opened)) {
    let (handle, flags) = (FileHandle(opened.handle), server.open_flags(opened));
    if opened.is_news {
        server.invalidate_attributes(ino);
    }
    match server.backing(ino, opened, |descriptor| reply.open_backing(descriptor)) {
        Some(backing) => reply.opened_passthrough(handle, flags & PASSES, &backing),
        None => reply.opened(handle, flags),
    }
}

fn tell_created(reply: ReplyCreate, server: &Server, (found, opened): (NodeAttributes, Opened)) {
    let (attr, handle) = (server.give(&found), FileHandle(opened.handle));
    let (ttl, flags) = (server.rest(&found), server.open_flags(opened));
    let ino = found.ino;
    match server.backing(ino, opened, |descriptor| reply.open_backing(descriptor)) {
        Some(backing) => {
            let flags = flags & PASSES;
            reply.created_passthrough(&ttl, &attr, NEVER_REUSED, handle, flags, &backing);
        }
        None => reply.created(&ttl, &attr, NEVER_REUSED, handle, flags),
    }
}
