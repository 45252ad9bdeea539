//! The copy workload: a source's bytes go to a sink by one of many methods.

pub mod copy_file_range;
mod io_uring;
mod mmap;
pub mod mover;
pub mod read_write;
mod reader;
mod readv;
pub mod sendfile;
mod sink;
mod source;
pub mod splice;
mod system_cat;
mod transit_pipe;
mod verification;
mod vmsplice;

use std::os::fd::{AsFd, BorrowedFd};

use toll_wire::{CopyMethod, CopyRequest, Failure, Request, Sample, Sink, Source, TrialData};

pub(crate) use self::io_uring::Uring;
use self::mover::{CallError, Job, Moved, Mover};
use self::reader::{Purpose, READER_BUFFER_BYTES};
use self::sink::OpenSink;
pub(crate) use self::sink::SOCKET_BUFFER_BYTES;
pub(crate) use self::source::{Input, OpenSource};
pub(crate) use self::transit_pipe::TransitPipe;
use crate::counters::{Counters, Inherit};
use crate::meter::Meter;
use crate::usage::{Scope, Usage};
use crate::verify::{Arrived, check_length};
use crate::{failure, scratch, trial};

pub fn run(request: &Request, copy: &CopyRequest) -> Result<TrialData, Failure> {
    if copy.sink == Sink::File {
        scratch::remove_left_overs(&copy.directory);
    }
    let source = OpenSource::open(copy)?;
    if copy.method == CopyMethod::SystemCat {
        return system_cat::run(request, copy, &source);
    }
    let mut copier = Copier {
        mover: mover_for(copy, &source)?,
        copy,
        source: &source,
    };
    // What io_uring's kernel workers do is the method's own cost.
    let scope = match copy.method {
        CopyMethod::IoUring => Scope::Process,
        _ => Scope::Thread,
    };
    let counters = Counters::open(&request.counters, Inherit::No);
    let counters_missing = counters.missing().clone();
    let mut meter = Meter::new(counters, scope);

    let mut warmups = request.warmup_iterations;
    if source.verifies_first(copy) {
        copier.verify()?;
        warmups = warmups.saturating_sub(1);
    }
    let (samples, disturbance) = trial::repeat(warmups, request.iterations, || {
        copier.sample(&mut meter, scope)
    })?;
    if !source.verifies_first(copy) {
        copier.verify()?;
    }

    let mut notes = copier.mover.notes();
    notes.extend(source.note());
    notes.extend(notes_of_ends(copy));
    Ok(TrialData {
        samples,
        disturbance,
        counters_missing,
        notes,
    })
}

struct Copier<'a> {
    mover: Box<dyn Mover>,
    copy: &'a CopyRequest,
    source: &'a OpenSource,
}

impl Copier<'_> {
    fn sample(&mut self, meter: &mut Meter, scope: Scope) -> Result<Sample, Failure> {
        let size_bytes = self.copy.size_bytes;
        let input = self.source.ready()?;
        let mut sink = OpenSink::open(self.copy.sink, &self.copy.directory, Purpose::Count)?;
        let job = Job {
            source: input.as_fd(),
            sink: sink.writer(),
            sink_kind: self.copy.sink,
            size_bytes,
        };
        self.mover.prepare(&job)?;
        let started = meter.start()?;
        let moved = self.mover.run(&job);
        let end_ns = match moved {
            Ok(_) => sink.finish(),
            Err(_) => None,
        };
        let mut measured = meter.stop(&started)?;
        if let Some(end_ns) = end_ns {
            measured.end_at(end_ns, &started);
        }
        let moved = moved.map_err(|error| self.failure_of(error))?;
        self.check_moved(moved)?;
        let (arrived, reader_usage) = sink.arrived(size_bytes, Purpose::Count)?;
        check_length(arrived.bytes, size_bytes)?;
        if scope == Scope::Process {
            measured.usage = without(&measured.usage, &reader_usage);
        }
        let mut sample = measured.into_sample("bytes_copied", size_bytes);
        sample
            .metrics
            .insert("calls".to_owned(), moved.calls as f64);
        Ok(sample)
    }

    /// One iteration whose content is checked; never timed.
    fn verify(&mut self) -> Result<(), Failure> {
        let input = self.source.ready()?;
        let mut sink = OpenSink::open(self.copy.sink, &self.copy.directory, Purpose::Hash)?;
        let job = Job {
            source: input.as_fd(),
            sink: sink.writer(),
            sink_kind: self.copy.sink,
            size_bytes: self.copy.size_bytes,
        };
        self.mover.prepare(&job)?;
        let moved = self
            .mover
            .run(&job)
            .map_err(|error| self.failure_of(error))?;
        self.check_moved(moved)?;
        sink.finish();
        let (arrived, _): (Arrived, Usage) = sink.arrived(self.copy.size_bytes, Purpose::Hash)?;
        verification::check(&arrived, self.copy)
    }

    fn check_moved(&self, moved: Moved) -> Result<(), Failure> {
        if moved.bytes == self.copy.size_bytes {
            return Ok(());
        }
        Err(self.failure_of(CallError::no_progress("copy")))
    }

    fn failure_of(&self, error: CallError) -> Failure {
        error.into_failure(&self.source.name(), &sink_name(self.copy))
    }
}

fn mover_for(copy: &CopyRequest, source: &OpenSource) -> Result<Box<dyn Mover>, Failure> {
    check_ends(copy)?;
    let source = source.file().as_fd();
    mover(copy.method, copy.buffer_bytes, source, copy.sink)
}

/// A way to copy from a source to a kind of sink. Without `buffer_bytes` the
/// method has the buffer that it has by default.
pub fn mover(
    method: CopyMethod,
    buffer_bytes: Option<u64>,
    source: BorrowedFd<'_>,
    sink: Sink,
) -> Result<Box<dyn Mover>, Failure> {
    Ok(match method {
        CopyMethod::Byte
        | CopyMethod::Page
        | CopyMethod::PageAligned
        | CopyMethod::FsBlock
        | CopyMethod::Swept
        | CopyMethod::Advised
        | CopyMethod::FcntlDupfd => {
            Box::new(read_write::ReadWrite::new(method, buffer_bytes, source)?)
        }
        CopyMethod::Readv => Box::new(readv::Vectored::new(buffer_bytes)?),
        CopyMethod::Mmap => Box::new(mmap::Mapped::new(buffer_bytes)?),
        CopyMethod::Sendfile => Box::new(sendfile::Sendfile::new(buffer_bytes)?),
        CopyMethod::Splice => Box::new(splice::Splice::new(buffer_bytes, sink)?),
        CopyMethod::Vmsplice => Box::new(vmsplice::Vmsplice::new(buffer_bytes, sink)?),
        CopyMethod::CopyFileRange => Box::new(copy_file_range::CopyFileRange::new(buffer_bytes)?),
        CopyMethod::IoUring => Box::new(io_uring::Uring::new(buffer_bytes, sink)?),
        CopyMethod::SystemCat => unreachable!("a program is not a mover"),
    })
}

/// Refuses pairs that a method can never serve, even for an empty copy, which
/// would make no call that the kernel could refuse.
fn check_ends(copy: &CopyRequest) -> Result<(), Failure> {
    let why = match (copy.method, &copy.source, copy.sink) {
        (CopyMethod::CopyFileRange, Source::Zero, _) => {
            "cannot copy_file_range from /dev/zero: it needs a regular file as its source; \
             choose a file"
        }
        (CopyMethod::CopyFileRange, _, Sink::Null | Sink::Pipe | Sink::Socket) => {
            "cannot copy_file_range to what is no regular file; choose a file as the sink"
        }
        (CopyMethod::Mmap, Source::Zero, _) => {
            "cannot mmap /dev/zero as a source: the mapping is anonymous memory and nothing is \
             read; choose a file"
        }
        _ => return Ok(()),
    };
    Err(failure::unsupported(why.to_owned()))
}

fn sink_name(copy: &CopyRequest) -> String {
    match copy.sink {
        Sink::Null => "/dev/null".to_owned(),
        Sink::Pipe => "a pipe".to_owned(),
        Sink::File => format!("a file in {}", copy.directory.display()),
        Sink::Socket => "a TCP socket".to_owned(),
    }
}

fn notes_of_ends(copy: &CopyRequest) -> Vec<String> {
    match copy.sink {
        Sink::Null => vec![
            "/dev/null drops bytes unread: a method that does not copy to user space touches \
             none of them"
                .to_owned(),
        ],
        Sink::Pipe => vec![format!(
            "a thread reads the pipe {READER_BUFFER_BYTES} bytes at a time"
        )],
        Sink::Socket => vec![format!(
            "a thread reads the socket {READER_BUFFER_BYTES} bytes at a time; the socket's \
             buffers are fixed"
        )],
        Sink::File => Vec::new(),
    }
}

/// What a process used without what one of its threads did.
fn without(process: &Usage, thread: &Usage) -> Usage {
    process.since(thread)
}
