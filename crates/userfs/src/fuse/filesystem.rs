//! The kernel's requests, each a few lines that turn it into a call of the
//! volume and the outcome into a reply.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig,
    LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::convert::{errno, set_time};
use super::requests::{WriteTo, reply_empty, reply_entry};
use super::serve::Server;
use super::splice::Device;
use super::{Options, abilities};
use crate::mount::{Access, Volume};
use crate::source::{
    Creation, Kind, Owner, RenameFlags as SourceRename, SetAttributes, XattrFlags,
};

pub(super) const NEVER_REUSED: Generation = Generation(0);

pub(super) struct Fuse {
    server: Arc<Server>,
}

impl Fuse {
    pub fn new(volume: Arc<Volume>, options: &Options) -> Self {
        Self {
            server: Arc::new(Server::new(volume, options)),
        }
    }

    /// Where the session's notifier is put once there is one.
    pub fn notifier_slot(&self) -> Arc<OnceLock<Notifier>> {
        Arc::clone(&self.server.notifier)
    }

    /// Where the session's device is put, if answers are spliced to it.
    pub fn device_slot(&self) -> Arc<OnceLock<Device>> {
        Arc::clone(&self.server.device)
    }
}

fn owner(request: &Request) -> Owner {
    Owner {
        uid: request.uid(),
        gid: request.gid(),
    }
}

fn creation(request: &Request, mode: u32) -> Creation {
    Creation {
        mode: mode & 0o7777,
        owner: Some(owner(request)),
    }
}

impl Filesystem for Fuse {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        abilities::choose(self.server.mode, self.server.kernel, config)
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.server
            .run(move |server| server.look_up(parent.0, &name, reply));
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        self.server.volume.shared.tree.forget(ino.0, count);
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.server
            .run(move |server| server.attributes(ino.0, reply));
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
        let changes = SetAttributes {
            mode: mode.map(|mode| mode & 0o7777),
            uid,
            gid,
            size_bytes: size,
            atime: atime.map(set_time),
            mtime: mtime.map(set_time),
        };
        // The kernel leaves it to the file system to take set-user-id away
        // from what somebody else than root cuts, and asks for that alone by
        // a request without any change.
        let drops_privileges =
            (size.is_some() && request.uid() != 0) || changes == SetAttributes::default();
        self.server.run(move |server| {
            server.change(ino.0, &changes, handle.is_some(), drops_privileges, reply);
        });
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        self.server
            .run(move |server| match server.volume.read_link(ino.0) {
                Ok(target) => reply.data(target.as_bytes()),
                Err(error) => reply.error(errno(error)),
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
        let kind = match mode & libc::S_IFMT {
            0 => Some(Kind::File),
            bits => Kind::of_mode(bits),
        };
        let special = |kind: &Kind| !matches!(kind, Kind::Directory | Kind::Symlink);
        let Some(kind) = kind.filter(special) else {
            return reply.error(Errno::EINVAL);
        };
        let (name, creation) = (name.to_owned(), creation(request, mode));
        self.server.run(move |server| {
            let volume = &server.volume;
            let device_number = u64::from(device_number);
            let made = volume.make_node(parent.0, &name, kind, device_number, &creation);
            reply_entry(server, made, reply);
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
        let (name, creation) = (name.to_owned(), creation(request, mode));
        self.server.run(move |server| {
            let made = server.volume.make_directory(parent.0, &name, &creation);
            reply_entry(server, made, reply);
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.server
            .run(move |server| server.unlink(parent.0, &name, reply));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.server
            .run(move |server| reply_empty(server.volume.remove_directory(parent.0, &name), reply));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target, owner) = (name.to_owned(), target.to_owned(), owner(request));
        self.server.run(move |server| {
            let volume = &server.volume;
            let made = volume.make_symlink(parent.0, &name, target.as_os_str(), owner);
            reply_entry(server, made, reply);
        });
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = SourceRename::from_bits_retain(flags.bits());
        if flags != flags & SourceRename::NOREPLACE && flags != SourceRename::EXCHANGE {
            return reply.error(Errno::EINVAL);
        }
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.server.run(move |server| {
            let (from, to) = ((parent.0, &*name), (new_parent.0, &*new_name));
            reply_empty(server.volume.rename(from, to, flags), reply);
        });
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let name = new_name.to_owned();
        self.server.run(move |server| {
            let made = server.volume.hard_link(ino.0, new_parent.0, &name);
            reply_entry(server, made, reply);
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let access = Access::of(flags.0, request.pid());
        self.server
            .run(move |server| match server.volume.open(ino.0, access) {
                Ok(opened) => server.reply_open(ino.0, opened, reply),
                Err(error) => reply.error(errno(error)),
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
        let (name, creation) = (name.to_owned(), creation(request, mode));
        let access = Access::of(flags, request.pid());
        self.server.run(move |server| {
            let volume = &server.volume;
            let created = volume.create(parent.0, &name, creation, access);
            match created {
                Ok(created) => server.reply_created(created, reply),
                Err(error) => reply.error(errno(error)),
            }
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
        self.server
            .run(move |server| server.read(number, handle.0, offset, size, reply));
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let to = WriteTo {
            ino: ino.0,
            handle: handle.0,
            offset,
            drops_privileges: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            is_of_pages: write_flags.contains(WriteFlags::FUSE_WRITE_CACHE),
            // Half of O_SYNC's bits.
            is_durable: flags.0 & libc::O_DSYNC != 0,
        };
        // Only a thread of its own needs the data for longer than this call.
        match self.server.turn() {
            Some(_turn) => self.server.write(&to, data, reply),
            None => {
                let (server, data) = (Arc::clone(&self.server), data.to_owned());
                std::thread::spawn(move || server.write(&to, &data, reply));
            }
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.server.run(move |server| server.flush(handle.0, reply));
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.server.run(move |server| {
            server.volume.release(handle.0);
            server.release_backing(ino.0);
            reply.ok();
        });
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _is_data_alone: bool,
        reply: ReplyEmpty,
    ) {
        self.server
            .run(move |server| reply_empty(server.volume.sync(handle.0), reply));
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let handle = self.server.volume.open_directory(ino.0);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.server
            .run(move |server| server.list(handle.0, offset, reply));
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.server
            .run(move |server| server.list_plus(handle.0, offset, reply));
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.server.volume.close_directory(handle.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _is_data_alone: bool,
        reply: ReplyEmpty,
    ) {
        self.server
            .run(move |server| reply_empty(server.volume.sync_directory(handle.0), reply));
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        self.server.run(move |server| server.space(reply));
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if !self.server.has_extended() {
            return reply.error(Errno::ENOSYS);
        }
        let how = XattrFlags::from_bits_truncate(flags.cast_unsigned());
        let (name, value) = (name.to_owned(), value.to_owned());
        self.server.run(move |server| {
            reply_empty(server.volume.set_extended(ino.0, &name, &value, how), reply);
        });
    }

    fn getxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let name = name.to_owned();
        self.server
            .run(move |server| server.extended(ino.0, &name, size, reply));
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.server
            .run(move |server| server.list_extended(ino.0, size, reply));
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if !self.server.has_extended() {
            return reply.error(Errno::ENOSYS);
        }
        let name = name.to_owned();
        self.server
            .run(move |server| reply_empty(server.volume.remove_extended(ino.0, &name), reply));
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.server.run(move |server| {
            let outcome = server.volume.allocate(handle.0, mode, offset, length);
            reply_empty(outcome, reply);
        });
    }

    fn lseek(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.server
            .run(move |server| server.seek(handle.0, offset, whence, reply));
    }
}
