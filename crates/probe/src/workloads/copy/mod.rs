//! The copy workload: copies a source to a sink by one of many methods.

mod ends;
pub mod in_kernel;
pub(crate) mod io_uring;
pub(crate) mod mmap;
pub mod mover;
pub mod read_write;
pub mod reader;
mod readv;
pub(crate) mod sink;
pub(crate) mod source;
pub mod splice;
mod system_cat;
pub(crate) mod transit_pipe;
mod vmsplice;

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use toll_wire::{
    CopyMethod, CopyRequest, Failure, Request, Sample, Sink, Source, SourceIo, TrialData,
};

use self::ends::{check, notes_of_ends, open_sink, sink_name};
use self::in_kernel::{Call, InKernel};
use self::mover::{CallError, Job, Moved, Mover};
use self::reader::Purpose;
use self::sink::OpenSink;
use self::source::{Input, OpenSource};
use crate::meter::{Meter, put};
use crate::trial::Trial;
use crate::usage::Scope;
use crate::verify::check_length;
use crate::{failure, scratch};

pub fn run(request: &Request, copy: &CopyRequest) -> Result<TrialData, Failure> {
    if copy.sink == Sink::File {
        scratch::remove_left_overs(&copy.directory);
    }
    check_ends(copy)?;
    let source = OpenSource::open(copy)?;
    if copy.method == CopyMethod::SystemCat {
        return system_cat::run(request, copy, &source);
    }
    let file = source.file().as_fd();
    let mut copier = Copier {
        mover: mover(copy.method, copy.buffer_bytes, file, copy.sink)?,
        copy,
        source: &source,
    };
    // The work of io_uring's kernel workers is part of the method's cost.
    let scope = match copy.method {
        CopyMethod::IoUring => Scope::Process,
        _ => Scope::Thread,
    };
    let mut trial = Trial::new(request, scope);
    if source.verifies_first(copy) {
        copier.verify()?;
        trial.warmups = trial.warmups.saturating_sub(1);
    }
    let mut data = trial.repeat(|meter| copier.sample(meter, scope))?;
    if !source.verifies_first(copy) {
        copier.verify()?;
    }
    data.notes.extend(copier.mover.notes());
    data.notes.extend(source.note());
    data.notes.extend(notes_of_ends(copy));
    Ok(data)
}

struct Copier<'a> {
    mover: Box<dyn Mover>,
    copy: &'a CopyRequest,
    source: &'a OpenSource,
}

impl Copier<'_> {
    fn sample(&mut self, meter: &mut Meter, scope: Scope) -> Result<Sample, Failure> {
        let copy = self.copy;
        let (input, mut sink) = self.ends(Purpose::Count)?;
        let ((moved, end_ns), mut measured) = meter.measure(|| {
            let moved = self.mover.run(&job(copy, &input, &sink));
            let end_ns = moved.is_ok().then(|| sink.finish()).flatten();
            (moved, end_ns)
        })?;
        if let Some(end_ns) = end_ns {
            measured.end_at(end_ns);
        }
        let moved = self.checked(moved)?;
        let (arrived, reader_usage) = sink.arrived(copy.size_bytes, Purpose::Count)?;
        check_length(arrived.bytes, copy.size_bytes)?;
        if scope == Scope::Process {
            measured.usage = measured.usage.since(&reader_usage);
        }
        let mut sample = measured.into_sample_of("bytes_copied", copy.size_bytes);
        put(&mut sample, "calls", moved.calls as f64);
        Ok(sample)
    }

    /// Runs one untimed iteration and checks the content.
    fn verify(&mut self) -> Result<(), Failure> {
        let (input, mut sink) = self.ends(Purpose::Hash)?;
        let moved = self.mover.run(&job(self.copy, &input, &sink));
        self.checked(moved)?;
        sink.finish();
        let (arrived, _) = sink.arrived(self.copy.size_bytes, Purpose::Hash)?;
        check(&arrived, self.copy)
    }

    /// Brings the source into its state, opens a fresh sink and prepares the method
    /// for both.
    fn ends(&mut self, purpose: Purpose) -> Result<(Input, OpenSink), Failure> {
        let input = self.source.ready()?;
        let sink = open_sink(self.copy, purpose)?;
        self.mover.prepare(&job(self.copy, &input, &sink))?;
        Ok((input, sink))
    }

    fn checked(&self, moved: Result<Moved, CallError>) -> Result<Moved, Failure> {
        let whole = moved.and_then(|moved| moved.checked(self.copy.size_bytes, "copy"));
        whole.map_err(|error| {
            let is_refused = error.call == "read" && error.errno == Some(Errno::INVAL);
            match self.copy.io {
                SourceIo::Direct if is_refused => unaligned(&self.source.name()),
                _ => error.into_failure(&self.source.name(), &sink_name(self.copy)),
            }
        })
    }
}

/// Explains why direct I/O into a buffer was refused (open(2)).
fn unaligned(source: &str) -> Failure {
    failure::unsupported(format!(
        "cannot read {source} by direct I/O: invalid argument; align the buffer, whose address and \
         size must be multiples of the device's block size"
    ))
}

fn job<'a>(copy: &CopyRequest, input: &'a Input, sink: &'a OpenSink) -> Job<'a> {
    Job {
        source: input.as_fd(),
        sink: sink.writer(),
        sink_kind: copy.sink,
        size_bytes: copy.size_bytes,
    }
}

/// Returns the mover for a method, a source and a kind of sink. Without
/// `buffer_bytes` the method uses its default buffer.
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
        | CopyMethod::AdvisedRandom
        | CopyMethod::FcntlDupfd => {
            Box::new(read_write::ReadWrite::new(method, buffer_bytes, source)?)
        }
        CopyMethod::Readv => Box::new(readv::Vectored::new(buffer_bytes)?),
        CopyMethod::Mmap => Box::new(mmap::Mapped::whole(buffer_bytes)?),
        CopyMethod::Sendfile => Box::new(InKernel::new(Call::Sendfile, buffer_bytes)?),
        CopyMethod::Splice => Box::new(splice::Splice::new(buffer_bytes, sink)?),
        CopyMethod::Vmsplice => Box::new(vmsplice::Vmsplice::new(buffer_bytes, sink)?),
        CopyMethod::CopyFileRange => Box::new(InKernel::new(Call::CopyFileRange, buffer_bytes)?),
        CopyMethod::IoUring => Box::new(io_uring::Uring::new(buffer_bytes, sink)?),
        CopyMethod::SystemCat => unreachable!("a program is not a mover"),
    })
}

/// Refuses pairs of ends that a method can never serve. This also covers an empty
/// copy, which makes no call that the kernel could refuse.
fn check_ends(copy: &CopyRequest) -> Result<(), Failure> {
    let why = match (copy.method, &copy.source, copy.sink) {
        (CopyMethod::CopyFileRange, Source::Zero, _) => {
            "cannot copy_file_range from /dev/zero: it needs a regular file as its source; \
             choose a file"
        }
        (CopyMethod::CopyFileRange, _, Sink::Null | Sink::Pipe | Sink::Socket) => {
            "cannot copy_file_range to this sink: it is not a regular file; choose a file as the \
             sink"
        }
        (CopyMethod::Mmap, Source::Zero, _) => {
            "cannot mmap /dev/zero as a source: the mapping is anonymous memory and nothing is \
             read; choose a file"
        }
        (method, source, _) if copy.io == SourceIo::Direct => {
            if *source != Source::Zero && reads_into_one_buffer(method) {
                return Ok(());
            }
            "cannot use direct I/O: it needs a file, and a method that reads into one buffer; \
             choose a file, and the method page-aligned or swept"
        }
        _ => return Ok(()),
    };
    Err(failure::unsupported(why.to_owned()))
}

fn reads_into_one_buffer(method: CopyMethod) -> bool {
    matches!(
        method,
        CopyMethod::Byte
            | CopyMethod::Page
            | CopyMethod::PageAligned
            | CopyMethod::FsBlock
            | CopyMethod::Swept
            | CopyMethod::Advised
            | CopyMethod::AdvisedRandom
            | CopyMethod::FcntlDupfd
    )
}
