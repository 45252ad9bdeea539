//! File systems under test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::fs::{OFlags, StatVfsMountFlags};

use super::inspect::mounts;
use super::leftovers::Journal;
use super::process;

/// Smallest image: below 300 MiB `mkfs.xfs` refuses.
const IMAGE_BYTES_MIN: u64 = 512 << 20;

/// Types that count as foreign: files live with another program or machine.
const FOREIGN_KINDS: &[&str] = &["9p", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "vboxsf"];
/// A mounted file system under test.
#[derive(Debug)]
pub(super) struct Mounted {
    /// Where files may be made.
    pub directory: PathBuf,
    /// Mount point to be unmounted at the end, if it is ours.
    pub mount_point: Option<PathBuf>,
    /// The server of a user-level file system, if it is ours.
    pub server: Option<Child>,
    /// Where its files lie, if it shows those of another file system.
    pub below: Option<PathBuf>,
}

/// Why a file system made on a loop device cannot be had, if it cannot.
pub(super) fn loop_obstacle(kind: &str) -> Option<String> {
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
    // A file system built as a module is listed only once it is loaded; mount
    // would load it, and so may we.
    listed() || (process::run("modprobe", &[kind.as_ref()]).is_ok() && listed())
}

/// Makes a file system on a loop device over an image in `directory`.
pub(super) fn mount_loop(
    kind: &str,
    directory: &Path,
    bytes_needed: u64,
    journal: &mut Journal,
) -> Result<Mounted, String> {
    let image = directory.join(format!("{kind}.img"));
    let point = directory.join(kind);
    let wrong = |error: std::io::Error| format!("cannot make {}: {error}", image.display());
    fs::create_dir(&point).map_err(wrong)?;
    let file = fs::File::create(&image).map_err(wrong)?;
    file.set_len(bytes_needed.max(IMAGE_BYTES_MIN))
        .map_err(wrong)?;
    drop(file);
    let force: &OsStr = if kind == "ext4" { "-F" } else { "-f" }.as_ref();
    journal.run(
        &format!("mkfs.{kind}"),
        &["-q".as_ref(), force, image.as_ref()],
    )?;
    journal.image(&image)?;
    // Direct I/O below the loop device: else the image's pages stay in the
    // host's page cache, and a file dropped from the cache above is still warm.
    let device = journal
        .run(
            "losetup",
            &[
                "--find".as_ref(),
                "--show".as_ref(),
                "--direct-io=on".as_ref(),
                image.as_ref(),
            ],
        )
        .or_else(|_| {
            journal.run(
                "losetup",
                &["--find".as_ref(), "--show".as_ref(), image.as_ref()],
            )
        })?;
    let mounted = journal.run(
        "mount",
        &[
            "-t".as_ref(),
            kind.as_ref(),
            device.as_ref(),
            point.as_ref(),
        ],
    );
    // Detaching a device in use marks it to clear itself after the last user.
    let detached = journal.run("losetup", &["-d".as_ref(), device.as_ref()]);
    mounted.and(detached)?;
    Ok(Mounted {
        directory: point.clone(),
        mount_point: Some(point),
        server: None,
        below: None,
    })
}

/// Why no tmpfs can be had, if it cannot.
pub(super) fn tmpfs_obstacle() -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root && shared_memory_directory().is_none())
        .then(|| "tmpfs needs root or a writable /dev/shm".into())
}

fn shared_memory_directory() -> Option<PathBuf> {
    let path = PathBuf::from("/dev/shm");
    (super::inspect::file_system_of(&path).kind == "tmpfs" && is_writable(&path)).then_some(path)
}

/// Mounts a tmpfs of our own as root, else uses `/dev/shm`.
pub(super) fn mount_tmpfs(
    directory: &Path,
    bytes_needed: u64,
    journal: &mut Journal,
) -> Result<Mounted, String> {
    if !rustix::process::geteuid().is_root() {
        let base = shared_memory_directory().ok_or("tmpfs needs root or a writable /dev/shm")?;
        return subdirectory(&base, journal);
    }
    let point = directory.join("tmpfs");
    fs::create_dir(&point).map_err(|error| format!("cannot make {}: {error}", point.display()))?;
    let size = format!("size={}", bytes_needed.max(IMAGE_BYTES_MIN));
    let arguments = ["-t", "tmpfs", "-o", &size, "toll"].map(OsStr::new);
    journal.run("mount", &[&arguments[..], &[point.as_ref()]].concat())?;
    Ok(Mounted {
        directory: point.clone(),
        mount_point: Some(point),
        server: None,
        below: None,
    })
}

/// Whether files of this kind of file system live with another program or
/// machine.
fn is_foreign(kind: &str) -> bool {
    FOREIGN_KINDS.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.")
}

/// Checks the directory that the user named for files on a foreign file system.
///
/// # Errors
/// If it lies on none, or takes no files.
pub fn check_foreign(directory: &Path) -> Result<(), String> {
    let kind = super::inspect::file_system_of(directory).kind;
    let why = match (directory.is_dir(), is_foreign(&kind)) {
        (false, _) => "it is no directory".to_owned(),
        (true, false) => {
            format!("it lies on {kind}, not on 9p, virtiofs, NFS, SMB, vboxsf or FUSE")
        }
        (true, true) if !is_writable(directory) => "it takes no files".to_owned(),
        (true, true) => return Ok(()),
    };
    Err(format!(
        "cannot use {} as a foreign file system: {why}; name another --foreign-dir",
        directory.display()
    ))
}

/// The program by which a run makes a foreign file system of its own.
///
/// # Errors
/// Why it cannot.
pub(super) fn bindfs() -> Result<PathBuf, String> {
    if rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, 0.into()).is_err() {
        return Err("there is no right to mount by FUSE; name a --foreign-dir".into());
    }
    process::find("bindfs").ok_or_else(|| {
        "bindfs is missing; install the package bindfs or name a --foreign-dir".into()
    })
}

/// Gives a directory on a foreign file system: in the one that the user named,
/// or the work directory seen through `bindfs`, a pass-through on FUSE. Others
/// that are mounted belong to somebody else.
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
        fs::create_dir(path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    }
    let server = process::start(&program, &["-f".as_ref(), below.as_ref(), point.as_ref()])?;
    let mut mounted = Mounted {
        directory: point.clone(),
        mount_point: Some(point.clone()),
        server: Some(server),
        below: Some(below),
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while super::inspect::file_system_of(&point).kind != "fuse"
        && !super::inspect::file_system_of(&point)
            .kind
            .starts_with("fuse.")
    {
        if std::time::Instant::now() > deadline {
            unmount(&mut mounted);
            return Err("bindfs did not mount within 5 s".into());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(mounted)
}

fn subdirectory(base: &Path, journal: &mut Journal) -> Result<Mounted, String> {
    let directory = base.join(format!("toll-{}", std::process::id()));
    journal.directory(&directory)?;
    fs::create_dir(&directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    Ok(Mounted {
        directory,
        mount_point: None,
        server: None,
        below: None,
    })
}

fn is_writable(path: &Path) -> bool {
    let read_only =
        rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    !read_only && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Unmounts what a killed run left mounted, which there is only without a
/// mount namespace of its own. Other mounts stay.
pub(super) fn unmount_left(point: &Path) {
    let is_served = |(mounted, file_system): &(String, _)| {
        let kind: &crate::run::FileSystem = file_system;
        Path::new(mounted) == point && kind.kind.starts_with("fuse")
    };
    if !mounts().iter().any(is_served) {
        return;
    }
    match rustix::process::geteuid().is_root() {
        // What cannot be unmounted is told when its directory is removed.
        true => drop(rustix::mount::unmount(
            point,
            rustix::mount::UnmountFlags::DETACH,
        )),
        false => drop(process::run(
            "fusermount3",
            &["-u".as_ref(), "-z".as_ref(), point.as_ref()],
        )),
    }
}

/// Unmounts what is ours and ends its server.
pub(super) fn unmount(mounted: &mut Mounted) {
    if let Some(point) = mounted.mount_point.take() {
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            // A busy mount goes with the namespace; nothing is to be told.
            let _ = rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH);
        } else {
            let _ = process::run("fusermount3", &["-u".as_ref(), point.as_ref()]);
        }
    }
    if let Some(mut server) = mounted.server.take() {
        let _ = server.kill();
        let _ = server.wait();
    }
}
