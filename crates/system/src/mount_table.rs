//! The mounts of this namespace, and whether FUSE is available.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::process;

#[derive(Debug, Clone)]
pub struct MountEntry {
    pub point: PathBuf,
    /// Type of the file system, such as `ext4` or `fuse.sshfs`.
    pub kind: String,
    /// Device, or whatever the file system reports as its source.
    pub source: String,
    /// Options of the mount, then after a semicolon the options of the file system.
    pub options: String,
}

impl MountEntry {
    pub fn is_fuse(&self) -> bool {
        is_fuse(&self.kind)
    }
}

/// Whether a program serves file systems of this kind by FUSE.
pub fn is_fuse(kind: &str) -> bool {
    kind == "fuse" || kind.starts_with("fuse.")
}

/// All mounts, in the order of mounting.
pub fn mounts() -> Vec<MountEntry> {
    parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// The mount that contains a path, after following its links.
pub fn mount_of(path: &Path) -> Option<MountEntry> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    holding(mounts(), &path)
}

/// The source of the FUSE file system that is mounted on a directory.
pub fn served_at(point: &Path) -> Option<String> {
    // The last mount is on top.
    let mut at_point = mounts().into_iter().rev();
    let top = at_point.find(|mount| mount.point == point)?;
    top.is_fuse().then_some(top.source)
}

/// Why this user cannot mount by FUSE here; `None` if no obstacle is known.
pub fn fuse_obstacle() -> Option<String> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if let Err(errno) = open("/dev/fuse", flags, Mode::empty()) {
        let remedy = match errno {
            Errno::ACCESS => "give it the mode 0666, as udev does",
            _ => "load the kernel's module fuse",
        };
        return Some(format!("cannot open /dev/fuse: {errno}; {remedy}"));
    }
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && process::find("fusermount3").is_none() {
        return Some("fusermount3 is missing; install the package fuse3".into());
    }
    None
}

fn parse(mountinfo: &str) -> Vec<MountEntry> {
    mountinfo.lines().filter_map(entry).collect()
}

fn holding(mounts: Vec<MountEntry>, path: &Path) -> Option<MountEntry> {
    let holders = mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.point));
    // The later of two mounts on one point hides the earlier one.
    holders.max_by_key(|mount| mount.point.as_os_str().len())
}

/// One line of mountinfo (`proc_pid_mountinfo(5)`).
fn entry(line: &str) -> Option<MountEntry> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let (kind, source) = (right.next()?, right.next()?);
    let super_options = right.next().unwrap_or_default();
    Some(MountEntry {
        point: unescape(left.get(4)?).into(),
        kind: kind.to_owned(),
        source: unescape(source),
        options: format!("{};{super_options}", left.get(5)?),
    })
}

/// Undoes mountinfo's octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /mnt/with\\040space rw - 9p host rw,trans=virtio
31 22 0:26 / /mnt rw - tmpfs tmpfs rw
broken line
";

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let kind = |path: &str| holding(parse(MOUNTS), Path::new(path)).unwrap().kind;
        assert_eq!(kind("/home/x"), "ext4");
        assert_eq!(kind("/mnt/a"), "tmpfs");
        assert_eq!(kind("/mnt/with space/a"), "9p");
        assert_eq!(kind("/mntx"), "ext4");
    }
}
