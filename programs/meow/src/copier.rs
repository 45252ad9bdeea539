//! Copies along a route: if a method is refused, the next method copies the rest.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use toll_probe::buffer::Buffer;
use toll_probe::workloads::copy::in_kernel::{Call, InKernel};
use toll_probe::workloads::copy::mover::{CallError, Job, Moved, Mover};
use toll_probe::workloads::copy::read_write::ReadWrite;
use toll_probe::workloads::copy::splice::Splice;

use crate::ends::{End, Kind};
use crate::route::{BUFFER_BYTES, Method, Route};

#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub method: Method,
    /// What the step moved; zero for a refused step, whose progress is unknown.
    pub moved: Moved,
    /// Why the step stopped, unless the source ended.
    pub refusal: Option<Errno>,
}

/// Copies several sources to one sink, and reuses the buffer and the pipe's size.
pub struct Copier<'a> {
    buffer: ReadWrite,
    /// The sink's pipe size, restored after all operands are copied.
    sink_size: Option<PipeSize<'a>>,
}

impl<'a> Copier<'a> {
    pub fn new() -> Self {
        Self {
            buffer: ReadWrite::with_buffer(Buffer::untouched(BUFFER_BYTES)),
            sink_size: None,
        }
    }

    /// Copies from the source's current offset to its end, and returns each step.
    ///
    /// If an in-kernel method fails, the buffer continues from the same offset. It
    /// either succeeds, or its failing `read` or `write` shows which end is at fault.
    /// An in-kernel call cannot show that.
    pub fn copy(
        &mut self,
        source: &End<'_>,
        sink: &End<'a>,
        route: &Route,
    ) -> Result<Vec<Step>, CallError> {
        let mut steps = Vec::new();
        if route.lead_bytes > 0 {
            let moved = self.buffer.run(&job(source, sink, route.lead_bytes))?;
            steps.push(step(Method::Buffer, moved));
            if moved.bytes < route.lead_bytes {
                return Ok(steps);
            }
        }
        let mut source_size = PipeSize::new(source);
        source_size.enlarge(route.pipe_bytes);
        let sink_size = self.sink_size.get_or_insert_with(|| PipeSize::new(sink));
        sink_size.enlarge(route.pipe_bytes);
        let whole = job(source, sink, u64::MAX);
        for &method in route.methods {
            let result = match method {
                Method::Splice => Splice::direct().run(&whole),
                Method::SpliceTwice { chunk } => match Splice::through_own_pipe(chunk) {
                    Ok(mut splice) => splice.run(&whole),
                    // If no pipe can be created, the next method takes over.
                    Err(_) => Err(CallError::new("pipe", Errno::MFILE)),
                },
                Method::Sendfile => InKernel::all(Call::Sendfile).run(&whole),
                Method::CopyFileRange => InKernel::all(Call::CopyFileRange).run(&whole),
                Method::Buffer => {
                    steps.push(step(method, self.buffer.run(&whole)?));
                    break;
                }
            };
            steps.push(match result {
                Ok(moved) => step(method, moved),
                // The next method cannot recover what an intermediate pipe still held.
                Err(error) if error.call == "write" => return Err(error),
                Err(error) => Step {
                    method,
                    moved: Moved::default(),
                    refusal: error.errno,
                },
            });
        }
        Ok(steps)
    }
}

fn step(method: Method, moved: Moved) -> Step {
    Step {
        method,
        moved,
        refusal: None,
    }
}

fn job<'a>(source: &End<'a>, sink: &End<'a>, size_bytes: u64) -> Job<'a> {
    Job {
        source: source.fd,
        sink: sink.fd,
        sink_kind: sink.kind.into(),
        size_bytes,
    }
}

/// The size of a pipe, restored on drop. Another process that shares the pipe may keep
/// it for long, and all pipes count towards their user's limit (`pipe-user-pages-soft`
/// in proc_sys_fs(5)).
struct PipeSize<'a> {
    /// The pipe; `None` if the end is not a pipe.
    pipe: Option<BorrowedFd<'a>>,
    /// The size before it was enlarged; `None` if it was not enlarged.
    bytes_before: Option<usize>,
}

impl<'a> PipeSize<'a> {
    fn new(end: &End<'a>) -> Self {
        Self {
            pipe: (end.kind == Kind::Pipe).then_some(end.fd),
            bytes_before: None,
        }
    }

    /// Enlarges a pipe, so that one call moves more. The pipe keeps its size if this is
    /// refused (EPERM: the user's limit is reached).
    fn enlarge(&mut self, bytes: usize) {
        let Some((pipe, bytes_now)) = self.pipe_and_size() else {
            return;
        };
        if bytes_now < bytes && fcntl_setpipe_size(pipe, bytes).is_ok() {
            self.bytes_before.get_or_insert(bytes_now);
        }
    }

    fn pipe_and_size(&self) -> Option<(BorrowedFd<'a>, usize)> {
        let pipe = self.pipe?;
        fcntl_getpipe_size(pipe).ok().map(|bytes| (pipe, bytes))
    }
}

impl Drop for PipeSize<'_> {
    fn drop(&mut self) {
        let Some(mut bytes) = self.bytes_before else {
            return;
        };
        let Some((pipe, bytes_now)) = self.pipe_and_size() else {
            return;
        };
        // EBUSY means that the pipe holds more than the new size.
        while bytes < bytes_now && fcntl_setpipe_size(pipe, bytes) == Err(Errno::BUSY) {
            bytes *= 2;
        }
    }
}
