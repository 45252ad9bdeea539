//! The processes of a guest: where they find programs, and how all of them are ended.

use crate::children;

pub const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// Ends every process except the init itself and kernel threads. Call it only
/// where no child is waited for.
///
/// Every process here descends from the init and becomes its child when its own parent dies. So
/// once the init has no child, no process is left.
pub fn end_processes() {
    children::end(|| {
        // SAFETY: kill(2) takes plain integers; -1 names every process except process 1, which is
        // the caller.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    });
}
