//! Methods that take bytes from a channel into a file.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;
use rustix::fs::ftruncate;
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::MapFlags;
use toll_wire::{Failure, ReceiveMethod, Sink, TransferRequest};

use super::channel::kind_of;
use crate::buffer::{Buffer, checked_length};
use crate::clock;
use crate::mapping::{Mapping, READ_WRITE};
use crate::published_loops::OutputWindows;
use crate::workloads::copy::mmap::window_bytes;
use crate::workloads::copy::mover::{CallError, Job, Moved, portion, wait_for};
use crate::workloads::copy::read_write::ReadWrite;
use crate::workloads::copy::splice::Splice;

/// The time at which the first bytes of a transfer arrived.
#[derive(Debug, Default)]
pub struct Arrival {
    first_ns: Option<u64>,
}

impl Arrival {
    /// Notes that a call has brought bytes. Only the first time counts.
    pub fn note(&mut self) {
        if self.first_ns.is_none() {
            self.first_ns = Some(clock::now_ns());
        }
    }

    /// Returns the nanoseconds from the first bytes to `end_ns`; 0 if none
    /// arrived.
    pub fn until(&self, end_ns: u64) -> u64 {
        self.first_ns.map_or(0, |first| end_ns - first)
    }
}

/// A method that takes bytes from a file descriptor.
pub enum Taker {
    ReadWrite(ReadWrite),
    Mapped {
        buffer_bytes: usize,
    },
    Windows {
        buffer: Buffer,
        output: OutputWindows,
    },
    Splice(Splice),
}

impl Taker {
    pub fn new(transfer: &TransferRequest) -> Result<Self, Failure> {
        let bytes = transfer.receiver_buffer_bytes;
        let buffer_bytes = checked_length(bytes)?;
        Ok(match transfer.receiver {
            ReceiveMethod::ReadWrite => {
                Self::ReadWrite(ReadWrite::with_buffer(Buffer::aligned(buffer_bytes)))
            }
            ReceiveMethod::Mmap => Self::Mapped { buffer_bytes },
            ReceiveMethod::PublishedMmap => Self::Windows {
                buffer: Buffer::aligned(buffer_bytes),
                output: OutputWindows::new(checked_length(transfer.window_bytes)?),
            },
            ReceiveMethod::Splice => {
                Self::Splice(Splice::new(Some(bytes), kind_of(transfer.channel))?)
            }
        })
    }

    /// Takes `size_bytes` from `channel` into `file`, which is empty and at its
    /// beginning. Does not allocate. If the stream ends early, the result has
    /// fewer bytes.
    pub fn take(
        &mut self,
        channel: BorrowedFd<'_>,
        file: &File,
        size_bytes: u64,
        arrival: &mut Arrival,
    ) -> Result<Moved, CallError> {
        let job = Job {
            source: channel,
            sink: file.as_fd(),
            sink_kind: Sink::File,
            size_bytes,
        };
        match self {
            Self::ReadWrite(mover) => mover.run_telling(&job, || arrival.note()),
            Self::Splice(splice) => splice.run_telling(&job, || arrival.note()),
            Self::Mapped { buffer_bytes } => take_mapped(&job, *buffer_bytes, arrival),
            Self::Windows { buffer, output } => {
                take_by_windows(&job, buffer.bytes_mut(), output, arrival)
            }
        }
    }

    /// Describes what the method chose, such as sizes.
    pub fn note(&self) -> String {
        match self {
            Self::ReadWrite(mover) => format!("buffer of {} bytes", mover.buffer_bytes()),
            Self::Mapped { buffer_bytes } => format!(
                "reads of at most {buffer_bytes} bytes into windows of {} bytes",
                window_bytes(*buffer_bytes)
            ),
            Self::Windows { buffer, output } => format!(
                "reads of at most {} bytes, copied into windows of {}",
                buffer.bytes().len(),
                output.window_bytes()
            ),
            Self::Splice(splice) => match splice.sizes() {
                (chunk, None) => format!("splices of at most {chunk} bytes out of the pipe"),
                (chunk, Some(capacity)) => format!(
                    "splices of at most {chunk} bytes through a further pipe of {capacity} bytes"
                ),
            },
        }
    }
}

/// Reads into a mapping of the file, window by window. A window has the size of
/// the buffer, rounded up to whole pages. Mapping and unmapping are part of the
/// method, and so are the mapping's faults.
fn take_mapped(
    job: &Job<'_>,
    buffer_bytes: usize,
    arrival: &mut Arrival,
) -> Result<Moved, CallError> {
    let (window_bytes, size_bytes) = (window_bytes(buffer_bytes), job.size_bytes);
    let mut moved = Moved::default();
    if size_bytes == 0 {
        return Ok(moved);
    }
    // As published, the file grows and is mapped once there is something to put
    // into it. Before the sender begins, that would cost nothing.
    wait_for(job.source, PollFlags::IN);
    arrival.note();
    ftruncate(job.sink, size_bytes).map_err(|errno| CallError::new("ftruncate", errno))?;
    while moved.bytes < size_bytes {
        let length = portion(size_bytes - moved.bytes, window_bytes);
        let flags = MapFlags::SHARED;
        let mut window = Mapping::of_file(job.sink, moved.bytes, length, READ_WRITE, flags)
            .map_err(|errno| CallError::characteristic("mmap", errno, moved.calls))?;
        // SAFETY: the bytes only go to read(2).
        let memory = unsafe { window.bytes_mut() };
        let filled = fill(job.source, memory, buffer_bytes, &mut moved.calls)?;
        moved.bytes += filled as u64;
        if filled < length {
            break;
        }
    }
    Ok(moved)
}

/// Reads into a buffer, and copies from there into a mapping of the file.
fn take_by_windows(
    job: &Job<'_>,
    buffer: &mut [u8],
    output: &mut OutputWindows,
    arrival: &mut Arrival,
) -> Result<Moved, CallError> {
    let mut moved = Moved::default();
    while moved.bytes < job.size_bytes {
        let wanted = portion(job.size_bytes - moved.bytes, buffer.len());
        let length = retry_on_intr(|| rustix::io::read(job.source, &mut buffer[..wanted]))
            .map_err(|errno| CallError::new("read", errno))?;
        if length == 0 {
            break;
        }
        arrival.note();
        moved.calls += 1;
        output.append(job.sink, &buffer[..length], &mut |_| Ok(()))?;
        moved.bytes += length as u64;
    }
    output.finish(job.sink, &mut |_| Ok(()))?;
    Ok(moved)
}

/// Fills a window as far as the stream goes. Returns the bytes filled.
fn fill(
    channel: BorrowedFd<'_>,
    memory: &mut [u8],
    buffer_bytes: usize,
    calls: &mut u64,
) -> Result<usize, CallError> {
    let mut filled = 0;
    while filled < memory.len() {
        let end = memory.len().min(filled + buffer_bytes);
        match rustix::io::read(channel, &mut memory[filled..end]) {
            Ok(0) => break,
            Ok(length) => {
                filled += length;
                *calls += 1;
            }
            Err(Errno::INTR) => {}
            // The file system has no block for a page of the window.
            Err(Errno::FAULT) => return Err(CallError::new("read", Errno::NOSPC)),
            Err(errno) => return Err(CallError::new("read", errno)),
        }
    }
    Ok(filled)
}
