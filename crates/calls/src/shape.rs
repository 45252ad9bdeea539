//! Meaning of the arguments and results of system calls that move bytes.

/// Direction of bytes, as seen from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Read,
    Written,
}

/// How a call takes part in advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The call moves the next bytes of a stream: several calls could be one.
    Stream,
    /// The call moves bytes at a position that it names, or a message with its own boundaries.
    Apart,
    /// The call moves bytes between two file descriptors without a buffer in the program.
    Transfer,
    /// The call sets the position from which the next bytes come, and moves none.
    Seek,
}

/// Where a call's bytes come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Directions, each with the index of its file descriptor among the arguments.
    pub ends: &'static [(Direction, usize)],
    pub role: Role,
    /// Index of the argument that is the requested number of bytes.
    pub asked: Option<usize>,
}

impl Shape {
    /// Returns the shape of a call. `None` for a call that neither moves bytes nor seeks, or whose
    /// result does not count the bytes.
    pub fn for_call(call: &str) -> Option<Self> {
        use Direction::{Read, Written};
        use Role::{Apart, Seek, Stream, Transfer};
        let (ends, role, asked): (&[(Direction, usize)], Role, Option<usize>) = match call {
            "read" => (&[(Read, 0)], Stream, Some(2)),
            "write" => (&[(Written, 0)], Stream, Some(2)),
            "readv" => (&[(Read, 0)], Stream, None),
            "writev" => (&[(Written, 0)], Stream, None),
            "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" | "recv" => {
                (&[(Read, 0)], Apart, None)
            }
            "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "send" => {
                (&[(Written, 0)], Apart, None)
            }
            "vmsplice" => (&[(Written, 0)], Transfer, None),
            "sendfile" | "sendfile64" => (&[(Written, 0), (Read, 1)], Transfer, None),
            "splice" | "copy_file_range" => (&[(Read, 0), (Written, 2)], Transfer, None),
            "tee" => (&[(Read, 0), (Written, 1)], Transfer, None),
            "lseek" | "_llseek" => (&[(Read, 0)], Seek, None),
            _ => return None,
        };
        Some(Self { ends, role, asked })
    }
}
