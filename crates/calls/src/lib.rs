//! What a program's system calls moved, and what they cost on this machine.
//!
//! Data flow: calls are summed up ([`tally`]), and the sums are priced ([`price`]) by what a stored
//! run measured ([`costs`]). Calls come from lines of strace ([`mod@line`], [`line_tally`];
//! [`assembly`] joins calls that threads cut in two). BPF delivers sums.
//!
//! Architecture invariant: this crate does no I/O. The crate `toll` runs strace, loads BPF programs
//! and passes in their output; `cmd` prints.

pub mod assembly;
pub mod costs;
pub mod descriptor;
pub mod line;
pub mod line_tally;
pub mod model;
pub mod price;
pub mod shape;
pub mod sizes;
pub mod slowdown;
pub mod tally;

/// All system calls, as an empty list. Compare [`TRACED_CALLS`].
pub const ALL_CALLS: &[&str] = &[];

/// System calls of interest: those that move bytes, or determine where the next bytes come from.
/// strace gets their names with a question mark, so that it ignores calls that this architecture
/// lacks.
pub const TRACED_CALLS: &[&str] = &[
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "sendfile",
    "sendfile64",
    "splice",
    "tee",
    "vmsplice",
    "copy_file_range",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "sendmmsg",
    "recvmmsg",
    "send",
    "recv",
    "io_uring_enter",
    "lseek",
    "_llseek",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "execve",
    "execveat",
];
