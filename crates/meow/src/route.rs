//! Which way of copying suits a source and a sink.
//!
//! Architecture invariant: no I/O. The choice follows from what the two ends
//! are, and comes with its reason.

use crate::ends::Kind;

/// A way to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// splice(2) between two ends of which one is a pipe.
    Splice,
    /// sendfile(2).
    Sendfile,
    /// copy_file_range(2).
    CopyFileRange,
    /// read(2) and write(2) through one buffer; works everywhere.
    Buffer,
}

impl Method {
    /// The name of the call, or what is used for lack of one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Splice => "splice",
            Self::Sendfile => "sendfile",
            Self::CopyFileRange => "copy_file_range",
            Self::Buffer => "read and write",
        }
    }
}

/// Bytes of the buffer. Where the size of a copy's buffer was swept, time no
/// longer fell beyond this size, and a larger one leaves a CPU's own cache.
pub const BUFFER_BYTES: usize = 128 << 10;

/// Bytes that go through the buffer before pipes are enlarged and spliced,
/// where a source does not tell how much there is: as much as a pipe holds by
/// default, so that a short message costs a read and a write and no more.
const LEAD_BYTES: u64 = 64 << 10;

/// How a source is copied to a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Methods in the order of trying; each goes on where the one before ended
    /// or was refused. The last is the buffer.
    pub methods: &'static [Method],
    /// Bytes that go through the buffer before the first method.
    pub lead_bytes: u64,
    /// Why the first method is the first.
    pub why: &'static str,
}

/// Chooses a route. `size_bytes` is the source's, where it tells one;
/// `must_copy` forbids handing over pages that somebody else can change.
pub fn choose(source: Kind, sink: Kind, size_bytes: Option<u64>, must_copy: bool) -> Route {
    use Method::{Buffer, CopyFileRange, Sendfile, Splice};
    let through_buffer = |why| Route {
        methods: &[Buffer],
        lead_bytes: 0,
        why,
    };
    let is_short = size_bytes.is_some_and(|size| size <= BUFFER_BYTES as u64);
    // A pipe and a socket keep references to pages until the reader takes
    // them; files and /dev/null are done with them when the call returns.
    if must_copy && matches!(sink, Kind::Pipe | Kind::Socket) {
        return through_buffer("--copy asks that the reader gets what was read, and nothing later");
    }
    let (methods, lead_bytes, why): (&'static [Method], u64, &'static str) = match (source, sink) {
        (Kind::File, Kind::Pipe | Kind::Socket | Kind::Null | Kind::File) if is_short => {
            return through_buffer("the file is short, so that one read and one write are least");
        }
        (Kind::File, Kind::Pipe) => (
            &[Splice, Buffer],
            0,
            "the pipe takes the file's pages themselves, so that the reader's copy is the only one",
        ),
        (Kind::File, Kind::Socket) => (
            &[Sendfile, Buffer],
            0,
            "the socket takes the file's pages themselves, so that the receiver's copy is the \
             only one",
        ),
        (Kind::File, Kind::Null) => (
            &[Sendfile, Buffer],
            0,
            "the file's pages are brought into memory, and nobody needs a copy of them",
        ),
        (Kind::File, Kind::File) => (
            &[CopyFileRange, Sendfile, Buffer],
            0,
            "a file system may share blocks of two files, and else the kernel copies only once",
        ),
        (Kind::Pipe, Kind::Pipe) => (
            &[Splice, Buffer],
            LEAD_BYTES,
            "pages move from one pipe to the other without a copy",
        ),
        (Kind::Pipe, Kind::File | Kind::Socket | Kind::Null) => (
            &[Splice, Buffer],
            LEAD_BYTES,
            "what the pipe holds is passed on inside the kernel, without a copy to this program",
        ),
        (Kind::EmptyFile, _) => {
            return through_buffer("a file without a size may be made up as it is read");
        }
        (_, Kind::AppendedFile) => {
            return through_buffer("the kernel's own ways refuse to append");
        }
        _ => return through_buffer("it works between any two ends"),
    };
    Route {
        methods,
        lead_bytes,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Option<u64> = Some(1 << 30);

    const ALL: [Kind; 8] = [
        Kind::File,
        Kind::EmptyFile,
        Kind::AppendedFile,
        Kind::Pipe,
        Kind::Socket,
        Kind::Null,
        Kind::Device,
        Kind::Other,
    ];

    #[test]
    fn every_route_ends_in_the_buffer() {
        for source in ALL {
            for sink in ALL {
                for (size_bytes, must_copy) in [(None, false), (Some(0), true), (LARGE, false)] {
                    let route = choose(source, sink, size_bytes, must_copy);
                    assert_eq!(
                        route.methods.last(),
                        Some(&Method::Buffer),
                        "{source:?} {sink:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn with_copy_no_reader_gets_shared_pages() {
        for source in ALL {
            for sink in [Kind::Pipe, Kind::Socket] {
                let route = choose(source, sink, LARGE, true);
                assert_eq!(route.methods, [Method::Buffer], "{source:?} {sink:?}");
            }
        }
    }

    #[test]
    fn splice_is_chosen_only_with_a_pipe() {
        for source in ALL {
            for sink in ALL {
                let route = choose(source, sink, LARGE, false);
                if route.methods.contains(&Method::Splice) {
                    assert!(
                        source == Kind::Pipe || sink == Kind::Pipe,
                        "{source:?} {sink:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_short_file_goes_through_the_buffer() {
        for size in [0, 1, BUFFER_BYTES as u64] {
            let route = choose(Kind::File, Kind::Pipe, Some(size), false);
            assert_eq!(route.methods, [Method::Buffer], "{size}");
        }
        let route = choose(Kind::File, Kind::Pipe, Some(BUFFER_BYTES as u64 + 1), false);
        assert_eq!(route.methods[0], Method::Splice);
    }
}
