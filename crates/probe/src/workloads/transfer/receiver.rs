//! The receiver's side of a trial.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use toll_wire::{Failure, ReceiverReport, TransferMessage, TransferRequest, TransferTerms};

use super::channel::channel_name;
use super::control::Control;
use super::disk::Disk;
use super::link::Link;
use super::receive::{Arrival, Taker};
use super::sender::named;
use crate::clock;
use crate::failure::OrFail;
use crate::scratch::ScratchFile;
use crate::usage::{Scope, Usage};
use crate::verify::hash_file;
use crate::workloads::copy::mover::{CallError, Moved};

/// Serves the sender's requests until the sender ends the trial, over the pair made before the
/// fork, if any. An error that is returned has been sent to the sender.
pub fn serve(
    transfer: &TransferRequest,
    control: Control,
    pair: Option<OwnedFd>,
) -> Result<(), Failure> {
    let outcome = Receiver::new(transfer, &control, pair).and_then(|mut receiver| {
        let outcome = receiver.iterate();
        if outcome.is_err() {
            receiver.link.break_off();
        }
        outcome
    });
    if let Err(failure) = &outcome {
        // If the partner is gone, it needs no message.
        let _ = control.say(&TransferMessage::Failed(failure.clone()));
    }
    outcome
}

/// The receiver's end with its method. Made once for a trial, with all its
/// memory allocated and touched.
struct Receiver<'a> {
    transfer: &'a TransferRequest,
    control: &'a Control,
    link: Link,
    /// `None` if the device receives by one of its own methods.
    taker: Option<Taker>,
}

impl<'a> Receiver<'a> {
    fn new(
        transfer: &'a TransferRequest,
        control: &'a Control,
        pair: Option<OwnedFd>,
    ) -> Result<Self, Failure> {
        let mut link = Link::of_receiver(transfer, pair)?;
        let taker = match link.own_way() {
            Some(_) => None,
            None => Some(Taker::new(transfer)?),
        };
        Ok(Self {
            transfer,
            control,
            link,
            taker,
        })
    }

    fn notes(&self) -> Vec<String> {
        let note = match (&self.link, &self.taker) {
            (_, Some(taker)) => taker.note(),
            (Link::Device(device), None) => device.describe(),
            _ => unreachable!("only a device has ways of its own"),
        };
        vec![format!("receiver: {note}")]
    }

    fn iterate(&mut self) -> Result<(), Failure> {
        let mut scratch = ScratchFile::create(&self.transfer.directory)?;
        self.control.say(&TransferMessage::Hello {
            terms: TransferTerms::from(self.transfer),
            notes: self.notes(),
        })?;
        loop {
            match self.control.hear()? {
                TransferMessage::Begin { connect } => {
                    let report = self.receive(scratch.file(), connect)?;
                    self.control.say(&TransferMessage::Received(report))?;
                    scratch.renew()?;
                }
                TransferMessage::End => return Ok(()),
                other => return Err(self.control.unexpected(&other)),
            }
        }
    }

    fn receive(
        &mut self,
        file: &File,
        connect: Option<SocketAddr>,
    ) -> Result<ReceiverReport, Failure> {
        let from = self.link.connect(connect)?;
        let disk = Disk::containing(file);
        let written_before = disk.as_ref().and_then(Disk::written);
        self.control.say(&TransferMessage::Ready { from })?;
        let mut arrival = Arrival::default();
        let before = Usage::now(Scope::Process);
        let received = self.receive_all(file, &mut arrival);
        let end_ns = clock::now_ns();
        let moved = received
            .and_then(|moved| moved.checked(self.transfer.size_bytes, "read"))
            .map_err(|error| self.why_broken(error))?;
        self.control.signal()?;
        let used = Usage::now(Scope::Process).since(&before);
        let written = disk.as_ref().and_then(Disk::written);
        let mut metrics = self.link.metrics()?;
        if let (Some(before), Some(after)) = (written_before, written) {
            let written = after.since(before);
            metrics.push(("receiver_disk_writes", written.requests));
            metrics.push(("receiver_disk_write_bytes", written.bytes));
        }
        self.link.close();
        let arrived = hash_file(file).failed_to("read back what was received")?;
        Ok(ReceiverReport {
            end_ns,
            duration_ns: arrival.until(end_ns),
            calls: moved.calls,
            bytes: arrived.bytes,
            xxh3: arrived.xxh3.unwrap_or_default(),
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            minor_faults: used.minor_faults,
            metrics: metrics
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        })
    }

    /// Receives all bytes into a file, which is empty, at its beginning, and
    /// open for reading and writing. Does not allocate.
    fn receive_all(&mut self, file: &File, arrival: &mut Arrival) -> Result<Moved, CallError> {
        let size_bytes = self.transfer.size_bytes;
        if let Some(taker) = &mut self.taker {
            return taker.take(self.link.descriptor(), file, size_bytes, arrival);
        }
        let device = self.link.own_way().expect("only a device has one");
        let receiver = device.connection_mut();
        receiver.receive_all(file.as_fd(), size_bytes, &mut || arrival.note())
    }

    /// Returns the cause of a failed call: the other end, or this end's own
    /// file.
    fn why_broken(&mut self, error: CallError) -> Failure {
        self.link.break_off();
        let is_broken = error.is_of_stream() || error.errno.is_none();
        let reason = is_broken.then(|| self.control.reason_to_break()).flatten();
        reason.unwrap_or_else(|| {
            let sink = format!("a file in {}", self.transfer.directory.display());
            let failure = error.into_failure(channel_name(self.transfer.channel), &sink);
            named(failure, "receive")
        })
    }
}
