//! Mounts and unmounts FUSE file systems: with mount(2) as root, otherwise with the
//! setuid program fusermount3 (mount.fuse3(8), fusermount3(1)).
//!
//! `fuser` can mount too, but when a mount has ended, it unmounts the path once more:
//! it takes the poll(2) event of a closed connection (`fuse_dev_poll` in fs/fuse/dev.c)
//! for a live mount. The second unmount would remove whatever somebody has mounted
//! there since.
#![expect(clippy::disallowed_methods, reason = "it starts fusermount3")]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::descriptors::restore_limit;

const HELPER: &str = "fusermount3";
const SUBTYPE: &str = "toll";

pub(super) struct Attachment<'a> {
    /// Name of the source in the list of mounts.
    pub name: &'a str,
    pub is_read_only: bool,
    pub allows_others: bool,
    /// Whether the kernel checks permissions, by the mode, owner and group that the
    /// mount shows.
    pub checks_permissions: bool,
}

impl Attachment<'_> {
    /// Mounts on a directory and returns the connection that serves it.
    pub fn mount(&self, mountpoint: &Path) -> io::Result<OwnedFd> {
        match self.mount_as_root(mountpoint) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                self.mount_by_helper(mountpoint)
            }
            mounted => mounted,
        }
    }

    fn mount_as_root(&self, mountpoint: &Path) -> io::Result<OwnedFd> {
        let mut device = OpenOptions::new();
        let device = OwnedFd::from(device.read(true).write(true).open("/dev/fuse")?);
        let mut data = format!(
            "fd={},rootmode={:o},user_id={},group_id={}",
            device.as_raw_fd(),
            File::open(mountpoint)?.metadata()?.mode(),
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        data += &self.options();
        let mut flags = MountFlags::NODEV | MountFlags::NOSUID;
        flags.set(MountFlags::RDONLY, self.is_read_only);
        let kind = format!("fuse.{SUBTYPE}");
        let data = CString::new(data)?;
        rustix::mount::mount(self.name, mountpoint, kind, flags, Some(data.as_c_str()))?;
        Ok(device)
    }

    /// Returns the options that have the same names for the kernel and for fusermount3.
    fn options(&self) -> String {
        let mut options = String::new();
        for (is_set, option) in [
            (self.checks_permissions, ",default_permissions"),
            (self.allows_others, ",allow_other"),
        ] {
            options += if is_set { option } else { "" };
        }
        options
    }

    /// Mounts with fusermount3, which sends the connection through a socket (`send_fd`
    /// in libfuse's util/fusermount.c).
    fn mount_by_helper(&self, mountpoint: &Path) -> io::Result<OwnedFd> {
        // A comma would end the option, and a backslash begins an escape.
        let name = self.name.replace('\\', r"\\").replace(',', r"\,");
        let mut options = format!("fsname={name},subtype={SUBTYPE}{}", self.options());
        if self.is_read_only {
            options += ",ro";
        }
        let (here, there) = UnixStream::pair()?;
        let helper = Command::new(HELPER)
            .args(["-o", &options, "--"])
            .arg(mountpoint)
            .env("_FUSE_COMMFD", "0")
            .stdin(Stdio::from(OwnedFd::from(there)))
            .stderr(Stdio::piped())
            .spawn()?;
        restore_limit(&helper);
        let received = receive_descriptor(&here);
        let said = helper.wait_with_output()?.stderr;
        received?.ok_or_else(|| io::Error::other(String::from_utf8_lossy(&said).trim().to_owned()))
    }
}

/// Returns the file descriptor that the peer sends; `None` if the peer closes the
/// socket first.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

/// Unmounts a mount point, even if files are open.
pub(super) fn unmount(mountpoint: &Path) -> io::Result<()> {
    match rustix::mount::unmount(mountpoint, UnmountFlags::DETACH) {
        Err(Errno::PERM) => {
            let mut helper = Command::new(HELPER);
            helper.args(["-u", "-z", "--"]).arg(mountpoint);
            helper.stdout(Stdio::null()).stderr(Stdio::piped());
            let helper = helper.spawn()?;
            restore_limit(&helper);
            let helper = helper.wait_with_output()?;
            let said = String::from_utf8_lossy(&helper.stderr);
            if helper.status.success() {
                Ok(())
            } else {
                Err(io::Error::other(said.trim().to_owned()))
            }
        }
        // Somebody else has unmounted it first.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Unmounts a mount point that is no longer served, for example because its connection
/// was aborted. A mount that somebody has made there since is served, and stays.
pub(super) fn unmount_if_dead(mountpoint: &Path) -> io::Result<()> {
    match rustix::fs::stat(mountpoint) {
        Err(Errno::NOTCONN) => unmount(mountpoint),
        _ => Ok(()),
    }
}
