//! Serves requests by the volume, and provides threads for slow sources,
//! invalidation, backing files and buffers.

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

use super::convert::{NEVER_REUSED, attributes, errno, file_type};
use super::id_map::IdMap;
use super::splice::Device;
use crate::background;
use crate::cache::Mode;
use crate::content::grow;
use crate::mount::{KernelCache, NodeAttributes, Opened, Volume, WriteHow, is_dots};
use crate::source::{Attributes, Error, Kind, Owner, Result, SeekFrom};

/// Number of threads that wait for requests. When all but one are busy with a slow
/// source, a request gets a new thread.
pub(super) const THREADS: usize = 8;

/// Inode number in a listing for a file whose number is not known yet. Programs that
/// need the real number ask for it separately.
const INO_UNKNOWN: u64 = 0xffff_ffff;

/// A completed write.
pub(super) struct Written {
    pub ino: u64,
    pub bytes: u32,
    /// Whether the written content or its offset is not what the kernel assumes, so that the
    /// kernel's pages are wrong.
    pub is_moved: bool,
}

pub(super) struct Server {
    pub volume: Arc<Volume>,
    pub notifier: OnceLock<Notifier>,
    pub device: OnceLock<Device>,
    pub ids: Option<IdMap>,
    busy: AtomicUsize,
    /// Backing files, whose reads and writes bypass this program, with the number of
    /// opens of each. All opens of a file must name the same backing file.
    backings: Mutex<HashMap<u64, (Arc<BackingId>, usize)>>,
}

thread_local! {
    /// Read buffer of each thread, reused because a new one would have to be zeroed
    /// first.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Marks one of the waiting threads as busy until this value is dropped.
pub(super) struct BusyThread<'a>(&'a Server);

impl Drop for BusyThread<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    pub fn new(volume: Arc<Volume>) -> Self {
        let source = &*volume.shared.source;
        let ids = volume.options.maps_user.then(|| IdMap::from_source(source));
        Self {
            ids: ids.flatten(),
            volume,
            notifier: OnceLock::new(),
            device: OnceLock::new(),
            busy: AtomicUsize::new(0),
            backings: Mutex::default(),
        }
    }

    /// Returns how long the kernel may use these attributes without asking again.
    pub fn rest(&self, found: &NodeAttributes) -> Duration {
        let lifetime = self.volume.options.attribute_lifetime;
        lifetime.saturating_sub(found.age)
    }

    /// Marks this thread as busy. Returns `None` if no other thread is left to wait for
    /// requests.
    pub fn claim_thread(&self) -> Option<BusyThread<'_>> {
        let before = self.busy.fetch_add(1, Ordering::AcqRel);
        let busy = BusyThread(self);
        (before + 1 < THREADS).then_some(busy)
    }

    /// Runs `work` on this thread, or on a new one if all others are busy. A slow
    /// source therefore never delays requests that do not need it.
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
            // `fuser` must reply as well. The kernel does not know such a request
            // any more, and request numbers are never reused.
            return reply.error(Errno::EIO);
        }
        BUFFER.with_borrow_mut(|buffer| {
            if let Err(error) = grow(buffer, size) {
                return reply.error(errno(error));
            }
            match self.volume.read(handle, &mut buffer[..size], offset) {
                Ok(count) => reply.data(&buffer[..count]),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Writes to an open file. `open_flags` are the flags of the file's `open(2)`.
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
        // One of the two bits of `O_SYNC`.
        let is_durable = open_flags & libc::O_DSYNC != 0;
        // The kernel writes back pages that were changed in memory.
        let is_of_pages = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let how = WriteHow {
            may_end_later: self.writes_later() && !is_of_pages && !is_durable,
            is_append: open_flags & libc::O_APPEND != 0 && !is_of_pages,
        };
        let is_moved = volume.write(handle, data, offset, how)?;
        // If the kernel keeps pages, it makes the write durable itself.
        if is_durable && volume.options.kernel == KernelCache::Direct {
            volume.sync(handle)?;
        }
        Ok(Written {
            ino,
            // A request has at most a few MiB.
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
            // Closing such a file sends nothing to the source.
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }

    fn is_direct(&self) -> bool {
        self.volume.options.mode == Mode::None
    }

    /// Returns whether a write may be acknowledged before the source has replied,
    /// because a round trip for each write takes long. After a failure, the kernel
    /// caches nothing that would be wrong.
    fn writes_later(&self) -> bool {
        let is_uncached = self.volume.options.kernel == KernelCache::Direct;
        self.is_direct() && is_uncached && self.volume.shared.source.is_remote()
    }

    pub fn flush(&self, handle: u64) -> Result<()> {
        if self.is_direct() && !self.writes_later() {
            // The source has everything that was written. After this reply the
            // kernel sends no further flush requests (`fuse_flush`), but it still
            // writes its own pages before a close returns.
            return Err(Error::Errno(libc::ENOSYS));
        }
        self.volume.flush(handle)
    }

    pub fn seek(&self, handle: u64, offset: i64, whence: i32) -> Result<u64> {
        if self.volume.is_kernel_writing_back() {
            // The kernel has pages that the source lacks. After this reply it
            // treats everything up to the length that it knows as data.
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

    /// Makes the kernel ask for attributes again, because they have changed since
    /// it last asked.
    pub fn invalidate_attributes(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            // A negative offset leaves pages alone. An error means that the kernel
            // no longer knows the number, which is just as good.
            let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
        }
    }

    /// Makes the kernel drop everything that it caches of a file.
    pub fn invalidate_content(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
        }
    }

    /// Converts attributes for a reply, and records that the kernel has them.
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

    /// Answers `access(2)` where the kernel leaves the check to this program. The
    /// user's groups at the source are unknown, so everything that a group may do is
    /// allowed. If it is not, the later call fails.
    pub fn access(&self, ino: u64, wanted: u32) -> Result<()> {
        let found = self.volume.attributes(ino)?.attributes;
        let any = found.mode >> 6 | found.mode >> 3 | found.mode;
        let allowed = match self.volume.shared.source.user() {
            // Root may do everything except execute a file that nobody may execute.
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

    /// Returns the backing file of a pass-through file. `make` creates it at the first
    /// open. `None` if the mount uses no pass-through.
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
                    // The file was looked up, but its entry does not fit into the
                    // reply.
                    self.volume.shared.tree.forget(found.ino, 1);
                }
                break;
            }
        }
        Ok(())
    }
}
