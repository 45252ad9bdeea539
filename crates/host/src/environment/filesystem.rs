//! File systems under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, StatVfsMountFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use toll_system::Cannot;
use toll_system::mount_table::{MountEntry, is_fuse, mounts};
use toll_system::private_directory::Directory;
use toll_system::process;

use super::cleanup_journal::{Change, Journal, with_path};
use super::inspect::file_system_of;

/// Smallest image: `mkfs.xfs` refuses less than 300 MiB.
const IMAGE_BYTES_MIN: u64 = 512 << 20;

/// File system types that count as foreign: another program or machine holds the files.
const FOREIGN_KINDS: &[&str] = &["9p", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "vboxsf"];

/// Longest wait for a server to mount. A server over SSH connects first.
const MOUNT_PATIENCE: Duration = Duration::from_secs(20);

/// A file system under test. Dropping it unmounts it if we mounted it, and kills
/// the server if we started it.
#[derive(Debug)]
pub(super) struct Mounted {
    /// Where files may be created.
    pub directory: PathBuf,
    /// Mount point to unmount at the end, if we mounted it.
    mount_point: Option<PathBuf>,
    /// The server of a user-level file system, if we started it.
    server: Option<Child>,
    /// Where the files are stored, if this file system shows the files of another one.
    pub below: Option<PathBuf>,
    /// Why files stay in memory when they are dropped from the page cache; `None` if they do
    /// not.
    pub cold_obstacle: Option<String>,
}

impl Mounted {
    /// Wraps a directory of a file system that is already mounted.
    pub fn there(directory: PathBuf) -> Self {
        Self {
            directory,
            mount_point: None,
            server: None,
            below: None,
            cold_obstacle: None,
        }
    }

    fn at(point: &Path) -> Self {
        let mut mounted = Self::there(point.to_owned());
        mounted.mount_point = Some(point.to_owned());
        mounted
    }

    /// Waits until a server has mounted `below` at `point`.
    pub fn served(point: &Path, below: PathBuf, server: Child) -> Result<Self, String> {
        let mut mounted = Self::at(point);
        mounted.below = Some(below);
        let server = mounted.server.insert(server);
        let deadline = Instant::now() + MOUNT_PATIENCE;
        loop {
            if is_fuse(&file_system_of(point).kind) && fs::metadata(point).is_ok() {
                break;
            }
            if let Ok(Some(_)) = server.try_wait() {
                return Err("its server ended without a message".into());
            }
            if Instant::now() > deadline {
                return Err(format!("it took more than {} s", MOUNT_PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(point) = &self.mount_point {
            unmount(point);
        }
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Moves this thread, and what it starts, into a new mount namespace. Mounts made there vanish with
/// the last process in it, so even `kill -9` leaves none behind. Must be called before other
/// threads start, since they would stay outside. Needs root.
pub(super) fn enter_mount_namespace() -> Result<(), String> {
    let wrong = |error: rustix::io::Errno| format!("cannot make a mount namespace: {error}");
    // SAFETY: only the flag CLONE_FILES makes descriptors owned elsewhere
    // invalid; NEWNS, and the FS that it implies, unshare nothing that Rust relies on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(wrong)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(wrong)
}

/// How a file system is made on a loop device.
struct LoopKind {
    kind: &'static str,
    make_options: &'static [&'static str],
    mount_options: &'static [&'static str],
}

impl LoopKind {
    fn named(name: &str) -> Option<Self> {
        let (kind, make_options, mount_options): (_, &[_], &[_]) = match name {
            "ext4" => ("ext4", &["-F"], &[]),
            "xfs" => ("xfs", &["-f"], &[]),
            // With this option stat(2) reports the stripe as the preferred I/O size
            // (xfs_stat_blksize in fs/xfs/xfs_iops.c). The log of a striped file system
            // needs 64 MiB in one allocation group.
            "xfs-striped" => (
                "xfs",
                &["-f", "-b", "size=2048", "-d", "su=2048,sw=3,agcount=2"],
                &["-o", "largeio"],
            ),
            "btrfs" => ("btrfs", &["-f"], &[]),
            _ => return None,
        };
        Some(Self {
            kind,
            make_options,
            mount_options,
        })
    }
}

/// Returns why a file system on a loop device is not available; `None` if it is.
pub(super) fn loop_obstacle(name: &str) -> Option<String> {
    let Some(LoopKind { kind, .. }) = LoopKind::named(name) else {
        return Some(format!("there is no file system {name}"));
    };
    if !rustix::process::geteuid().is_root() {
        return Some(format!("{kind} on a loop device needs root"));
    }
    let tool = format!("mkfs.{kind}");
    if process::find(&tool).is_none() {
        let package = match kind {
            "ext4" => "e2fsprogs",
            "xfs" => "xfsprogs",
            _ => "btrfs-progs",
        };
        return Some(format!("{tool} is missing; install the package {package}"));
    }
    if !kernel_has(kind) {
        return Some(format!("this kernel has no {kind}"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there are no loop devices".into());
    }
    None
}

fn kernel_has(kind: &str) -> bool {
    let listed = || {
        fs::read_to_string("/proc/filesystems")
            .unwrap_or_default()
            .lines()
            .any(|line| line.split_whitespace().last() == Some(kind))
    };
    // A file system built as a module is listed only once the module is loaded. mount would load
    // it, and so may this program.
    listed() || (process::run("modprobe", &[kind.as_ref()]).is_ok() && listed())
}

/// Makes a file system on a loop device over an image in `directory`.
pub(super) fn mount_loop(
    name: &str,
    directory: &Path,
    bytes_needed: u64,
    journal: &mut Journal,
) -> Result<Mounted, String> {
    if let Some(reason) = loop_obstacle(name) {
        return Err(reason);
    }
    let LoopKind {
        kind,
        make_options,
        mount_options,
    } = LoopKind::named(name).expect("it has no obstacle");
    let image = directory.join(format!("{name}.img"));
    let point = directory.join(name);
    fs::create_dir(&point).cannot("make", &image)?;
    let file = fs::File::create(&image).cannot("make", &image)?;
    file.set_len(bytes_needed.max(IMAGE_BYTES_MIN))
        .cannot("make", &image)?;
    drop(file);
    let make_options = [&["-q"][..], make_options].concat();
    journal.run(&format!("mkfs.{kind}"), &make_options, &image)?;
    journal.note(Change::LoopImage(image.clone()))?;
    // Uses direct I/O below the loop device. Otherwise the image's pages stay in the host's page
    // cache, and a file dropped from the cache above is still warm.
    let attach = |options: &[&str]| journal.run("losetup", options, &image);
    let device = attach(&["--find", "--show", "--direct-io=on"])
        .or_else(|_| attach(&["--find", "--show"]))?;
    let cold_obstacle = (!has_direct_io(&device)).then(|| {
        format!(
            "the loop device under {name} reads its image through the page cache, since {} refuses \
             direct I/O; choose another place with --work-dir",
            file_system_of(&image).kind
        )
    });
    let mount_options = [&["-t", kind][..], mount_options, &[device.as_str()]].concat();
    let mounted = journal.run("mount", &mount_options, &point);
    // A device that is detached in use clears itself after its last user.
    let detached = journal.run("losetup", &["-d"], Path::new(&device));
    mounted.and(detached)?;
    let mut mounted = Mounted::at(&point);
    mounted.cold_obstacle = cold_obstacle;
    Ok(mounted)
}

/// Whether a loop device bypasses the page cache below it. The kernel may make a device without
/// direct I/O although direct I/O was requested. No call reports that (loop_update_dio in
/// drivers/block/loop.c).
fn has_direct_io(device: &str) -> bool {
    let name = device.trim().trim_start_matches("/dev/");
    let state = fs::read_to_string(format!("/sys/block/{name}/loop/dio"));
    state.is_ok_and(|state| state.trim() == "1")
}

const NO_TMPFS: &str = "tmpfs needs root or a writable /dev/shm";

/// Returns why tmpfs is not available; `None` if it is.
pub(super) fn tmpfs_obstacle() -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root && shared_memory_directory().is_none()).then(|| NO_TMPFS.into())
}

fn shared_memory_directory() -> Option<PathBuf> {
    let path = PathBuf::from("/dev/shm");
    (file_system_of(&path).kind == "tmpfs" && is_writable(&path)).then_some(path)
}

/// Mounts a new tmpfs as root; otherwise uses `/dev/shm`.
pub(super) fn mount_tmpfs(
    directory: &Path,
    bytes_needed: u64,
    journal: &mut Journal,
) -> Result<Mounted, String> {
    if !rustix::process::geteuid().is_root() {
        let base = shared_memory_directory().ok_or(NO_TMPFS)?;
        return subdirectory(&base, journal);
    }
    let point = directory.join("tmpfs");
    fs::create_dir(&point).cannot("make", &point)?;
    let size = format!("size={}", bytes_needed.max(IMAGE_BYTES_MIN));
    journal.run("mount", &["-t", "tmpfs", "-o", &size, "toll"], &point)?;
    Ok(Mounted::at(&point))
}

/// Whether files on a file system of this type are held by another program or machine.
fn is_foreign(kind: &str) -> bool {
    FOREIGN_KINDS.contains(&kind) || is_fuse(kind)
}

/// Checks the directory that the user named for files on a foreign file system.
pub fn check_foreign(directory: &Path) -> Result<(), String> {
    let kind = file_system_of(directory).kind;
    let why = match (directory.is_dir(), is_foreign(&kind)) {
        (false, _) => "it is not a directory".to_owned(),
        (true, false) => {
            format!("it is on {kind}, not on 9p, virtiofs, NFS, SMB, vboxsf or FUSE")
        }
        (true, true) if !is_writable(directory) => "it is not writable".to_owned(),
        (true, true) => return Ok(()),
    };
    Err(format!(
        "cannot use {} as a foreign file system: {why}; name another --foreign-dir",
        directory.display()
    ))
}

/// Finds the program with which a run makes its own foreign file system.
pub(super) fn bindfs() -> Result<PathBuf, String> {
    if rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, 0.into()).is_err() {
        return Err("mounting with FUSE is not permitted; name a --foreign-dir".into());
    }
    process::find("bindfs").ok_or_else(|| {
        "bindfs is missing; install the package bindfs or name a --foreign-dir".into()
    })
}

/// Returns a directory on a foreign file system: inside the user's own, or the work directory seen
/// through `bindfs`, a pass-through on FUSE. Does not use other foreign mounts, which belong to
/// somebody else.
pub(super) fn mount_foreign(
    named: Option<&Path>,
    directory: &Path,
    journal: &mut Journal,
) -> Result<Mounted, String> {
    if let Some(named) = named {
        return subdirectory(named, journal);
    }
    let program = bindfs()?;
    let (below, point) = (directory.join("foreign-source"), directory.join("foreign"));
    for path in [&below, &point] {
        fs::create_dir(path).cannot("make", path)?;
    }
    journal.note(Change::MountPoint(point.clone()))?;
    let server = process::start(
        &[
            program.into(),
            "-f".into(),
            below.clone().into(),
            point.clone().into(),
        ],
        None,
    )?;
    Mounted::served(&point, below, server).map_err(|why| format!("bindfs did not mount: {why}"))
}

fn subdirectory(base: &Path, journal: &mut Journal) -> Result<Mounted, String> {
    let base = Directory::of_user(base, "--foreign-dir")?;
    let directory = journal.make_directory(&base, "toll")?;
    Ok(Mounted::there(directory))
}

fn is_writable(path: &Path) -> bool {
    let read_only =
        rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    !read_only && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Unmounts what a killed run left mounted. Only a run without its own mount namespace
/// leaves mounts. Other mounts stay.
pub(super) fn unmount_left(point: &Path) {
    // The kernel lists mounts by paths without links. A mount point whose server is gone cannot be
    // resolved, so its parent is.
    let directory = point.parent().and_then(|parent| parent.canonicalize().ok());
    let (Some(directory), Some(name)) = (directory, point.file_name()) else {
        return;
    };
    let point = &directory.join(name);
    let mounts = mounts();
    let mut here = mounts.iter().filter(|mount| mount.point == *point);
    if here.any(MountEntry::is_fuse) {
        // The removal of the directory reports a failure.
        unmount(point);
    }
}

/// Unmounts without waiting for users. A busy mount vanishes with the mount namespace.
fn unmount(point: &Path) {
    let _ = if rustix::process::geteuid().is_root() {
        rustix::mount::unmount(point, UnmountFlags::DETACH).map_err(drop)
    } else {
        process::run("fusermount3", &with_path(&["-u", "-z"], point))
            .map_err(drop)
            .map(drop)
    };
}
