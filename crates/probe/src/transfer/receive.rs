//! Receiving over a descriptor.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use toll_wire::{Channel, Failure, ReceiveMethod, Sink, TransferRequest};

use super::end::{Arrival, Incoming};
use super::link::ReceiverLink;
use super::mapped::MappedReceive;
use crate::buffer::{Buffer, checked_length};
use crate::copy::TransitPipe;
use crate::copy::mover::{CallError, Job, Moved, portion, write_all};

/// A way to take bytes from a stream into a file.
pub trait Taker {
    /// Takes `size_bytes` from `channel` into `file`, without allocating. The
    /// end of the stream before them shows in what was moved.
    fn take(
        &mut self,
        channel: BorrowedFd<'_>,
        file: &File,
        size_bytes: u64,
        arrival: &mut Arrival,
    ) -> Result<Moved, CallError>;

    /// How the method resolved what it was free to choose.
    fn note(&self) -> String;
}

pub struct StreamReceiver {
    link: ReceiverLink,
    taker: Box<dyn Taker>,
    size_bytes: u64,
}

impl StreamReceiver {
    /// The receiver's end of the request's channel, over what was made before
    /// the processes split.
    pub fn new(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        let buffer_bytes = checked_length(transfer.receiver_buffer_bytes)?;
        let taker: Box<dyn Taker> = match transfer.receiver {
            ReceiveMethod::ReadWrite => Box::new(ReadWrite(Buffer::aligned(buffer_bytes))),
            ReceiveMethod::Mmap => Box::new(MappedReceive::new(buffer_bytes)),
            ReceiveMethod::Splice => Box::new(Spliced::new(transfer.channel, buffer_bytes)?),
        };
        Ok(Self {
            link: ReceiverLink::new(pair),
            taker,
            size_bytes: transfer.size_bytes,
        })
    }
}

impl Incoming for StreamReceiver {
    fn connect(&mut self, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Failure> {
        self.link.connect(to)
    }

    fn receive_all(&mut self, file: &File, arrival: &mut Arrival) -> Result<Moved, CallError> {
        let channel = self.link.reader();
        self.taker.take(channel, file, self.size_bytes, arrival)
    }

    fn close(&mut self) {
        self.link.close();
    }

    fn break_off(&mut self) {
        self.link.break_off();
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("receiver: {}", self.taker.note())]
    }
}

/// `read` into a buffer and `write` from it.
struct ReadWrite(Buffer);

impl Taker for ReadWrite {
    fn take(
        &mut self,
        channel: BorrowedFd<'_>,
        file: &File,
        size_bytes: u64,
        arrival: &mut Arrival,
    ) -> Result<Moved, CallError> {
        let memory = self.0.bytes_mut();
        let mut moved = Moved::default();
        while moved.bytes < size_bytes {
            let wanted = portion(size_bytes - moved.bytes, memory.len());
            let length = match rustix::io::read(channel, &mut memory[..wanted]) {
                Ok(0) => break,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(CallError::of("read", errno)),
            };
            arrival.note();
            moved.calls += 1;
            write_all(file.as_fd(), &memory[..length], &mut moved.calls)?;
            moved.bytes += length as u64;
        }
        Ok(moved)
    }

    fn note(&self) -> String {
        format!("buffer of {} bytes", self.0.bytes().len())
    }
}

/// `splice` out of a pipe, or through an own one.
pub struct Spliced {
    transit: Option<TransitPipe>,
    chunk: usize,
}

impl Spliced {
    /// A taker that asks for `buffer_bytes` at a time.
    pub fn new(channel: Channel, buffer_bytes: usize) -> Result<Self, Failure> {
        let transit = match channel {
            Channel::Pipe => None,
            _ => Some(TransitPipe::new()?),
        };
        let chunk = match &transit {
            Some(pipe) => buffer_bytes.min(pipe.capacity),
            None => buffer_bytes,
        };
        Ok(Self { transit, chunk })
    }
}

impl Taker for Spliced {
    fn take(
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
        let target = self.transit.as_ref().map_or(job.sink, |pipe| pipe.writer());
        let mut moved = Moved::default();
        while moved.bytes < size_bytes {
            let wanted = portion(size_bytes - moved.bytes, self.chunk);
            let length = match splice(channel, None, target, None, wanted, SpliceFlags::MOVE) {
                Ok(0) => break,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(CallError::characteristic("splice", errno, moved.calls)),
            };
            arrival.note();
            moved.calls += 1;
            moved.bytes += length as u64;
            if let Some(pipe) = &self.transit {
                pipe.drain(&job, length, moved.bytes == size_bytes, &mut moved.calls)?;
            }
        }
        Ok(moved)
    }

    fn note(&self) -> String {
        match &self.transit {
            None => format!("splices of at most {} bytes out of the pipe", self.chunk),
            Some(pipe) => format!(
                "splices of at most {} bytes through an own pipe of {} bytes",
                self.chunk, pipe.capacity
            ),
        }
    }
}
