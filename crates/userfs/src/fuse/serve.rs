//! What serving a request needs beside the volume: threads for slow sources,
//! invalidation, backing files, buffers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{
    BackingId, Errno, FileHandle, FopenFlags, Generation, INodeNo, Notifier, ReplyData,
    ReplyDirectoryPlus, ReplyOpen,
};
use parking_lot::Mutex;

use super::convert::{errno, file_attributes};
use super::splice::Device;
use super::{KernelCache, Options, THREADS};
use crate::cache::Mode;
use crate::mount::{Found, Listed, Opened, Volume};

/// What all threads share.
pub(super) struct Server {
    pub volume: Arc<Volume>,
    pub mode: Mode,
    pub kernel: KernelCache,
    pub lifetime: Duration,
    shows_extended: bool,
    pub notifier: Arc<OnceLock<Notifier>>,
    /// Where answers can be spliced to.
    pub device: Arc<OnceLock<Device>>,
    /// Waiting threads that are busy.
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
pub(super) struct Turn<'a>(&'a Server);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    pub fn new(volume: Arc<Volume>, options: &Options) -> Self {
        Self {
            volume,
            mode: options.mode,
            kernel: options.kernel,
            lifetime: options.attribute_lifetime,
            shows_extended: options.shows_extended,
            notifier: Arc::default(),
            device: Arc::default(),
            busy: AtomicUsize::new(0),
            backings: Mutex::default(),
        }
    }

    /// A turn on this thread, if another thread is left to wait for requests.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let before = self.busy.fetch_add(1, Ordering::AcqRel);
        let turn = Turn(self);
        (before + 1 < THREADS).then_some(turn)
    }

    /// Does something here, or in a thread of its own if all others are busy,
    /// so that a slow source never keeps requests that need none of it.
    pub fn run(self: &Arc<Self>, work: impl FnOnce(&Self) + Send + 'static) {
        match self.turn() {
            Some(_turn) => work(self),
            None => {
                let server = Arc::clone(self);
                std::thread::spawn(move || work(&server));
            }
        }
    }

    /// Reads and replies.
    pub fn read(&self, request: u64, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        if self.splice(request, handle, offset, size) {
            // `fuser` must answer, too: the kernel finds no such request any
            // more, and its numbers are never used again.
            return reply.error(Errno::EIO);
        }
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            match self.volume.read(handle, &mut buffer[..size], offset) {
                Ok(count) => reply.data(&buffer[..count]),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Answers a read without copying. False if the request is not answered.
    fn splice(&self, request: u64, handle: u64, offset: u64, size: u32) -> bool {
        let answered = self.device.get().and_then(|device| {
            self.volume.with_descriptor(handle, |file| {
                device.answer(request, file, offset, size as usize)
            })
        });
        answered.unwrap_or(false)
    }

    /// How the kernel is to treat an opened file.
    pub fn open_flags(&self, opened: Opened) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if opened.keeps_pages {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if self.kernel == KernelCache::Direct {
            flags |= FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        }
        let is_awaited = opened.is_writable && self.writes_later();
        if self.mode == Mode::None && self.kernel != KernelCache::WriteBack && !is_awaited {
            // Closing such a file brings nothing to the source.
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }

    /// Whether a write may be answered before the source has answered it: the
    /// kernel keeps nothing that would be wrong if it fails, and a round trip for
    /// each takes long.
    pub fn writes_later(&self) -> bool {
        let is_plain = self.mode == Mode::None && self.kernel == KernelCache::Direct;
        is_plain && self.volume.shared.source.is_remote()
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

    /// Answers an open call.
    pub fn reply_open(&self, ino: u64, opened: Opened, reply: ReplyOpen) {
        let flags = self.open_flags(opened);
        if opened.is_news {
            self.invalidate_attributes(ino);
        }
        let backing = self.backing(ino, |server| {
            server
                .volume
                .with_descriptor(opened.handle, |descriptor| reply.open_backing(descriptor))
        });
        match backing {
            Some(backing) => {
                reply.opened_passthrough(FileHandle(opened.handle), without_flush(flags), &backing);
            }
            None => reply.opened(FileHandle(opened.handle), flags),
        }
    }

    /// The backing file of a file that passes through, made by `make` for the
    /// first who opens it. None where nothing passes through.
    pub fn backing(
        &self,
        ino: u64,
        make: impl FnOnce(&Self) -> Option<std::io::Result<BackingId>>,
    ) -> Option<Arc<BackingId>> {
        if self.kernel != KernelCache::PassThrough {
            return None;
        }
        let mut backings = self.backings.lock();
        if let Some((backing, users)) = backings.get_mut(&ino) {
            *users += 1;
            return Some(Arc::clone(backing));
        }
        let backing = Arc::new(make(self)?.ok()?);
        backings.insert(ino, (Arc::clone(&backing), 1));
        Some(backing)
    }

    /// One user less of a backing file.
    pub fn release_backing(&self, ino: u64) {
        let mut backings = self.backings.lock();
        if let Some((_, users)) = backings.get_mut(&ino) {
            *users -= 1;
            if *users == 0 {
                backings.remove(&ino);
            }
        }
    }

    /// Whether there are extended attributes to be seen.
    pub fn has_extended(&self) -> bool {
        self.shows_extended && self.volume.shared.source.extended().is_ok()
    }

    /// Puts an entry with its attributes into a listing. Whether that is full
    /// now.
    pub fn add_plus(&self, entry: &Listed<'_>, reply: &mut ReplyDirectoryPlus) -> bool {
        // The kernel counts no lookup of `.` and `..`, and needs no more than
        // their numbers.
        let found = match entry.special {
            Some(ino) => entry.attributes.map(|attributes| Found { ino, attributes }),
            None => self.volume.look_up_listed(entry),
        };
        let Some(found) = found else {
            return false;
        };
        let attr = self.attr(&found);
        let ino = INodeNo(found.ino);
        let generation = Generation(0);
        let is_full = reply.add(
            ino,
            entry.offset,
            entry.name,
            &self.lifetime.saturating_sub(entry.age),
            &attr,
            generation,
        );
        if is_full && entry.special.is_none() {
            // It was looked up, and is not told.
            self.volume.shared.tree.forget(found.ino, 1);
        }
        is_full
    }

    pub fn attr(&self, found: &Found) -> fuser::FileAttr {
        file_attributes(found.ino, &found.attributes)
    }
}

/// The kernel takes no other flags for files that pass through.
pub(super) fn without_flush(flags: FopenFlags) -> FopenFlags {
    flags & FopenFlags::FOPEN_NOFLUSH
}
