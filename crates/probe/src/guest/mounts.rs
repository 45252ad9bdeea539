//! Mounts the file systems of a guest.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use toll_wire::guest::{SHARED_DIRECTORY, SHARED_TAG, TMPFS_DIRECTORY, WORK_DIRECTORY};

/// Mounts what a guest for trials needs: the kernel's file systems, a tmpfs for trials and one for
/// programs.
pub fn mount_all() -> Result<(), String> {
    mount_kernel()?;
    attach("tmpfs", TMPFS_DIRECTORY)?;
    // Some programs fail without a directory for temporary files.
    attach("tmpfs", "/tmp")
}

/// Mounts the kernel's file systems, which every guest has: processes, kernel objects, devices.
pub fn mount_kernel() -> Result<(), String> {
    attach("proc", "/proc")?;
    attach("sysfs", "/sys")?;
    attach("devtmpfs", "/dev")?;
    // These are for terminals, debugging and shared memory. A guest works without them.
    for (kind, point) in [
        ("devpts", "/dev/pts"),
        ("debugfs", "/sys/kernel/debug"),
        ("tmpfs", "/dev/shm"),
    ] {
        let _ = attach(kind, point);
    }
    Ok(())
}

pub fn mount_work(device: &Path) -> Result<(), String> {
    make_point(WORK_DIRECTORY)?;
    // Uses relatime, the kernel's default, as on the machines that are compared.
    mount(device, WORK_DIRECTORY, "ext4", MountFlags::RELATIME, None)
        .map_err(|errno| cannot("ext4", WORK_DIRECTORY, errno))
}

/// Mounts the directory of the host as WSL 2 mounted the Windows disk for the reports: the guest
/// caches no page of a file that is read or written, and requests up to 64 KiB at once. Linux 5.15
/// did so with `cache=mmap`, which keeps pages since 6.4.
pub fn mount_shared() -> Result<(), String> {
    make_point(SHARED_DIRECTORY)?;
    let options = c"trans=virtio,version=9p2000.L,cache=none,msize=65536";
    let flags = MountFlags::empty();
    mount(SHARED_TAG, SHARED_DIRECTORY, "9p", flags, Some(options))
        .map_err(|errno| cannot("9p", SHARED_DIRECTORY, errno))
}

/// Writes back dirty data of the work disk and unmounts it.
pub fn unmount_work() {
    rustix::fs::sync();
    // Files held open by dead processes do not keep the disk busy. If something
    // else does, its data is written back anyway.
    let _ = unmount(WORK_DIRECTORY, UnmountFlags::empty());
}

fn attach(kind: &str, point: &str) -> Result<(), String> {
    make_point(point)?;
    match mount(kind, point, kind, MountFlags::empty(), None) {
        // A kernel may be configured to mount devtmpfs itself.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(errno) => Err(cannot(kind, point, errno)),
    }
}

fn make_point(point: &str) -> Result<(), String> {
    fs::create_dir_all(point).map_err(|error| format!("cannot make {point}: {error}"))
}

fn cannot(kind: &str, point: &str, errno: Errno) -> String {
    format!(
        "cannot mount {kind} at {point}: {}; use a kernel with {kind}",
        std::io::Error::from(errno)
    )
}
