//! A mount namespace of our own.

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this thread, and what it starts, into a mount namespace of its own.
/// Mounts made there vanish with the last process in it, so that even
/// `kill -9` leaves none behind. Must be called before other threads start:
/// those would stay outside.
///
/// # Errors
/// Without the right to do so (root).
pub(super) fn enter() -> Result<(), String> {
    let wrong = |error: rustix::io::Errno| format!("cannot make a mount namespace: {error}");
    // SAFETY: of all flags only CLONE_FILES makes descriptors owned elsewhere
    // invalid; NEWNS and the FS it implies share nothing that Rust relies on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(wrong)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(wrong)
}
