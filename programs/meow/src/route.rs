//! Which way of copying suits a source and a sink.
//!
//! Architecture invariant: no I/O. The choice follows from what the two ends
//! are, and comes with its reason.

use crate::ends::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Splice,
    /// splice(2) into a pipe of the program's own and out of it. Between the
    /// two calls neither end is locked, so that what is behind it goes on.
    SpliceTwice {
        chunk: usize,
    },
    Sendfile,
    CopyFileRange,
    /// read(2) and write(2) through one buffer; works everywhere.
    Buffer,
}

impl Method {
    /// The name of the call, or what is used for lack of one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Splice | Self::SpliceTwice { .. } => "splice",
            Self::Sendfile => "sendfile",
            Self::CopyFileRange => "copy_file_range",
            Self::Buffer => "read and write",
        }
    }
}

/// Bytes of the buffer. Where its size was swept, files and pipes gained nothing
/// beyond 128 KiB, a connection over loopback another quarter at this size and
/// nothing beyond.
pub const BUFFER_BYTES: usize = 256 << 10;

/// Bytes that a pipe holds by default (pipe(7)).
const PIPE_BYTES_DEFAULT: u64 = 64 << 10;

/// Bytes that go through the buffer before pipes are enlarged and spliced,
/// where a source does not tell how much there is: as much as a pipe holds, so
/// that a short message costs a read and a write and no more.
const LEAD_BYTES_FROM_PIPE: u64 = PIPE_BYTES_DEFAULT;

/// The same where the sink is a pipe: a little more than that holds, so that no
/// memory is taken for a pipe that nobody reads.
const LEAD_BYTES_TO_PIPE: u64 = PIPE_BYTES_DEFAULT + (4 << 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Methods in the order of trying; each goes on where the one before ended
    /// or was refused. The last is the buffer.
    pub methods: &'static [Method],
    /// Bytes that go through the buffer before the first method.
    pub lead_bytes: u64,
    /// Bytes that pipes at the ends are to hold.
    pub pipe_bytes: usize,
    /// Why the first method is the first.
    pub why: &'static str,
}

/// The largest pipe that an unprivileged process may have by default
/// (`pipe-max-size` in proc_sys_fs(5)).
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Bytes of pipes at both ends. What one process has just written there and
/// the next will read should not leave a CPU's own cache in between.
const PIPE_BYTES_BETWEEN: usize = 128 << 10;

/// Bytes that a socket is given at once: of several sizes tried the fastest, though
/// by little.
const SOCKET_CHUNK_BYTES: usize = 128 << 10;

/// Bytes that are written to a file at once, from its own pages: enough for a
/// file system to allocate several pages together.
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

/// Chooses a route. `size_bytes` is the source's, where it tells one;
/// `must_copy` forbids handing over pages that somebody else can change.
pub fn choose(source: Kind, sink: Kind, size_bytes: Option<u64>, must_copy: bool) -> Route {
    let is_short = size_bytes.is_some_and(|size| size <= BUFFER_BYTES as u64);
    match (source, sink) {
        // A pipe and a socket keep references to pages until the reader takes
        // them; files and /dev/null are done with them when the call returns.
        (_, Kind::Pipe | Kind::Socket | Kind::NetworkSocket) if must_copy => {
            through_buffer("--copy asks that the reader gets what was read, and nothing later")
        }
        (Kind::EmptyFile, _) => {
            through_buffer("a file without a size may be made up as it is read")
        }
        (Kind::File, _) if is_short => {
            through_buffer("the file is short, so that one read and one write are least")
        }
        (_, Kind::AppendedFile) => through_buffer("the kernel's own ways refuse to append"),
        (Kind::File, _) => from_file(sink),
        (Kind::Pipe, _) => from_pipe(sink),
        _ => through_buffer("it works between any two ends"),
    }
}

fn from_file(sink: Kind) -> Route {
    let (methods, why) = match sink {
        Kind::Pipe => (
            BY_SPLICE,
            "the pipe takes the file's pages themselves, so that the reader's copy is the only one",
        ),
        Kind::Socket => (
            &[
                Method::SpliceTwice {
                    chunk: SOCKET_CHUNK_BYTES,
                },
                Method::Buffer,
            ][..],
            "the socket takes the file's pages themselves, so that the receiver's copy is the \
             only one",
        ),
        // TCP makes a segment's fragment of each page, which its receiver takes one
        // by one; of bytes from a buffer the fragments are larger. That loses less
        // where it is the slower way (bench/results/cat-tcp.md).
        Kind::NetworkSocket => {
            return through_buffer(
                "TCP carries a buffer's bytes in larger pieces than a file's pages",
            );
        }
        Kind::Null => (
            &[Method::Sendfile, Method::Buffer][..],
            "the file's pages are brought into memory, and nobody needs a copy of them",
        ),
        Kind::File => (
            TO_SHARING_FILE,
            "the file system may share blocks of two files, and else the kernel copies only once",
        ),
        Kind::CopiedFile => (TO_FILE, "the kernel copies only once, from page to page"),
        _ => return through_buffer("it works between any two ends"),
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
            "what the pipe holds is passed on inside the kernel, without a copy to this program",
        ),
        _ => return through_buffer("it works between any two ends"),
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
