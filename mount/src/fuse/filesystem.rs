//! Handlers of the kernel's requests. Each handler turns a request into a call of the
//! volume.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::abilities::choose_abilities;
use super::convert::set_time;
use super::reply::Reply;
use super::serve::Server;
use crate::background;
use crate::content::zeroed;
use crate::mount::{Access, Volume};
use crate::source::{
    Creation, Error, Extended, Kind, New, Owner, RenameFlags as SourceRename, Result,
    SetAttributes, XattrFlags,
};

pub(super) struct Fuse(pub Arc<Server>);

impl Fuse {
    /// Runs `call` on this thread or on a new one, and replies with its result.
    fn answer<R: Reply>(
        &self,
        reply: R,
        call: impl FnOnce(&Server) -> Result<R::Value> + Send + 'static,
    ) {
        self.0.run(move |server| reply.send(server, call(server)));
    }

    /// Runs `call`, which needs only the volume, on this thread or on a new one, and
    /// replies with its result.
    fn call<R: Reply>(
        &self,
        reply: R,
        call: impl FnOnce(&Volume) -> Result<R::Value> + Send + 'static,
    ) {
        self.answer(reply, |server| call(&server.volume));
    }

    fn creation(&self, request: &Request, mode: u32) -> Creation {
        let (uid, gid) = (request.uid(), request.gid());
        let owner = match self.0.ids {
            Some(ids) => Owner {
                uid: ids.sent_uid(uid),
                gid: ids.sent_gid(gid),
            },
            None => Owner { uid, gid },
        };
        Creation {
            mode: mode & 0o7777,
            owner: Some(owner),
        }
    }

    /// Runs `call` on a file's extended attributes, and replies with its result.
    /// Replies `ENOSYS` if the mount shows no extended attributes.
    fn extended<R: Reply>(
        &self,
        reply: R,
        ino: INodeNo,
        call: impl FnOnce(&dyn Extended) -> Result<R::Value> + Send + 'static,
    ) {
        let volume = &self.0.volume;
        if !volume.options.shows_extended || !volume.shared.source.has_extended() {
            return reply.fail(Errno::ENOSYS);
        }
        self.call(reply, move |volume| call(&*volume.extended(ino.0)?));
    }
}

impl Filesystem for Fuse {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let options = &self.0.volume.options;
        choose_abilities(options.mode, options.kernel, config)
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.call(reply, move |volume| volume.look_up(parent.0, &name));
    }

    fn forget(&self, _: &Request, ino: INodeNo, count: u64) {
        self.0.volume.shared.tree.forget(ino.0, count);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.call(reply, move |volume| volume.attributes(ino.0));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let ids = self.0.ids;
        let changes = SetAttributes {
            mode: mode.map(|mode| mode & 0o7777),
            uid: ids.map_or(uid, |ids| uid.map(|uid| ids.sent_uid(uid))),
            gid: ids.map_or(gid, |ids| gid.map(|gid| ids.sent_gid(gid))),
            size_bytes: size,
            atime: atime.map(set_time),
            mtime: mtime.map(set_time),
        };
        // The kernel leaves it to the file system to clear set-user-id when a user
        // other than root truncates a file. If only that is to be done, the request has
        // no other change.
        let drops_privileges =
            (size.is_some() && request.uid() != 0) || changes == SetAttributes::default();
        self.call(reply, move |volume| {
            let found = volume.set_attributes(ino.0, &changes, handle.is_some())?;
            if drops_privileges && found.attributes.mode & 0o6000 != 0 {
                volume.drop_privileges(ino.0)?;
                return volume.attributes(ino.0);
            }
            Ok(found)
        });
    }

    fn access(&self, _: &Request, ino: INodeNo, wanted: AccessFlags, reply: ReplyEmpty) {
        let wanted = wanted.bits().cast_unsigned();
        self.answer(reply, move |server| server.access(ino.0, wanted));
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.call(reply, move |volume| {
            volume.read_link(ino.0).map(OsString::into_vec)
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device_number: u32,
        reply: ReplyEntry,
    ) {
        // The kernel sends no other types; it may send none for a regular file.
        let kind = Kind::of_mode(mode).unwrap_or(Kind::File);
        let new = New::Node(kind, u64::from(device_number));
        let (name, creation) = (name.to_owned(), self.creation(request, mode));
        self.call(reply, move |volume| {
            volume.make(parent.0, &name, new, &creation)
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let (name, creation) = (name.to_owned(), self.creation(request, mode));
        self.call(reply, move |volume| {
            volume.make(parent.0, &name, New::Directory, &creation)
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.0.run(move |server| {
            let unlinked = server.volume.unlink(parent.0, &name);
            reply.send(
                server,
                unlinked.as_ref().map(|_| ()).map_err(|error| *error),
            );
            // Dropping the content takes long, and nobody waits for that any more.
            drop(unlinked);
        });
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.call(reply, move |volume| {
            volume.remove_directory(parent.0, &name)
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target) = (name.to_owned(), target.to_owned());
        let creation = self.creation(request, 0o777);
        self.call(reply, move |volume| {
            let new = New::Symlink(target.as_os_str());
            volume.make(parent.0, &name, new, &creation)
        });
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.call(reply, move |volume| {
            let flags = SourceRename::from_bits_retain(flags.bits());
            if flags != flags & SourceRename::NOREPLACE && flags != SourceRename::EXCHANGE {
                return Err(Error::Errno(libc::EINVAL));
            }
            volume.rename((parent.0, &name), (new_parent.0, &new_name), flags)
        });
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.call(reply, move |volume| {
            volume.hard_link(ino.0, parent.0, &name)
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let access = Access::from_flags(flags.0, request.pid());
        self.call(reply, move |volume| {
            volume.open(ino.0, access).map(|opened| (ino.0, opened))
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, creation) = (name.to_owned(), self.creation(request, mode));
        let access = Access::from_flags(flags, request.pid());
        self.call(reply, move |volume| {
            volume.create(parent.0, &name, creation, access)
        });
    }

    fn read(
        &self,
        request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let number = request.unique().0;
        self.0
            .run(move |server| server.read(number, handle.0, offset, size, reply));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        open_flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let file = (ino.0, handle.0);
        let write = move |server: &Server, data: &[u8]| {
            server.write(file, offset, data, flags, open_flags.0)
        };
        // Only a new thread needs the data for longer than this call.
        let busy = self.0.claim_thread();
        let copied = busy.is_none().then(|| zeroed(data.len()));
        match copied {
            Some(Ok(mut copy)) => {
                copy.copy_from_slice(data);
                let server = Arc::clone(&self.0);
                background::run(move || reply.send(&server, write(&server, &copy)));
            }
            _ => reply.send(&self.0, write(&self.0, data)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.answer(reply, move |server| server.flush(handle.0));
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.answer(reply, move |server| {
            server.volume.release(handle.0);
            server.release_backing(ino.0);
            Ok(())
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.call(reply, move |volume| volume.sync(handle.0));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let handle = self.0.volume.open_directory(ino.0);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.0.run(move |server| {
            let listed = server.list(handle.0, offset, &mut reply);
            reply.send(server, listed);
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.0.run(move |server| {
            let listed = server.list_plus(handle.0, offset, &mut reply);
            reply.send(server, listed);
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.volume.close_directory(handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.call(reply, move |volume| volume.sync_directory(handle.0));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.call(reply, |volume| volume.shared.source.space());
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let how = XattrFlags::from_bits_truncate(flags.cast_unsigned());
        let (name, value) = (name.to_owned(), value.to_owned());
        self.extended(reply, ino, move |extended| extended.set(&name, &value, how));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.extended(reply, ino, move |extended| {
            Ok((extended.value(&name)?, size))
        });
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.extended(reply, ino, move |extended| {
            let with_end = |name: &OsString| [name.as_bytes(), &[0]].concat();
            let names = extended.names()?;
            Ok((names.iter().flat_map(with_end).collect(), size))
        });
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.extended(reply, ino, move |extended| extended.remove(&name));
    }

    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.call(reply, move |volume| {
            volume.allocate(handle.0, mode, offset, length)
        });
    }

    fn lseek(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.answer(reply, move |server| server.seek(handle.0, offset, whence));
    }
}
