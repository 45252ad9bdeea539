//! The sink of a copy, from opening it to counting the bytes that arrived.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt;
use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::{CacheState, Failure, Sink};

use super::mover::portion;
use super::reader::{Purpose, Reader};
use crate::failure::{self, OrFail};
use crate::page_cache;
use crate::scratch::ScratchFile;
use crate::usage::Usage;
use crate::verify::{Arrived, hash_file};

/// Requested size of each buffer of a socket pair: the kernel's default limit
/// (`wmem_max`). A fixed size keeps the kernel from tuning the window during the
/// first megabytes, and bounds how long a lent page is referred to.
pub const SOCKET_BUFFER_BYTES: usize = 212_992;

/// Largest number of bytes that a loopback connection holds: the kernel doubles the requested size
/// (socket(7)), and there is a buffer at each end.
pub const SOCKET_BUFFER_BYTES_MAX: usize = 2 * 2 * SOCKET_BUFFER_BYTES;

pub struct OpenSink {
    writer: Option<OwnedFd>,
    end: End,
}

enum End {
    Null,
    File(ScratchFile),
    Reader(Reader),
}

impl OpenSink {
    /// Opens a fresh sink. Its reader, if it has one, is ready to read.
    pub fn open(kind: Sink, directory: &Path, purpose: Purpose) -> Result<Self, Failure> {
        match kind {
            Sink::Null => open_null(),
            Sink::File => open_file(directory),
            Sink::Pipe => {
                let (reader, writer) =
                    pipe_with(PipeFlags::CLOEXEC).instrument_to("open a pipe as the sink")?;
                Self::with_reader(writer, reader, purpose)
            }
            Sink::Socket => {
                let (writer, reader) = connect_loopback()?;
                Self::with_reader(writer.into(), reader.into(), purpose)
            }
        }
    }

    /// Fills a file with `size_bytes` that are then on the device and not in the page
    /// cache. Leaves other sinks unchanged.
    pub fn lay_cold(&self, size_bytes: u64) -> Result<(), Failure> {
        let End::File(scratch) = &self.end else {
            return Ok(());
        };
        page_cache::check_state(scratch.file(), CacheState::Cold)?;
        let block = vec![0xa5; 1 << 20];
        let mut offset = 0;
        while offset < size_bytes {
            let length = portion(size_bytes - offset, block.len());
            let written = scratch.file().write_all_at(&block[..length], offset);
            written.failed_to("lay out the file that is overwritten")?;
            offset += length as u64;
        }
        page_cache::establish(scratch.file(), size_bytes, CacheState::Cold).map(drop)
    }

    fn with_reader(writer: OwnedFd, reader: OwnedFd, purpose: Purpose) -> Result<Self, Failure> {
        Ok(Self {
            writer: Some(writer),
            end: End::Reader(Reader::start(reader, purpose)?),
        })
    }

    pub fn writer(&self) -> BorrowedFd<'_> {
        self.writer
            .as_ref()
            .expect("the sink is open until it is finished")
            .as_fd()
    }

    /// Closes the writer, which ends the reader's input, and waits until the reader
    /// has everything. Returns when that was, in nanoseconds of the clock; `None`
    /// without a reader. A transfer ends when its bytes have arrived, not when they
    /// are queued, and before the waiting thread is woken.
    pub fn finish(&mut self) -> Option<u64> {
        match &self.end {
            // Closing a device or a file says nothing about its bytes.
            End::Null | End::File(_) => None,
            End::Reader(reader) => {
                self.writer = None;
                Some(reader.wait())
            }
        }
    }

    /// Closes the writer and waits for at most `patience`. Returns whether the reader,
    /// if there is one, has received everything.
    pub fn is_finished_within(&mut self, patience: Duration) -> bool {
        match &self.end {
            End::Null | End::File(_) => true,
            End::Reader(reader) => {
                self.writer = None;
                reader.is_done_within(patience)
            }
        }
    }

    /// Returns what arrived of `sent` bytes, and the reader's resource usage.
    pub fn arrived(self, sent: u64, purpose: Purpose) -> Result<(Arrived, Usage), Failure> {
        let arrived = match self.end {
            // The device keeps nothing, so only the writer's count is left.
            End::Null => Arrived {
                bytes: sent,
                xxh3: None,
            },
            End::File(scratch) => match purpose {
                Purpose::Hash => hash_file(scratch.file()),
                Purpose::Count | Purpose::Splice => {
                    scratch.file().metadata().map(|metadata| Arrived {
                        bytes: metadata.len(),
                        xxh3: None,
                    })
                }
            }
            .failed_to("read back what was copied")?,
            End::Reader(reader) => return reader.result().failed_to("read back what was copied"),
        };
        Ok((arrived, Usage::default()))
    }
}

fn open_null() -> Result<OpenSink, Failure> {
    let writer = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        .instrument_to("open /dev/null as the sink")?;
    Ok(OpenSink {
        writer: Some(writer),
        end: End::Null,
    })
}

fn open_file(directory: &Path) -> Result<OpenSink, Failure> {
    let scratch = ScratchFile::create(directory)?;
    // The probe reads back through its own descriptor. The method writes
    // through one from `open(O_WRONLY)`.
    let writer = open(
        scratch.path(),
        OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )
    .instrument_to("open the file as the sink")?;
    Ok(OpenSink {
        writer: Some(writer),
        end: End::File(scratch),
    })
}

fn connect_loopback() -> Result<(TcpStream, TcpStream), Failure> {
    connect_pair().map_err(|error| {
        if failure::is_without_network(&error) {
            failure::unsupported_by(
                "connect a socket over 127.0.0.1",
                &error,
                "bring the loopback interface up",
            )
        } else {
            failure::instrument_to("open a socket as the sink", &error)
        }
    })
}

fn connect_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // An accepted socket inherits its listener's buffer sizes.
    sockopt::set_socket_recv_buffer_size(&listener, SOCKET_BUFFER_BYTES)?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    sockopt::set_socket_send_buffer_size(&writer, SOCKET_BUFFER_BYTES)?;
    loop {
        let (reader, peer) = listener.accept()?;
        // Another process may have connected to the port first.
        if peer == writer.local_addr()? {
            return Ok((writer, reader));
        }
    }
}
