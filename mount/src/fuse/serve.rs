//! What serving a request needs beside the volume: threads for slow sources,
//! invalidation, backing files, buffers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{
    BackingId, Errno, FileAttr, FopenFlags, INodeNo, Notifier, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, WriteFlags,
};
use parking_lot::Mutex;

use super::convert::file_type;
use super::id_map::IdMap;
use super::reply::{NEVER_REUSED, Reply, Written, attributes};
use super::splice::Device;
use super::{KernelCache, THREADS};
use crate::background;
use crate::cache::Mode;
use crate::content::grow;
use crate::mount::{NodeAttributes, Opened, Volume, WriteHow, is_dots};
use crate::source::{Attributes, Error, Kind, Owner, Result, SeekFrom};

/// What a listing says of a number that is not known yet: programs that need
/// it ask.
const INO_UNKNOWN: u64 = 0xffff_ffff;

pub(super) struct Server {
    pub volume: Arc<Volume>,
    pub notifier: OnceLock<Notifier>,
    pub device: OnceLock<Device>,
    pub ids: Option<IdMap>,
    busy: AtomicUsize,
    /// Files whose reads and writes do not come here, and how often they are
    /// open: all opens of a file must name the same backing file.
    backings: Mutex<HashMap<u64, (Arc<BackingId>, usize)>>,
}

thread_local! {
    /// What is read goes through here; a fresh buffer would be cleared first.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A waiting thread at work, until it is dropped.
pub(super) struct BusyThread<'a>(&'a Server);

impl Drop for BusyThread<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    pub fn new(volume: Arc<Volume>) -> Self {
        let source = &*volume.shared.source;
        let ids = volume.options.maps_user.then(|| IdMap::of(source));
        Self {
            ids: ids.flatten(),
            volume,
            notifier: OnceLock::new(),
            device: OnceLock::new(),
            busy: AtomicUsize::new(0),
            backings: Mutex::default(),
        }
    }

    /// For how long the kernel may believe what is found.
    pub fn rest(&self, found: &NodeAttributes) -> Duration {
        let lifetime = self.volume.options.attribute_lifetime;
        lifetime.saturating_sub(found.age)
    }

    /// A turn on this thread, if another thread is left to wait for requests.
    pub fn claim_thread(&self) -> Option<BusyThread<'_>> {
        let before = self.busy.fetch_add(1, Ordering::AcqRel);
        let busy = BusyThread(self);
        (before + 1 < THREADS).then_some(busy)
    }

    /// Does something here, or in a thread of its own if all others are busy,
    /// so that a slow source never keeps requests that need none of it.
    pub fn run(self: &Arc<Self>, work: impl FnOnce(&Self) + Send + 'static) {
        match self.claim_thread() {
            Some(_busy) => work(self),
            None => {
                let server = Arc::clone(self);
                background::run(move || work(&server));
            }
        }
    }

    pub fn read(&self, request: u64, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        let size = size as usize;
        let spliced = self.device.get().and_then(|device| {
            let answer = |file: BorrowedFd<'_>| device.answer(request, file, offset, size);
            self.volume.with_descriptor(handle, answer)
        });
        if spliced == Some(true) {
            // `fuser` must answer, too: the kernel finds no such request any
            // more, and its numbers are never used again.
            return reply.error(Errno::EIO);
        }
        BUFFER.with_borrow_mut(|buffer| {
            if let Err(error) = grow(buffer, size) {
                return reply.send(self, Err(error));
            }
            match self.volume.read(handle, &mut buffer[..size], offset) {
                Ok(count) => reply.data(&buffer[..count]),
                Err(error) => reply.send(self, Err(error)),
            }
        });
    }

    /// `open_flags` are those of the file's `open(2)`.
    pub fn write(
        &self,
        (ino, handle): (u64, u64),
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        open_flags: i32,
    ) -> Result<Written> {
        let volume = &self.volume;
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            volume.drop_privileges(ino)?;
        }
        // Half of O_SYNC's bits.
        let is_durable = open_flags & libc::O_DSYNC != 0;
        // The kernel writes pages that somebody changed in memory.
        let is_of_pages = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let how = WriteHow {
            may_end_later: self.writes_later() && !is_of_pages && !is_durable,
            is_append: open_flags & libc::O_APPEND != 0 && !is_of_pages,
        };
        let is_moved = volume.write(handle, data, offset, how)?;
        // The kernel sees to it itself where it keeps pages.
        if is_durable && volume.options.kernel == KernelCache::Direct {
            volume.sync(handle)?;
        }
        Ok(Written {
            ino,
            // One request is at most some MiB.
            bytes: data.len() as u32,
            is_moved,
        })
    }

    pub fn open_flags(&self, opened: Opened) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if opened.keeps_pages {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if self.volume.options.kernel == KernelCache::Direct {
            flags |= FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        }
        let is_awaited = opened.is_writable && self.writes_later();
        if self.is_direct() && !self.volume.is_kernel_writing_back() && !is_awaited {
            // Closing such a file brings nothing to the source.
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }

    fn is_direct(&self) -> bool {
        self.volume.options.mode == Mode::None
    }

    /// Whether a write may be answered before the source has answered it: the
    /// kernel keeps nothing that would be wrong if it fails, and a round trip for
    /// each takes long.
    fn writes_later(&self) -> bool {
        let is_uncached = self.volume.options.kernel == KernelCache::Direct;
        self.is_direct() && is_uncached && self.volume.shared.source.is_remote()
    }

    pub fn flush(&self, handle: u64) -> Result<()> {
        if self.is_direct() && !self.writes_later() {
            // What was written is with the source already. The kernel still
            // writes its own pages before a close returns, and sends no such
            // request again after this answer (`fuse_flush`).
            return Err(Error::Errno(libc::ENOSYS));
        }
        self.volume.flush(handle)
    }

    pub fn seek(&self, handle: u64, offset: i64, whence: i32) -> Result<u64> {
        if self.volume.is_kernel_writing_back() {
            // The kernel has pages that the source has not; it then takes all
            // for data, up to the length that it knows.
            return Err(Error::Errno(libc::ENOSYS));
        }
        let offset = u64::try_from(offset).map_err(|_| Error::Errno(libc::ENXIO))?;
        let from = match whence {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Error::Errno(libc::EINVAL)),
        };
        self.volume.seek(handle, from)
    }

    /// Tells the kernel to ask for attributes again, as they are not what
    /// they were when it asked last.
    pub fn invalidate_attributes(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            // A negative offset leaves pages alone. That the kernel does not
            // know the number any more is as good.
            let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
        }
    }

    /// Lets the kernel drop all it has of a file.
    pub fn invalidate_content(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
        }
    }

    /// Attributes for a reply, recorded as what the kernel was given.
    pub fn give(&self, found: &NodeAttributes) -> FileAttr {
        self.volume.shared.tree.give(found.ino, &found.attributes);
        let mut found = *found;
        if let Some(ids) = self.ids {
            let Attributes { uid, gid, .. } = found.attributes;
            let shown = ids.shown(Owner { uid, gid });
            (found.attributes.uid, found.attributes.gid) = (shown.uid, shown.gid);
        }
        attributes(&found)
    }

    /// Answers `access(2)` where the kernel leaves that to this program. Which groups
    /// the user has at the source is unknown, so what a group may do is allowed, and
    /// the call itself shows whether it is.
    pub fn access(&self, ino: u64, wanted: u32) -> Result<()> {
        let found = self.volume.attributes(ino)?.attributes;
        let any = found.mode >> 6 | found.mode >> 3 | found.mode;
        let allowed = match self.volume.shared.source.user() {
            // Root may do all but execute a file that nobody may.
            Some(user) if user.uid == 0 && found.kind == Kind::Directory => 0o7,
            Some(user) if user.uid == 0 => any | 0o6,
            Some(user) if user.uid == found.uid => found.mode >> 6,
            Some(_) => found.mode >> 3 | found.mode,
            None => any,
        };
        match wanted & 0o7 & !allowed {
            0 => Ok(()),
            _ => Err(Error::Errno(libc::EACCES)),
        }
    }

    /// The backing file of a file that passes through, made by `make` for the
    /// first who opens it. None where nothing passes through.
    pub fn backing(
        &self,
        ino: u64,
        opened: Opened,
        make: impl FnOnce(BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        if self.volume.options.kernel != KernelCache::PassThrough {
            return None;
        }
        let mut backings = self.backings.lock();
        if let Some((backing, users)) = backings.get_mut(&ino) {
            *users += 1;
            return Some(Arc::clone(backing));
        }
        let made = self.volume.with_descriptor(opened.handle, make);
        let backing = Arc::new(made?.ok()?);
        backings.insert(ino, (Arc::clone(&backing), 1));
        Some(backing)
    }

    pub fn release_backing(&self, ino: u64) {
        let mut backings = self.backings.lock();
        if let Some((_, users)) = backings.get_mut(&ino) {
            *users -= 1;
            if *users == 0 {
                backings.remove(&ino);
            }
        }
    }

    pub fn list(&self, handle: u64, offset: u64, reply: &mut ReplyDirectory) -> Result<()> {
        let listed = self.volume.list(handle, offset)?;
        for (next, entry) in listed.entries(offset) {
            let known = entry.attributes.map(|known| known.kind);
            let kind = entry.kind.or(known).unwrap_or_default();
            let ino = self.volume.number(&listed, entry).unwrap_or(INO_UNKNOWN);
            if reply.add(INodeNo(ino), next, file_type(kind), &entry.name) {
                break;
            }
        }
        Ok(())
    }

    pub fn list_plus(
        &self,
        handle: u64,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let listed = self.volume.list(handle, offset)?;
        for (next, entry) in listed.entries(offset) {
            let Some(found) = self.volume.look_up_listed(&listed, entry) else {
                continue;
            };
            let (ino, name) = (INodeNo(found.ino), &entry.name);
            let (ttl, attr) = (self.rest(&found), self.give(&found));
            if reply.add(ino, next, name, &ttl, &attr, NEVER_REUSED) {
                if !is_dots(name) {
                    // It was looked up, and is not told.
                    self.volume.shared.tree.forget(found.ino, 1);
                }
                break;
            }
        }
        Ok(())
    }
}
