//! The receiver's side of a trial.

use std::net::SocketAddr;

use toll_wire::{Failure, ReceiverReport, TransferMessage, TransferRequest, TransferTerms};

use super::control::Control;
use super::disk::Disk;
use super::end::{Arrival, Incoming};
use super::link::channel_name;
use super::sender::named;
use crate::copy::mover::{CallError, Moved};
use crate::scratch::ScratchFile;
use crate::usage::{Scope, Usage};
use crate::verify::hash_file;
use crate::{clock, failure};

pub struct Receiver<'a> {
    transfer: &'a TransferRequest,
    control: Control,
}

impl<'a> Receiver<'a> {
    pub fn new(transfer: &'a TransferRequest, control: Control) -> Self {
        Self { transfer, control }
    }

    /// Does what the sender asks, over the end that `open` makes, until it needs
    /// no more.
    pub fn serve(
        &self,
        open: impl FnOnce() -> Result<Box<dyn Incoming>, Failure>,
    ) -> Result<(), Failure> {
        let outcome = open().and_then(|mut incoming| {
            let outcome = self.iterate(&mut *incoming);
            if outcome.is_err() {
                incoming.break_off();
            }
            outcome
        });
        if let Err(failure) = &outcome {
            // A partner that is gone needs no word.
            let _ = self.control.say(&TransferMessage::Failed(failure.clone()));
        }
        outcome
    }

    fn iterate(&self, incoming: &mut dyn Incoming) -> Result<(), Failure> {
        let mut scratch = ScratchFile::create(&self.transfer.directory)?;
        self.control.say(&TransferMessage::Hello {
            terms: TransferTerms::from(self.transfer),
            notes: incoming.notes(),
        })?;
        loop {
            match self.control.hear()? {
                TransferMessage::Begin { connect } => {
                    let report = self.receive(incoming, &scratch, connect)?;
                    self.control.say(&TransferMessage::Received(report))?;
                    scratch.renew()?;
                }
                TransferMessage::End => return Ok(()),
                other => return Err(self.control.unexpected(&other)),
            }
        }
    }

    fn receive(
        &self,
        incoming: &mut dyn Incoming,
        scratch: &ScratchFile,
        connect: Option<SocketAddr>,
    ) -> Result<ReceiverReport, Failure> {
        let from = incoming.connect(connect)?;
        let disk = Disk::of(scratch.file());
        let written_before = disk.as_ref().and_then(Disk::written);
        self.control.say(&TransferMessage::Ready { from })?;
        let mut arrival = Arrival::default();
        let before = Usage::now(Scope::Process);
        let received = incoming.receive_all(scratch.file(), &mut arrival);
        let end_ns = clock::now_ns();
        let moved = received
            .and_then(|moved| self.check_received(moved))
            .map_err(|error| self.why_broken(error, incoming))?;
        self.control.signal()?;
        let used = Usage::now(Scope::Process).since(&before);
        let written = disk.as_ref().and_then(Disk::written);
        let mut metrics = incoming.metrics()?;
        if let (Some(before), Some(after)) = (written_before, written) {
            let written = after.since(before);
            metrics.push(("receiver_disk_writes", written.requests));
            metrics.push(("receiver_disk_write_bytes", written.bytes));
        }
        incoming.close();
        let arrived = hash_file(scratch.file()).map_err(|error| {
            failure::failed(format!(
                "cannot read back what was received: {}; {}",
                failure::reason(&error),
                failure::advice(&error)
            ))
        })?;
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

    fn check_received(&self, moved: Moved) -> Result<Moved, CallError> {
        match moved.bytes == self.transfer.size_bytes {
            true => Ok(moved),
            false => Err(CallError::no_progress("read")),
        }
    }

    /// What is behind a call that failed: the other end, or the own file.
    fn why_broken(&self, error: CallError, incoming: &mut dyn Incoming) -> Failure {
        incoming.break_off();
        let is_broken = error.is_of_stream() || error.errno.is_none();
        let reason = is_broken.then(|| self.control.reason_to_break()).flatten();
        reason.unwrap_or_else(|| {
            let sink = format!("a file in {}", self.transfer.directory.display());
            let failure = error.into_failure(channel_name(self.transfer.channel), &sink);
            named(failure, "receive")
        })
    }
}
