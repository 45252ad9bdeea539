//! The kernel's side: mounting, serving requests, unmounting.

mod abilities;
mod convert;
mod filesystem;
mod requests;
mod serve;
mod splice;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::mount::UnmountFlags;
use rustix::thread::CapabilitySet;

use crate::cache::Mode;
use crate::mount::{Note, Volume, VolumeOptions};
use crate::source::Source;
use filesystem::Fuse;
use splice::Device;

/// Threads that wait for requests. When all but one are busy with a slow
/// source, a request gets a thread of its own.
const THREADS: usize = 8;

/// What the kernel keeps of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelCache {
    /// Pages for reading; a write goes on to this program at once.
    #[default]
    Pages,
    /// Pages for reading and writing, and their length and time of change:
    /// for mode `none`, and sources that nobody else changes.
    WriteBack,
    /// Nothing: each call of a program reaches this one.
    Direct,
    /// Reads and writes go to the source's file without this program: for
    /// local directories, mode `none`, and with `CAP_SYS_ADMIN`.
    PassThrough,
}

/// How a source is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is cached here.
    pub mode: Mode,
    /// What the kernel caches.
    pub kernel: KernelCache,
    /// Refuse all changes.
    pub is_read_only: bool,
    /// Other users than the mounting one may use it, as permissions allow.
    pub allows_others: bool,
    /// Show extended attributes, where the source has them. Without, the kernel
    /// does not ask for `security.capability` before it first writes to a file.
    pub shows_extended: bool,
    /// How long the kernel may use names and attributes without asking again.
    pub attribute_lifetime: Duration,
    /// A directory for local copies, which may become as large as the files
    /// that are open, and for journals.
    pub directory: PathBuf,
}

/// A mounted source, until it is unmounted.
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

/// What was left to be said at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Files that could not be written back; their copies are kept.
    pub files_kept: usize,
}

impl Mount {
    /// Mounts a source on a directory and begins to serve it. From here on
    /// the process must live, and has a umask of 0.
    ///
    /// # Errors
    ///
    /// If the options contradict each other, need root, or the kernel refuses.
    pub fn begin(
        source: Arc<dyn Source>,
        mountpoint: &Path,
        options: &Options,
        note: Note,
    ) -> io::Result<(Self, Stopper)> {
        refuse_contradictions(options)?;
        refuse_what_needs_root(options.kernel)?;
        // Absolute, as the process may leave its directory before it ends.
        let mountpoint = mountpoint.canonicalize()?;
        rustix::process::umask(rustix::fs::Mode::empty());
        let name = source.name();
        let volume = Volume::new(
            source,
            VolumeOptions {
                mode: options.mode,
                is_kernel_writing_back: options.kernel == KernelCache::WriteBack,
                attribute_lifetime: options.attribute_lifetime,
                directory: options.directory.clone(),
            },
            note,
        )?;
        let volume = Arc::new(volume);
        let fuse = Fuse::new(Arc::clone(&volume), options);
        let (notifier, device) = (fuse.notifier_slot(), fuse.device_slot());
        let splices = volume.can_splice() && options.kernel != KernelCache::PassThrough;
        let mut session = Session::new(fuse, &mountpoint, &config(options, name, !splices))?;
        // The handshake is over and no request has been read yet.
        notifier.set(session.notifier()).ok();
        if splices {
            device
                .set(Device::new(session.as_fd().try_clone_to_owned()?))
                .ok();
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
    /// the source.
    ///
    /// # Errors
    ///
    /// If the kernel's requests could not be served any more.
    pub fn wait(self) -> io::Result<Ended> {
        let served = self.session.join();
        let files_kept = self.volume.close();
        match served {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(Ended { files_kept })
    }
}

impl Stopper {
    /// Unmounts even if files are open: lets the kernel write its pages, lets
    /// nobody in any more, and brings all changes to the source. What is
    /// still open then can be read until the process ends, and not written.
    ///
    /// # Errors
    ///
    /// If it cannot be unmounted; all changes are at the source then, too.
    pub fn stop(mut self) -> io::Result<Ended> {
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
        unmounted.map(|()| Ended { files_kept })
    }
}

fn refuse_contradictions(options: &Options) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    match (options.kernel, options.mode) {
        (KernelCache::PassThrough, Mode::Whole | Mode::Blocks) => {
            refused("reads and writes can only pass through where nothing is cached")
        }
        // What fsync promises is not shown to hold with one write-back behind
        // the other.
        (KernelCache::WriteBack, Mode::Whole | Mode::Blocks) => {
            refused("the kernel can only write back where nothing is cached here")
        }
        _ => Ok(()),
    }
}

/// The kernel would refuse each single file later, of which it could only be
/// told by how slow it is.
fn refuse_what_needs_root(kernel: KernelCache) -> io::Result<()> {
    let can = rustix::thread::capabilities(None)?.effective;
    match kernel {
        KernelCache::PassThrough if !can.contains(CapabilitySet::SYS_ADMIN) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only root can let reads and writes pass through; choose another cache of the kernel's",
        )),
        _ => Ok(()),
    }
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
