//! The sender's side of a trial: what is measured, and the samples.

use toll_wire::{
    Failure, ReceiverReport, Request, Sample, TransferMessage, TransferRequest, TransferTerms,
    TrialData,
};

use super::control::Control;
use super::end::Outgoing;
use super::link::channel_name;
use crate::copy::mover::{CallError, Moved};
use crate::counters::{Counters, Inherit};
use crate::meter::{Measured, Meter};
use crate::usage::Scope;
use crate::verify::{Arrived, Expected, check};
use crate::{failure, trial};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Shared,
    /// They are not: a transfer lasts until the sender hears that it is over.
    Foreign,
}

pub struct Sender<'a> {
    transfer: &'a TransferRequest,
    control: Control,
    clock: Clock,
}

impl<'a> Sender<'a> {
    pub fn new(transfer: &'a TransferRequest, control: Control, clock: Clock) -> Self {
        Self {
            transfer,
            control,
            clock,
        }
    }

    /// Runs all iterations over the end that `open` makes, and lets the partner
    /// go.
    pub fn run(
        &mut self,
        request: &Request,
        open: impl FnOnce() -> Result<Box<dyn Outgoing>, Failure>,
    ) -> Result<TrialData, Failure> {
        let outcome = open().and_then(|mut outgoing| {
            let outcome = self.iterate(request, &mut *outgoing);
            if outcome.is_err() {
                outgoing.break_off();
            }
            outcome
        });
        let last = match &outcome {
            Ok(_) => TransferMessage::End,
            Err(failure) => TransferMessage::Failed(failure.clone()),
        };
        // A partner that is gone needs no word, and ends after its last.
        if self.control.say(&last).is_ok() {
            let _ = self.control.hear();
        }
        outcome
    }

    fn iterate(
        &mut self,
        request: &Request,
        outgoing: &mut dyn Outgoing,
    ) -> Result<TrialData, Failure> {
        let mut notes = self.agree()?;
        let counters = Counters::open(&request.counters, Inherit::No);
        let counters_missing = counters.missing().clone();
        // A process of one thread; what io_uring's kernel workers do is the
        // method's own cost.
        let mut meter = Meter::new(counters, Scope::Process);
        let (samples, disturbance) =
            trial::repeat(request.warmup_iterations, request.iterations, || {
                self.sample(&mut meter, outgoing)
            })?;
        notes.splice(0..0, outgoing.notes());
        if !request.counters.is_empty() {
            notes.push("performance counters are the sender's".to_owned());
        }
        Ok(TrialData {
            samples,
            disturbance,
            counters_missing,
            notes,
        })
    }

    /// Makes sure that the partner was asked for the same, and yields its notes.
    fn agree(&self) -> Result<Vec<String>, Failure> {
        match self.control.hear()? {
            TransferMessage::Hello { terms, notes } => {
                let own = TransferTerms::from(self.transfer);
                match terms == own {
                    true => Ok(notes),
                    false => Err(failure::instrument(format!(
                        "cannot send: the receiver expects {terms:?} and not {own:?}; ask both \
                         ends for the same"
                    ))),
                }
            }
            other => Err(self.control.unexpected(&other)),
        }
    }

    fn sample(&self, meter: &mut Meter, outgoing: &mut dyn Outgoing) -> Result<Sample, Failure> {
        let connect = outgoing.offer()?;
        self.control.say(&TransferMessage::Begin { connect })?;
        let from = match self.control.hear()? {
            TransferMessage::Ready { from } => from,
            other => return Err(self.control.unexpected(&other)),
        };
        outgoing.accept(from)?;
        let started = meter.start()?;
        let sent = outgoing.send_all();
        let measured = meter.stop(&started)?;
        let moved = sent
            .and_then(|moved| self.check_sent(moved))
            .map_err(|error| self.why_broken(error, outgoing))?;
        let heard_ns = self.control.hear_signal()?;
        let report = match self.control.hear()? {
            TransferMessage::Received(report) => report,
            other => return Err(self.control.unexpected(&other)),
        };
        let metrics = outgoing.metrics()?;
        outgoing.close();
        self.verify(&report)?;
        let end_ns = match self.clock {
            // Of a file without bytes the receiver waits for nothing.
            _ if self.transfer.size_bytes == 0 => measured.end_ns,
            Clock::Shared => report.end_ns,
            Clock::Foreign => heard_ns,
        };
        let duration_ns = end_ns.saturating_sub(started.start_ns());
        let mut sample = self.sample_of(measured, duration_ns, moved, &report);
        for (name, value) in metrics {
            sample.metrics.insert(name.to_owned(), value as f64);
        }
        Ok(sample)
    }

    fn check_sent(&self, moved: Moved) -> Result<Moved, CallError> {
        match moved.bytes == self.transfer.size_bytes {
            true => Ok(moved),
            false => Err(CallError::no_progress("read")),
        }
    }

    /// What is behind a call that failed: most often the other end.
    fn why_broken(&self, error: CallError, outgoing: &mut dyn Outgoing) -> Failure {
        outgoing.break_off();
        let is_broken = error.is_of_stream();
        let reason = is_broken.then(|| self.control.reason_to_break()).flatten();
        reason.unwrap_or_else(|| {
            let source = self.transfer.source.display().to_string();
            let failure = error.into_failure(&source, channel_name(self.transfer.channel));
            named(failure, "send")
        })
    }

    fn verify(&self, report: &ReceiverReport) -> Result<(), Failure> {
        let arrived = Arrived {
            bytes: report.bytes,
            xxh3: Some(report.xxh3),
        };
        let expected = Expected {
            bytes: self.transfer.size_bytes,
            xxh3: self.transfer.xxh3,
        };
        check(&arrived, &expected)
    }

    fn sample_of(
        &self,
        mut measured: Measured,
        duration_ns: u64,
        moved: Moved,
        report: &ReceiverReport,
    ) -> Sample {
        let sender_duration_ns = measured.duration_ns;
        measured.duration_ns = duration_ns;
        let mut sample = measured.into_sample("bytes_transferred", self.transfer.size_bytes);
        for (name, value) in [
            ("sender_duration_ns", sender_duration_ns),
            ("receiver_duration_ns", report.duration_ns),
            ("receiver_user_ns", report.user_ns),
            ("receiver_system_ns", report.system_ns),
            ("receiver_minor_faults", report.minor_faults),
            ("receiver_calls", report.calls),
            ("calls", moved.calls),
        ] {
            sample.metrics.insert(name.to_owned(), value as f64);
        }
        for (name, value) in &report.metrics {
            sample.metrics.insert(name.clone(), *value as f64);
        }
        sample
    }
}

/// The failure of a call as that of an end.
pub fn named(failure: Failure, verb: &str) -> Failure {
    Failure {
        message: failure
            .message
            .replacen("cannot ", &format!("cannot {verb} by "), 1),
        ..failure
    }
}
