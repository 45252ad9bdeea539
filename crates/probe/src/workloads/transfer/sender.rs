//! The sender's side of a trial: the measured work and the samples.

use std::os::fd::OwnedFd;

use toll_wire::{
    CacheState, Content, Failure, ReceiverReport, Request, Sample, SendMethod, TransferMessage,
    TransferRequest, TransferTerms, TrialData,
};

use super::channel::{channel_name, kind_of};
use super::control::Control;
use super::defects;
use super::link::Link;
use super::zerocopy::Zerocopy;
use crate::buffer::{Buffer, checked_length};
use crate::failure::{self, OrFail};
use crate::meter::{Measured, Meter, put};
use crate::published_loops::{Form, PageByPage};
use crate::trial::Trial;
use crate::usage::Scope;
use crate::verify::{Arrived, check};
use crate::workloads::copy::in_kernel::{Call, InKernel};
use crate::workloads::copy::io_uring::Uring;
use crate::workloads::copy::mmap::Mapped;
use crate::workloads::copy::mover::{CallError, Job, Moved, Mover};
use crate::workloads::copy::read_write::ReadWrite;
use crate::workloads::copy::source::{Input, OpenSource};
use crate::workloads::copy::splice::Splice;

/// Whether the times of the two ends' clocks can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The ends are on one machine.
    Shared,
    /// The ends are not on one machine: a transfer lasts until the sender
    /// receives the signal that it is over.
    Foreign,
}

/// Runs all iterations, over the pair made before the fork, if any, and
/// releases the partner.
pub fn run(
    request: &Request,
    transfer: &TransferRequest,
    control: Control,
    clock: Clock,
    pair: Option<OwnedFd>,
) -> Result<TrialData, Failure> {
    let outcome = Sender::new(transfer, &control, clock, pair).and_then(|mut sender| {
        let outcome = sender.iterate(request);
        if outcome.is_err() {
            sender.link.break_off();
        }
        outcome
    });
    let last = match &outcome {
        Ok(_) => TransferMessage::End,
        Err(failure) => TransferMessage::Failed(failure.clone()),
    };
    // If the partner is gone, it needs no message. Otherwise the partner ends after its last
    // message.
    if control.say(&last).is_ok() {
        let _ = control.hear();
    }
    outcome
}

/// The sender's end with its method. Made once for a trial, with all its memory
/// allocated and touched.
struct Sender<'a> {
    transfer: &'a TransferRequest,
    control: &'a Control,
    clock: Clock,
    source: OpenSource,
    link: Link,
    /// `None` if the device sends by one of its own methods.
    mover: Option<Box<dyn Mover>>,
}

impl<'a> Sender<'a> {
    fn new(
        transfer: &'a TransferRequest,
        control: &'a Control,
        clock: Clock,
        pair: Option<OwnedFd>,
    ) -> Result<Self, Failure> {
        let (path, size_bytes) = (&transfer.source, transfer.size_bytes);
        let source = OpenSource::of_file(path, size_bytes, CacheState::Warm)?;
        let mut link = Link::of_sender(transfer, pair)?;
        let mover = match link.own_way() {
            Some(_) => None,
            None => Some(mover(transfer)?),
        };
        Ok(Self {
            transfer,
            control,
            clock,
            source,
            link,
            mover,
        })
    }

    fn iterate(&mut self, request: &Request) -> Result<TrialData, Failure> {
        let partners = self.agree()?;
        // The process has one thread; what io_uring's kernel workers do is the
        // method's own cost.
        let trial = Trial::new(request, Scope::Process);
        let mut data = trial.repeat(|meter| self.sample(meter))?;
        data.notes.extend(self.notes());
        data.notes.extend(partners);
        if !request.counters.is_empty() {
            data.notes
                .push("performance counters are the sender's".to_owned());
        }
        Ok(data)
    }

    fn notes(&self) -> Vec<String> {
        let methods = match (&self.link, &self.mover) {
            (_, Some(mover)) => mover.notes(),
            (Link::Device(device), None) => vec![device.describe()],
            _ => unreachable!("only a device has ways of its own"),
        };
        let methods = methods.iter().map(|note| format!("sender: {note}"));
        methods.chain(self.source.note()).collect()
    }

    /// Makes sure that the partner has the same request, and returns its notes.
    fn agree(&self) -> Result<Vec<String>, Failure> {
        match self.control.hear()? {
            TransferMessage::Hello { terms, notes } => {
                let own = TransferTerms::from(self.transfer);
                if terms == own {
                    Ok(notes)
                } else {
                    Err(failure::instrument(format!(
                        "cannot send: the receiver expects {terms:?} instead of {own:?}; \
                         give both ends the same request"
                    )))
                }
            }
            other => Err(self.control.unexpected(&other)),
        }
    }

    fn sample(&mut self, meter: &mut Meter) -> Result<Sample, Failure> {
        let connect = self.link.offer()?;
        self.control.say(&TransferMessage::Begin { connect })?;
        let from = match self.control.hear()? {
            TransferMessage::Ready { from } => from,
            other => return Err(self.control.unexpected(&other)),
        };
        self.link.accept(from)?;
        let input = self.source.ready()?;
        if let Some(mover) = &mut self.mover {
            mover.prepare(&job(self.transfer, &self.link, &input))?;
        }
        let (sent, mut measured) = meter.measure(|| self.send_all(&input))?;
        let moved = sent
            .and_then(|moved| moved.checked(self.transfer.size_bytes, "read"))
            .map_err(|error| self.why_broken(error))?;
        let heard_ns = self.control.hear_signal()?;
        let sender_duration_ns = measured.duration_ns;
        measured.go_on_waiting()?;
        let report = match self.control.hear()? {
            TransferMessage::Received(report) => report,
            other => return Err(self.control.unexpected(&other)),
        };
        let metrics = self.link.metrics()?;
        self.link.close();
        self.verify(&report)?;
        let end_ns = match self.clock {
            // For an empty file the receiver waits for nothing.
            _ if self.transfer.size_bytes == 0 => measured.end_ns,
            Clock::Shared => report.end_ns,
            Clock::Foreign => heard_ns,
        };
        measured.end_at(end_ns);
        let mut sample = self.sample_of(measured, sender_duration_ns, moved, &report);
        for (name, value) in metrics {
            put(&mut sample, name, value as f64);
        }
        Ok(sample)
    }

    /// Sends the whole file. Does not allocate.
    fn send_all(&mut self, input: &Input) -> Result<Moved, CallError> {
        let Some(mover) = &mut self.mover else {
            let device = self.link.own_way().expect("only a device has one");
            let sender = device.connection_mut();
            return sender.send_all(input.as_fd(), self.transfer.size_bytes);
        };
        let moved = mover.run(&job(self.transfer, &self.link, input))?;
        self.link.finish()?;
        Ok(moved)
    }

    /// Returns the cause of a failed call: most often the other end.
    fn why_broken(&mut self, error: CallError) -> Failure {
        self.link.break_off();
        let is_broken = error.is_of_stream();
        let reason = is_broken.then(|| self.control.reason_to_break()).flatten();
        reason.unwrap_or_else(|| {
            if let Some(defect) = defects::of_mappings(self.transfer, &error) {
                return defect;
            }
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
        let expected = Content {
            size_bytes: self.transfer.size_bytes,
            xxh3: self.transfer.xxh3,
        };
        check(&arrived, &expected)
            .map_err(|failure| defects::of_content(self.transfer).unwrap_or(failure))
    }

    fn sample_of(
        &self,
        measured: Measured,
        sender_duration_ns: u64,
        moved: Moved,
        report: &ReceiverReport,
    ) -> Sample {
        let has_waited = measured.idle_ns > 0;
        let mut sample = measured.into_sample_of("bytes_transferred", self.transfer.size_bytes);
        for (name, value) in [
            ("sender_duration_ns", sender_duration_ns),
            ("receiver_duration_ns", report.duration_ns),
            ("receiver_user_ns", report.user_ns),
            ("receiver_system_ns", report.system_ns),
            ("receiver_minor_faults", report.minor_faults),
            ("receiver_calls", report.calls),
            ("calls", moved.calls),
        ] {
            put(&mut sample, name, value as f64);
        }
        if has_waited {
            // How much of the wait is between the receiver's two clock readings is unknown.
            sample.metrics.remove("receiver_duration_ns");
        }
        for (name, value) in &report.metrics {
            put(&mut sample, name, *value as f64);
        }
        sample
    }
}

fn job<'a>(transfer: &TransferRequest, link: &'a Link, input: &'a Input) -> Job<'a> {
    Job {
        source: input.as_fd(),
        sink: link.descriptor(),
        sink_kind: kind_of(transfer.channel),
        size_bytes: transfer.size_bytes,
    }
}

/// Returns the request's method of sending over a file descriptor.
fn mover(transfer: &TransferRequest) -> Result<Box<dyn Mover>, Failure> {
    let bytes = transfer.buffer_bytes;
    let length = checked_length(bytes)?;
    let kind = kind_of(transfer.channel);
    Ok(match transfer.sender {
        SendMethod::ReadWrite => Box::new(ReadWrite::with_buffer(Buffer::aligned(length))),
        SendMethod::Mmap => Box::new(Mapped::by_windows(length)),
        SendMethod::PublishedMmap => page_by_page(Form::Printed, length)?,
        SendMethod::MendedMmap => page_by_page(Form::Mended, length)?,
        SendMethod::Sendfile => Box::new(InKernel::new(Call::Sendfile, Some(bytes))?),
        SendMethod::Splice => Box::new(Splice::new(Some(bytes), kind)?),
        SendMethod::Zerocopy => Box::new(Zerocopy::new(length)),
        SendMethod::IoUring => Box::new(Uring::new(Some(bytes), kind)?),
    })
}

fn page_by_page(form: Form, buffer_bytes: usize) -> Result<Box<dyn Mover>, Failure> {
    let mover = PageByPage::new(form, buffer_bytes);
    Ok(Box::new(mover.failed_to("map a page of memory")?))
}

/// Turns the failure of a call into the failure of an end.
pub fn named(failure: Failure, verb: &str) -> Failure {
    let by = format!("cannot {verb} by ");
    Failure {
        message: failure.message.replacen("cannot ", &by, 1),
        ..failure
    }
}
