//! The kernel's side: mounting, serving requests, unmounting.

mod attach;
mod convert;
mod filesystem;
mod id_map;
mod reply;
mod serve;
mod splice;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use fuser::{Config, InitFlags, KernelConfig, Session, SessionACL};
use rustix::thread::CapabilitySet;

use crate::cache::Mode;
use crate::descriptors;
pub use crate::mount::{KernelCache, Options};
use crate::mount::{Note, Volume};
use crate::source::Source;
use attach::Attachment;
use filesystem::Fuse;
use serve::Server;
use splice::Device;

/// Threads that wait for requests. When all but one are busy with a slow
/// source, a request gets a thread of its own.
const THREADS: usize = 8;

/// Requests that the kernel may have under way in the background, such as
/// read-ahead.
const BACKGROUND_MAX: u16 = 64;
/// Largest write: what the kernel sends at most unless its limit of pages is
/// raised.
const WRITE_BYTES_MAX: u32 = 1 << 20;

pub struct Mount {
    session: JoinHandle<io::Result<()>>,
    mountpoint: PathBuf,
    volume: Arc<Volume>,
}

/// Unmounts from another thread than the one that waits for the end.
pub struct Stopper {
    mountpoint: PathBuf,
    volume: Arc<Volume>,
}

impl Mount {
    /// Mounts a source on a directory and begins to serve it. From here on
    /// the process must live, and may have as many descriptors as its hard
    /// limit allows.
    pub fn begin(
        source: Arc<dyn Source>,
        mountpoint: &Path,
        options: &Options,
        note: Note,
    ) -> io::Result<(Self, Stopper)> {
        let caches_once = matches!(options.kernel, KernelCache::Pages | KernelCache::Direct);
        assert!(options.mode == Mode::None || caches_once, "two write-backs");
        check_privileges(options)?;
        descriptors::raise_limit();
        share_heap();
        // Absolute, as the process may leave its directory before it ends.
        let mountpoint = mountpoint.canonicalize()?;
        let name = source.name();
        let volume = Arc::new(Volume::new(source, options, note)?);
        let server = Arc::new(Server::new(Arc::clone(&volume)));
        // Only files of this machine have descriptors here.
        let is_local = options.mode == Mode::None && !volume.shared.source.is_remote();
        let splices = is_local && options.kernel != KernelCache::PassThrough;
        let attachment = Attachment {
            name: &name,
            is_read_only: options.is_read_only,
            allows_others: options.allows_others,
            // Who alone uses another host gets what is allowed there, whatever the
            // numbers and groups here.
            checks_permissions: options.allows_others || !volume.shared.source.is_remote(),
        };
        let device = attachment.mount(&mountpoint)?;
        let acl = match options.allows_others {
            true => SessionACL::All,
            false => SessionACL::Owner,
        };
        let filesystem = Fuse(Arc::clone(&server));
        let session = Session::from_fd(filesystem, device, acl, config(!splices))
            .inspect_err(|_| drop(attach::unmount(&mountpoint)))?;
        // The handshake is over and no request has been read yet.
        server.notifier.set(session.notifier()).ok();
        if splices {
            let device = Device::new(session.as_fd().try_clone_to_owned()?);
            server.device.set(device).ok();
        }
        let thread = std::thread::Builder::new().name("session".to_owned());
        let session = thread.spawn(move || session.run())?;
        let stopper = Stopper {
            mountpoint: mountpoint.clone(),
            volume: Arc::clone(&volume),
        };
        let mount = Self {
            session,
            mountpoint,
            volume,
        };
        Ok((mount, stopper))
    }

    /// Waits until it is unmounted, by whomever, and brings what is left to
    /// the source. Returns how many files could not be written back and are kept.
    pub fn wait(self) -> io::Result<usize> {
        let served = self.session.join();
        let files_kept = self.volume.close();
        match served {
            Ok(Ok(())) => attach::unmount_if_dead(&self.mountpoint)?,
            failed => {
                // Nobody else knows that it is no longer served.
                let _ = attach::unmount(&self.mountpoint);
                failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
        }
        Ok(files_kept)
    }
}

impl Stopper {
    /// Unmounts even if files are open: lets the kernel write its pages, lets
    /// nobody in any more, and brings all changes to the source. What is
    /// still open then can be read until the process ends, and not written.
    /// Returns how many files could not be written back and are kept. If it cannot
    /// be unmounted, all changes are at the source, too.
    pub fn stop(self) -> io::Result<usize> {
        for name in self.volume.open_names() {
            // The kernel's pages of it come here before the call returns;
            // `syncfs` does not wait for those of a FUSE file system. What
            // cannot be brought to the source is kept and told later.
            let file = std::fs::File::open(self.mountpoint.join(name));
            let _ = file.and_then(|file| file.sync_all());
        }
        let unmounted = attach::unmount(&self.mountpoint);
        let files_kept = self.volume.close();
        unmounted.map(|()| files_kept)
    }
}

/// Lets all threads share one heap. Each would reserve 64 MiB of address space for
/// its own (`HEAP_MAX_SIZE` in glibc's arena.c), which a limit of that counts; so
/// many allocate little at a time, and large buffers once.
fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes a setting of the allocator, which has locks of its own.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The kernel would refuse each single file later, of which it could only be told
/// by how slow it is.
fn check_privileges(options: &Options) -> io::Result<()> {
    let can = rustix::thread::capabilities(None)?.effective;
    match options.kernel {
        KernelCache::PassThrough if !can.contains(CapabilitySet::SYS_ADMIN) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only root can let reads and writes pass through; choose another cache of the kernel's",
        )),
        _ => Ok(()),
    }
}

fn config(clones_device: bool) -> Config {
    let mut config = Config::default();
    config.n_threads = Some(THREADS);
    config.clone_fd = clones_device;
    config
}

fn wanted_flags(mode: Mode, kernel: KernelCache) -> InitFlags {
    let always = InitFlags::FUSE_ATOMIC_O_TRUNC
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_PARALLEL_DIROPS
        // Else the kernel asks for an extended attribute before each write.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    let pages = match (kernel, mode) {
        (KernelCache::WriteBack, _) => InitFlags::FUSE_WRITEBACK_CACHE,
        (KernelCache::Direct, _) => InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        (KernelCache::PassThrough, _) => InitFlags::FUSE_PASSTHROUGH,
        // An open file's copy changes by this mount alone; without one, pages
        // go when somebody else has changed the source's file.
        (KernelCache::Pages, Mode::None) => InitFlags::FUSE_AUTO_INVAL_DATA,
        (KernelCache::Pages, _) => InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    };
    always | pages
}

/// Negotiates FUSE features with the kernel. A missing feature is left out, but
/// missing pass-through is an error, because an option requests it.
fn choose_abilities(mode: Mode, kernel: KernelCache, config: &mut KernelConfig) -> io::Result<()> {
    let can = config.capabilities();
    if kernel == KernelCache::PassThrough {
        if !can.contains(InitFlags::FUSE_PASSTHROUGH) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        // Or less, if the kernel has other limits.
        let _ = config.set_max_stack_depth(1);
    }
    let _ = config.add_capabilities(wanted_flags(mode, kernel) & can);
    let _ = config.set_max_write(WRITE_BYTES_MAX);
    let _ = config.set_max_background(BACKGROUND_MAX);
    Ok(())
}
