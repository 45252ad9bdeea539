//! What a program's system calls moved, and what they cost on this machine.
//!
//! The way of the data: calls are summed up ([`tally`]), and the sums are priced
//! ([`price`]) by what a stored run measured ([`costs`]). Calls come from lines of
//! strace ([`mod@line`], [`line_tally`]; [`assembly`] joins what threads cut in two),
//! or summed up already from BPF.
//!
//! Architecture invariant: no I/O here. The crate `toll` runs strace and loads BPF
//! programs, and hands in what they tell; `cmd` prints.

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

/// All system calls, as [`TRACED_CALLS`] is those of interest.
pub const ALL_CALLS: &[&str] = &[];

/// System calls that move bytes, or tell where the next bytes come from; the
/// question mark makes strace ignore those that this architecture lacks.
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
