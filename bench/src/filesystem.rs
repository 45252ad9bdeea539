//! File systems of the file-to-file cases.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::case::FileSystem;
use crate::process;

/// Smallest image: below 300 MiB `mkfs.xfs` refuses.
const IMAGE_BYTES_MIN: u64 = 512 << 20;

/// Mounts a tmpfs below a directory.
///
/// # Errors
/// Without the right to mount.
pub(crate) fn mount_tmpfs(directory: &Path, bytes_needed: u64) -> Result<PathBuf, String> {
    let point = make_point(directory, "tmpfs")?;
    let size = format!("size={}", bytes_needed.max(IMAGE_BYTES_MIN));
    let arguments = ["-t", "tmpfs", "-o", &size, "bench-cat"].map(OsStr::new);
    process::run("mount", &[&arguments[..], &[point.as_ref()]].concat())?;
    Ok(point)
}

/// Why a file system made on a loop device cannot be had, if it cannot.
pub(crate) fn loop_obstacle(kind: FileSystem) -> Option<String> {
    let name = kind.name();
    if !rustix::process::geteuid().is_root() {
        return Some(format!("{name} on a loop device needs root"));
    }
    let tool = format!("mkfs.{name}");
    if process::find(&tool).is_none() {
        let package = match kind {
            FileSystem::Xfs => "xfsprogs",
            FileSystem::Btrfs => "btrfs-progs",
            _ => "e2fsprogs",
        };
        return Some(format!("{tool} is missing; install the package {package}"));
    }
    if !kernel_has(name) {
        return Some(format!("this kernel has no {name}"));
    }
    (!Path::new("/dev/loop-control").exists()).then(|| "there are no loop devices".into())
}

fn kernel_has(name: &str) -> bool {
    let listed = || {
        fs::read_to_string("/proc/filesystems")
            .unwrap_or_default()
            .lines()
            .any(|line| line.split_whitespace().last() == Some(name))
    };
    // One built as a module is listed only once it is loaded; mount would load
    // it, and so may we.
    listed() || (process::run("modprobe", &[name.as_ref()]).is_ok() && listed())
}

/// Makes a file system on a loop device over a sparse image in `directory`.
///
/// # Errors
/// If a tool is missing or fails.
pub(crate) fn mount_loop(
    kind: FileSystem,
    directory: &Path,
    bytes_needed: u64,
) -> Result<PathBuf, String> {
    let name = kind.name();
    let point = make_point(directory, name)?;
    let image = directory.join(format!("{name}.img"));
    let wrong = |error: std::io::Error| format!("cannot make {}: {error}", image.display());
    let file = File::create(&image).map_err(wrong)?;
    file.set_len(bytes_needed.max(IMAGE_BYTES_MIN))
        .map_err(wrong)?;
    drop(file);
    let force = if kind == FileSystem::Ext4 { "-F" } else { "-f" };
    process::run(
        &format!("mkfs.{name}"),
        &["-q".as_ref(), force.as_ref(), image.as_ref()],
    )?;
    let device = attach(&image)?;
    let mounted = process::run(
        "mount",
        &["-t", name, &device]
            .map(OsStr::new)
            .into_iter()
            .chain([point.as_ref()])
            .collect::<Vec<_>>(),
    );
    // Detaching a device in use marks it to clear itself after the last user.
    let detached = process::run("losetup", &["-d".as_ref(), device.as_ref()]);
    mounted.and(detached)?;
    // The device keeps it until it is cleared; after a kill no name is left.
    fs::remove_file(&image).map_err(wrong)?;
    Ok(point)
}

/// Attaches a loop device. Direct I/O below it, where the work file system has
/// that: else written pages would be copied into the image's page cache too.
fn attach(image: &Path) -> Result<String, String> {
    let attach = |options: &[&str]| {
        let arguments = options.iter().map(OsStr::new).chain([image.as_ref()]);
        process::run("losetup", &arguments.collect::<Vec<_>>())
    };
    attach(&["--find", "--show", "--direct-io=on"]).or_else(|_| attach(&["--find", "--show"]))
}

fn make_point(directory: &Path, name: &str) -> Result<PathBuf, String> {
    let point = directory.join(name);
    fs::create_dir(&point).map_err(|error| format!("cannot make {}: {error}", point.display()))?;
    Ok(point)
}
