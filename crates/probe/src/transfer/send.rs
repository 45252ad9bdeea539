//! Sending over a descriptor: the ways to copy from a file to a stream, and
//! those that only a transfer has.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use toll_wire::{CacheState, Failure, SendMethod, TransferRequest};

use super::end::Outgoing;
use super::link::{SenderLink, kind_of};
use super::mapped::MappedSend;
use super::zerocopy::Zerocopy;
use crate::buffer::{Buffer, checked_length};
use crate::copy::mover::{CallError, Job, Moved, Mover};
use crate::copy::read_write::ReadWrite;
use crate::copy::sendfile::Sendfile;
use crate::copy::splice::Splice;
use crate::copy::{Input, OpenSource, Uring};

pub struct StreamSender {
    link: SenderLink,
    mover: Box<dyn Mover>,
    source: OpenSource,
    input: Option<Input>,
    transfer: TransferRequest,
}

impl StreamSender {
    /// The sender's end of the request's channel, over what was made before the
    /// processes split.
    pub fn new(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        let source = OpenSource::of_file(&transfer.source, transfer.size_bytes, CacheState::Warm)?;
        Ok(Self {
            link: SenderLink::new(transfer, pair)?,
            mover: stream_mover(transfer)?,
            source,
            input: None,
            transfer: transfer.clone(),
        })
    }

    /// The way over the link, with what it needs for an iteration.
    fn job<'a>(
        link: &'a SenderLink,
        input: Option<&'a Input>,
        transfer: &TransferRequest,
    ) -> Job<'a> {
        Job {
            source: input.expect("the file was readied").as_fd(),
            sink: link.writer(),
            sink_kind: kind_of(transfer.channel),
            size_bytes: transfer.size_bytes,
        }
    }
}

pub fn stream_mover(transfer: &TransferRequest) -> Result<Box<dyn Mover>, Failure> {
    let bytes = transfer.buffer_bytes;
    let kind = kind_of(transfer.channel);
    Ok(match transfer.sender {
        SendMethod::ReadWrite => Box::new(ReadWrite::with_buffer(Buffer::aligned(checked_length(
            bytes,
        )?))),
        SendMethod::Mmap => Box::new(MappedSend::new(checked_length(bytes)?)),
        SendMethod::Sendfile => Box::new(Sendfile::new(Some(bytes))?),
        SendMethod::Splice => Box::new(Splice::new(Some(bytes), kind)?),
        SendMethod::Zerocopy => Box::new(Zerocopy::new(checked_length(bytes)?)),
        SendMethod::IoUring => Box::new(Uring::new(Some(bytes), kind)?),
    })
}

impl Outgoing for StreamSender {
    fn offer(&mut self) -> Result<Option<SocketAddr>, Failure> {
        self.link.address()
    }

    fn accept(&mut self, from: Option<SocketAddr>) -> Result<(), Failure> {
        self.link.accept(from)?;
        self.input = Some(self.source.ready()?);
        let job = Self::job(&self.link, self.input.as_ref(), &self.transfer);
        self.mover.prepare(&job)
    }

    fn send_all(&mut self) -> Result<Moved, CallError> {
        let job = Self::job(&self.link, self.input.as_ref(), &self.transfer);
        let moved = self.mover.run(&job)?;
        self.link.finish()?;
        Ok(moved)
    }

    fn close(&mut self) {
        self.link.close();
        self.input = None;
    }

    fn break_off(&mut self) {
        self.link.break_off();
    }

    fn notes(&self) -> Vec<String> {
        let methods = self.mover.notes().into_iter();
        let mut notes: Vec<String> = methods.map(|note| format!("sender: {note}")).collect();
        notes.extend(self.source.note());
        notes
    }
}
