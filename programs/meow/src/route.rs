//! Chooses the methods that suit a source and a sink.
//!
//! Architecture invariant: this module does no I/O. The choice depends on the arguments
//! alone, and its reason is returned with it.

use crate::ends::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Splice,
    /// splice(2) into the program's own pipe and out of it. Neither end is locked
    /// between the two calls, so the processes at the ends can continue.
    SpliceTwice {
        chunk: usize,
    },
    Sendfile,
    CopyFileRange,
    /// read(2) and write(2) through one buffer; works everywhere.
    Buffer,
}

impl Method {
    /// Returns the name of the call, or of the calls that replace it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Splice | Self::SpliceTwice { .. } => "splice",
            Self::Sendfile => "sendfile",
            Self::CopyFileRange => "copy_file_range",
            Self::Buffer => "read and write",
        }
    }
}

/// Size of the buffer in bytes. In a sweep of sizes, files and pipes gained nothing
/// beyond 128 KiB. A connection over loopback gained another quarter at 256 KiB, and
/// nothing beyond.
pub const BUFFER_BYTES: usize = 256 << 10;

/// Default size of a pipe in bytes (pipe(7)).
const PIPE_BYTES_DEFAULT: u64 = 64 << 10;

/// Bytes that go through the buffer before pipes are enlarged and spliced, if the
/// source does not report its size. This is the size of a pipe, so that a short message
/// costs one read and one write.
const LEAD_BYTES_FROM_PIPE: u64 = PIPE_BYTES_DEFAULT;

/// As `LEAD_BYTES_FROM_PIPE`, if the sink is a pipe. It is slightly more than a pipe
/// holds, so that a pipe that nobody reads takes no more memory.
const LEAD_BYTES_TO_PIPE: u64 = PIPE_BYTES_DEFAULT + (4 << 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Methods in the order in which they are tried. Each continues where the previous
    /// one ended or was refused. The last is the buffer.
    pub methods: &'static [Method],
    /// Bytes that go through the buffer before the first method.
    pub lead_bytes: u64,
    /// Size in bytes for pipes at the ends.
    pub pipe_bytes: usize,
    /// Why the first method was chosen.
    pub why: &'static str,
}

/// The largest pipe that an unprivileged process may have by default
/// (`pipe-max-size` in proc_sys_fs(5)).
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Size of the pipes, in bytes, if both ends are pipes. It is small enough that data is
/// still in a CPU's private cache when the next process reads it.
const PIPE_BYTES_BETWEEN: usize = 128 << 10;

/// Bytes that are passed to a socket at a time. Of several sizes tried, this one is
/// slightly the fastest.
const SOCKET_CHUNK_BYTES: usize = 128 << 10;

/// Bytes that are written at a time from a source file's pages to a file. This is
/// enough for a file system to allocate several pages together.
const FILE_CHUNK_BYTES: usize = 256 << 10;

const BY_SPLICE: &[Method] = &[
    Method::SpliceTwice {
        chunk: PIPE_BYTES_MAX,
    },
    Method::Buffer,
];
const TO_FILE: &[Method] = &[
    Method::SpliceTwice {
        chunk: FILE_CHUNK_BYTES,
    },
    Method::Buffer,
];
const TO_SHARING_FILE: &[Method] = &[
    Method::CopyFileRange,
    Method::SpliceTwice {
        chunk: FILE_CHUNK_BYTES,
    },
    Method::Buffer,
];

/// Chooses a route. `size_bytes` is the size of the source, if it reports one;
/// `must_copy` forbids handing over pages that somebody else can change.
pub fn choose(source: Kind, sink: Kind, size_bytes: Option<u64>, must_copy: bool) -> Route {
    let is_short = size_bytes.is_some_and(|size| size <= BUFFER_BYTES as u64);
    match (source, sink) {
        // A pipe and a socket keep references to pages until the reader takes
        // them; files and /dev/null are done with them when the call returns.
        (_, Kind::Pipe | Kind::Socket | Kind::NetworkSocket) if must_copy => {
            through_buffer("with --copy, the reader gets what was read and no later changes")
        }
        (Kind::EmptyFile, _) => {
            through_buffer("a file that claims to be empty may be generated as it is read")
        }
        (Kind::File, _) if is_short => {
            through_buffer("the file is short, so one read and one write cost least")
        }
        (_, Kind::AppendedFile) => through_buffer("the kernel's own methods refuse to append"),
        (Kind::File, _) => from_file(sink),
        (Kind::Pipe, _) => from_pipe(sink),
        _ => through_buffer("this method works between any two ends"),
    }
}

fn from_file(sink: Kind) -> Route {
    let (methods, why) = match sink {
        Kind::Pipe => (
            BY_SPLICE,
            "the pipe takes the file's own pages, so the reader makes the only copy",
        ),
        Kind::Socket => (
            &[
                Method::SpliceTwice {
                    chunk: SOCKET_CHUNK_BYTES,
                },
                Method::Buffer,
            ][..],
            "the socket takes the file's own pages, so the receiver makes the only copy",
        ),
        // TCP makes each page a fragment of a segment, and the receiver takes the
        // fragments one by one. Bytes from a buffer make larger fragments. Where the
        // buffer is slower, it loses less than splicing does elsewhere
        // (bench/results/cat-tcp.md).
        Kind::NetworkSocket => {
            return through_buffer(
                "TCP carries a buffer's bytes in larger pieces than a file's pages",
            );
        }
        Kind::Null => (
            &[Method::Sendfile, Method::Buffer][..],
            "the file's pages are read into memory, and nobody needs a copy of them",
        ),
        Kind::File => (
            TO_SHARING_FILE,
            "the file system may share blocks of both files, or else the kernel copies only once",
        ),
        Kind::CopiedFile => (TO_FILE, "the kernel copies only once, from page to page"),
        _ => return through_buffer("this method works between any two ends"),
    };
    Route {
        methods,
        lead_bytes: if sink == Kind::Pipe {
            LEAD_BYTES_TO_PIPE
        } else {
            0
        },
        pipe_bytes: PIPE_BYTES_MAX,
        why,
    }
}

fn from_pipe(sink: Kind) -> Route {
    let (methods, lead_bytes, pipe_bytes, why): (&[Method], _, _, _) = match sink {
        Kind::Pipe => (
            &[Method::Splice, Method::Buffer],
            LEAD_BYTES_TO_PIPE,
            PIPE_BYTES_BETWEEN,
            "pages move from one pipe to the other without a copy",
        ),
        Kind::File | Kind::CopiedFile | Kind::Socket | Kind::NetworkSocket | Kind::Null => (
            BY_SPLICE,
            LEAD_BYTES_FROM_PIPE,
            PIPE_BYTES_MAX,
            "the kernel forwards the content of the pipe without a copy to this program",
        ),
        _ => return through_buffer("this method works between any two ends"),
    };
    Route {
        methods,
        lead_bytes,
        pipe_bytes,
        why,
    }
}

fn through_buffer(why: &'static str) -> Route {
    Route {
        methods: &[Method::Buffer],
        lead_bytes: 0,
        pipe_bytes: 0,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Option<u64> = Some(1 << 30);

    const ALL: [Kind; 10] = [
        Kind::File,
        Kind::CopiedFile,
        Kind::EmptyFile,
        Kind::AppendedFile,
        Kind::Pipe,
        Kind::Socket,
        Kind::NetworkSocket,
        Kind::Null,
        Kind::Device,
        Kind::Other,
    ];

    #[test]
    fn every_route_ends_in_the_buffer_and_copy_shares_no_pages_with_a_reader() {
        let ends = ALL.map(|source| ALL.map(|sink| (source, sink)));
        for (source, sink) in ends.into_iter().flatten() {
            let methods = |size_bytes, must_copy| {
                let route = choose(source, sink, size_bytes, must_copy);
                let what = format!("{source:?} {sink:?}");
                assert_eq!(route.methods.last(), Some(&Method::Buffer), "{what}");
                let is_direct = route.methods.contains(&Method::Splice);
                let are_pipes = (source, sink) == (Kind::Pipe, Kind::Pipe);
                assert!(!is_direct || are_pipes, "{what}");
                route.methods
            };
            methods(None, false);
            methods(Some(0), true);
            methods(LARGE, false);
            if matches!(sink, Kind::Pipe | Kind::Socket | Kind::NetworkSocket) {
                assert_eq!(methods(LARGE, true), [Method::Buffer]);
            }
        }
    }

    #[test]
    fn a_short_file_goes_through_the_buffer() {
        let buffer = BUFFER_BYTES as u64;
        let methods = |size| choose(Kind::File, Kind::Pipe, Some(size), false).methods;
        for size in [0, 1, buffer] {
            assert_eq!(methods(size), [Method::Buffer], "{size}");
        }
        assert_eq!(methods(buffer + 1), BY_SPLICE);
    }
}
