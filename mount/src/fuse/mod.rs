//! The interface to the kernel: mounting, serving requests, unmounting.

mod abilities;
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

use fuser::{Config, Session, SessionACL};
use rustix::thread::CapabilitySet;

use crate::cache::Mode;
use crate::descriptors;
pub use crate::mount::{KernelCache, Options};
use crate::mount::{Note, Volume};
use crate::source::Source;
use attach::Attachment;
use filesystem::Fuse;
use serve::{Server, THREADS};
use splice::Device;

pub struct Mount {
    session: JoinHandle<io::Result<()>>,
    mountpoint: PathBuf,
    volume: Arc<Volume>,
}

/// Unmounts a file system while another thread waits for its end.
pub struct Stopper {
    mountpoint: PathBuf,
    volume: Arc<Volume>,
}

impl Mount {
    /// Mounts a source on a directory and starts to serve it. The process must then
    /// live as long as the mount. Its soft limit of file descriptors is raised to the
    /// hard limit.
    pub fn begin(
        source: Arc<dyn Source>,
        mountpoint: &Path,
        options: &Options,
        note: Note,
    ) -> io::Result<(Self, Stopper)> {
        let caches_once = matches!(options.kernel, KernelCache::Pages | KernelCache::Direct);
        assert!(
            options.mode == Mode::None || caches_once,
            "while the mount keeps copies, the kernel may only cache pages for reading"
        );
        check_privileges(options)?;
        descriptors::raise_limit();
        share_heap();
        // The path is absolute, because the process may change its directory before the
        // mount ends.
        let mountpoint = mountpoint.canonicalize()?;
        let name = source.name();
        let volume = Arc::new(Volume::new(source, options, note)?);
        let server = Arc::new(Server::new(Arc::clone(&volume)));
        // Only files of this machine have file descriptors here.
        let is_local = options.mode == Mode::None && !volume.shared.source.is_remote();
        let splices = is_local && options.kernel != KernelCache::PassThrough;
        let attachment = Attachment {
            name: &name,
            is_read_only: options.is_read_only,
            allows_others: options.allows_others,
            // A single user of another host may do what that host allows, whatever the
            // local numbers and groups are.
            checks_permissions: options.allows_others || !volume.shared.source.is_remote(),
        };
        let device = attachment.mount(&mountpoint)?;
        let acl = if options.allows_others {
            SessionACL::All
        } else {
            SessionACL::Owner
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

    /// Waits until anyone unmounts the file system, and writes the remaining changes
    /// back. Returns how many files could not be written back and are kept.
    pub fn wait(self) -> io::Result<usize> {
        let served = self.session.join();
        let files_kept = self.volume.close();
        match served {
            Ok(Ok(())) => attach::unmount_if_dead(&self.mountpoint)?,
            failed => {
                // Nobody else knows that the mount is no longer served.
                let _ = attach::unmount(&self.mountpoint);
                failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
        }
        Ok(files_kept)
    }
}

impl Stopper {
    /// Unmounts even if files are open: makes the kernel write its pages, detaches the
    /// mount, and writes all changes back. Files that are still open can then be read
    /// until the process ends, but not written. Returns how many files could not be
    /// written back and are kept. All changes are written back even if unmounting
    /// fails.
    pub fn stop(self) -> io::Result<usize> {
        for name in self.volume.open_names() {
            // The kernel sends its pages of the file here before fsync(2) returns; syncfs(2)
            // does not wait for the pages of a FUSE file system. Content that cannot be
            // written back is kept and reported later.
            let file = std::fs::File::open(self.mountpoint.join(name));
            let _ = file.and_then(|file| file.sync_all());
        }
        let unmounted = attach::unmount(&self.mountpoint);
        let files_kept = self.volume.close();
        unmounted.map(|()| files_kept)
    }
}

/// Makes all threads share one heap. Otherwise each thread would reserve 64 MiB of
/// address space for its own heap (`HEAP_MAX_SIZE` in glibc's arena.c), which counts
/// against a limit on address space. One heap is fast enough: threads allocate little
/// at a time, and large buffers only once.
fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes a setting of the allocator, which has locks of its own.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Refuses pass-through if the process lacks the privilege. Otherwise the kernel would
/// refuse it later for each file, and the mount would be slow without any message.
fn check_privileges(options: &Options) -> io::Result<()> {
    let can = rustix::thread::capabilities(None)?.effective;
    match options.kernel {
        KernelCache::PassThrough if !can.contains(CapabilitySet::SYS_ADMIN) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only root can let reads and writes pass through; choose another --kernel-cache",
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
