//! The kernel's side: mounting, serving requests, unmounting.

mod abilities;
mod convert;
mod filesystem;
mod reply;
mod serve;
mod splice;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::mount::UnmountFlags;
use rustix::thread::CapabilitySet;

use crate::cache::Mode;
pub use crate::mount::{KernelCache, Options};
use crate::mount::{Note, Volume};
use crate::source::Source;
use filesystem::Fuse;
use serve::Server;
use splice::Device;

/// Threads that wait for requests. When all but one are busy with a slow
/// source, a request gets a thread of its own.
const THREADS: usize = 8;

pub struct Mount {
    session: JoinHandle<io::Result<()>>,
    volume: Arc<Volume>,
}

/// Unmounts from another thread than the one that waits for the end.
pub struct Stopper {
    mountpoint: PathBuf,
    volume: Arc<Volume>,
    unmounter: SessionUnmounter,
}

impl Mount {
    /// Mounts a source on a directory and begins to serve it. From here on
    /// the process must live, and has a umask of 0.
    pub fn begin(
        source: Arc<dyn Source>,
        mountpoint: &Path,
        options: &Options,
        note: Note,
    ) -> io::Result<(Self, Stopper)> {
        check(options)?;
        // Absolute, as the process may leave its directory before it ends.
        let mountpoint = mountpoint.canonicalize()?;
        rustix::process::umask(rustix::fs::Mode::empty());
        let name = source.name();
        let volume = Arc::new(Volume::new(source, options, note)?);
        let server = Arc::new(Server::new(Arc::clone(&volume)));
        // Only files of this machine have descriptors here.
        let is_local = options.mode == Mode::None && !volume.shared.source.is_remote();
        let splices = is_local && options.kernel != KernelCache::PassThrough;
        let config = config(options, name, !splices);
        let mut session = Session::new(Fuse(Arc::clone(&server)), &mountpoint, &config)?;
        // The handshake is over and no request has been read yet.
        server.notifier.set(session.notifier()).ok();
        if splices {
            let device = Device::new(session.as_fd().try_clone_to_owned()?);
            server.device.set(device).ok();
        }
        let unmounter = session.unmount_callable();
        let thread = std::thread::Builder::new().name("session".to_owned());
        let session = thread.spawn(move || session.run())?;
        let stopper = Stopper {
            mountpoint,
            volume: Arc::clone(&volume),
            unmounter,
        };
        Ok((Self { session, volume }, stopper))
    }

    /// Waits until it is unmounted, by whomever, and brings what is left to
    /// the source. Returns how many files could not be written back and are kept.
    pub fn wait(self) -> io::Result<usize> {
        let served = self.session.join();
        let files_kept = self.volume.close();
        match served {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
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
    pub fn stop(mut self) -> io::Result<usize> {
        for name in self.volume.open_names() {
            // The kernel's pages of it come here before the call returns;
            // `syncfs` does not wait for those of a FUSE file system. What
            // cannot be brought to the source is kept and told later.
            let file = std::fs::File::open(self.mountpoint.join(name));
            let _ = file.and_then(|file| file.sync_all());
        }
        let unmounted = match rustix::mount::unmount(&self.mountpoint, UnmountFlags::DETACH) {
            Err(rustix::io::Errno::PERM) => self.unmounter.unmount(),
            // Somebody else was faster.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        };
        let files_kept = self.volume.close();
        unmounted.map(|()| files_kept)
    }
}

/// Refuses what contradicts itself or may not be done.
fn check(options: &Options) -> io::Result<()> {
    let can = rustix::thread::capabilities(None)?.effective;
    let (kind, why) = match (options.kernel, options.mode) {
        (KernelCache::PassThrough, Mode::Whole | Mode::Blocks) => (
            io::ErrorKind::InvalidInput,
            "reads and writes can only pass through where nothing is cached",
        ),
        // What fsync promises is not shown to hold with one write-back behind
        // the other.
        (KernelCache::WriteBack, Mode::Whole | Mode::Blocks) => (
            io::ErrorKind::InvalidInput,
            "the kernel can only write back where nothing is cached here",
        ),
        // The kernel would refuse each single file later, of which it could only
        // be told by how slow it is.
        (KernelCache::PassThrough, _) if !can.contains(CapabilitySet::SYS_ADMIN) => (
            io::ErrorKind::PermissionDenied,
            "only root can let reads and writes pass through; choose another cache of the kernel's",
        ),
        _ => return Ok(()),
    };
    Err(io::Error::new(kind, why))
}

fn config(options: &Options, name: String, clones_device: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        // A comma would end the option.
        MountOption::FSName(name.replace(',', "_")),
        MountOption::Subtype("toll".to_owned()),
        MountOption::DefaultPermissions,
    ];
    if options.is_read_only {
        config.mount_options.push(MountOption::RO);
    }
    if options.allows_others {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(THREADS);
    config.clone_fd = clones_device;
    config
}
