//! Receives what a command prints, and keeps only a bounded part of it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender, channel};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use toll_wire::Failure;

use super::child::{self, Ended};
use crate::failure::OrFail;

/// Bytes kept from the end of each output, for failure messages.
const TAIL_BYTES_MAX: usize = 4096;

/// Bytes read at a time: the default capacity of a pipe.
const BLOCK_BYTES: usize = 64 << 10;

/// The first and the last bytes of an output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    head_bytes_max: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Kept {
    fn new(head_bytes_max: usize) -> Self {
        Self {
            head_bytes_max,
            ..Self::default()
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.head_bytes_max - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let recent = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
        let excess = (self.tail.len() + recent.len()).saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..excess);
        self.tail.extend_from_slice(recent);
    }

    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.head).into_owned()
    }

    pub fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.tail);
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    }
}

#[derive(Debug, Default)]
pub struct Outputs {
    pub stdout: Kept,
    pub stderr: Kept,
}

pub enum Receiver {
    /// The thread that waits for the command. A separate thread, with its stack and three wake-ups
    /// a command, would cost more than everything else around the command.
    Waiter,
    Thread(Drainer),
}

impl Receiver {
    /// Starts a receiver. With `errors_only` it receives only the standard error
    /// of commands.
    pub fn start(errors_only: bool) -> Result<Self, Failure> {
        // The waiter polls pipes and process at once. Linux before 5.3 has no
        // pidfds, and seccomp profiles of containers refuse them.
        if errors_only && pidfd_open(getpid(), PidfdFlags::empty()).is_ok() {
            Ok(Self::Waiter)
        } else {
            Drainer::start().map(Self::Thread)
        }
    }

    /// Makes the pipes of one command. The first `head_bytes_max` bytes of each
    /// output are kept.
    pub fn open(&self, has_stdout: bool, head_bytes_max: usize) -> Result<Pipes<'_>, Failure> {
        self.try_open(has_stdout, head_bytes_max)
            .instrument_to("receive a command's output")
    }

    fn try_open(&self, has_stdout: bool, head_bytes_max: usize) -> io::Result<Pipes<'_>> {
        let (stderr_reader, stderr) = output_pipe()?;
        let (stdout_reader, stdout) = if has_stdout {
            let (reader, writer) = output_pipe()?;
            (Some(reader), Some(writer))
        } else {
            (None, None)
        };
        let streams = [stdout_reader, Some(stderr_reader)].map(|source| Stream {
            source,
            kept: Kept::new(head_bytes_max),
        });
        let reception = match self {
            Self::Waiter => Reception::Here {
                streams,
                block: Vec::with_capacity(BLOCK_BYTES),
                ended: None,
            },
            Self::Thread(drainer) => Reception::There {
                drainer,
                ended: drainer.begin(streams)?,
            },
        };
        Ok(Pipes {
            stdout,
            stderr: Some(stderr),
            reception,
        })
    }
}

/// The pipes of one command, made before its start and consumed after its end.
pub struct Pipes<'a> {
    /// The command's end of its standard output, if that is a pipe.
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    reception: Reception<'a>,
}

enum Reception<'a> {
    Here {
        streams: [Stream; 2],
        /// Read buffer, whose pages are touched only if something is read.
        block: Vec<u8>,
        /// The process's pidfd, kept open until the end time is taken.
        ended: Option<OwnedFd>,
    },
    There {
        drainer: &'a Drainer,
        ended: Arc<OwnedFd>,
    },
}

impl Pipes<'_> {
    /// Waits for the command, as [`child::wait`] does.
    pub fn wait(&mut self, child: &mut Child) -> io::Result<Ended> {
        if let Reception::Here {
            streams,
            block,
            ended,
        } = &mut self.reception
        {
            match pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
                Ok(process) => receive_until(streams, ended.insert(process), block),
                Err(errno) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(errno.into());
                }
            }
        }
        child::wait(child)
    }

    /// Returns what the command printed until it ended. A process that it left
    /// behind may hold the pipes open; its later output is not waited for.
    pub fn finish(self) -> Result<Outputs, Failure> {
        match self.reception {
            Reception::Here {
                streams, mut block, ..
            } => Ok(receive_rest(streams, &mut block)),
            Reception::There { drainer, ended } => drainer.finish(&ended),
        }
    }
}

/// A thread that receives outputs, one for all iterations.
pub struct Drainer {
    jobs: Sender<Job>,
    results: mpsc::Receiver<Outputs>,
}

struct Job {
    streams: [Stream; 2],
    ended: Arc<OwnedFd>,
}

impl Drainer {
    fn start() -> Result<Self, Failure> {
        let (jobs, inbox) = channel::<Job>();
        let (outbox, results) = channel();
        let body = move || {
            let mut block = vec![0xa5; BLOCK_BYTES];
            while let Ok(Job { mut streams, ended }) = inbox.recv() {
                receive_until(&mut streams, &ended, &mut block);
                if outbox.send(receive_rest(streams, &mut block)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new()
            .spawn(body)
            .instrument_to("receive a command's output")?;
        Ok(Self { jobs, results })
    }

    /// Starts receiving outputs. Returns the eventfd that signals the command's end.
    fn begin(&self, streams: [Stream; 2]) -> io::Result<Arc<OwnedFd>> {
        let ended = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let job = Job {
            streams,
            ended: Arc::clone(&ended),
        };
        self.jobs.send(job).map_err(io::Error::other)?;
        Ok(ended)
    }

    /// Signals that the command has ended, and returns what the command has printed.
    fn finish(&self, ended: &OwnedFd) -> Result<Outputs, Failure> {
        rustix::io::write(ended, &1u64.to_ne_bytes())
            .instrument_to("receive a command's output")?;
        self.results
            .recv()
            .map_err(io::Error::other)
            .instrument_to("receive a command's output")
    }
}

/// Makes a pipe whose reading end does not block. The writing end, the command's,
/// has its own open file description and blocks as usual.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    Ok((reader, writer))
}

struct Stream {
    /// `None` after end of file.
    source: Option<OwnedFd>,
    kept: Kept,
}

impl Stream {
    /// Reads at most one block, and returns the bytes read.
    fn receive(&mut self, block: &mut Vec<u8>) -> usize {
        let Some(source) = &self.source else {
            return 0;
        };
        block.clear();
        match rustix::io::read(source, spare_capacity(block)) {
            Ok(length) if length > 0 => {
                self.kept.add(block);
                length
            }
            Err(Errno::INTR | Errno::AGAIN) => 0,
            _ => {
                self.source = None;
                0
            }
        }
    }

    /// Reads what is in the pipe, but hardly more than its capacity. Otherwise a process that still
    /// writes to the pipe could keep the probe here.
    fn receive_rest(&mut self, block: &mut Vec<u8>) {
        let capacity = self
            .source
            .as_ref()
            .and_then(|pipe| fcntl_getpipe_size(pipe).ok());
        let mut left = capacity.unwrap_or(0);
        while left > 0 {
            match self.receive(block) {
                0 => break,
                length => left = left.saturating_sub(length),
            }
        }
    }
}

fn receive_until(streams: &mut [Stream; 2], ended: &OwnedFd, block: &mut Vec<u8>) {
    while !wait_for_any(streams, ended) {
        for stream in &mut *streams {
            stream.receive(block);
        }
    }
}

fn receive_rest(mut streams: [Stream; 2], block: &mut Vec<u8>) -> Outputs {
    for stream in &mut streams {
        stream.receive_rest(block);
    }
    let [stdout, stderr] = streams.map(|stream| stream.kept);
    Outputs { stdout, stderr }
}

/// Waits until a stream is readable or the command has ended, and returns whether
/// the command has ended.
fn wait_for_any(streams: &[Stream; 2], ended: &OwnedFd) -> bool {
    let mut polled: Vec<PollFd<'_>> = std::iter::once(ended.as_fd())
        .chain(
            streams
                .iter()
                .filter_map(|stream| stream.source.as_ref().map(AsFd::as_fd)),
        )
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    match poll(&mut polled, None) {
        Ok(_) => polled[0].revents().contains(PollFlags::IN),
        Err(Errno::INTR) => false,
        // Polling no longer works; the caller reads the rest once.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_and_the_end_are_kept_and_no_more() {
        let mut kept = Kept::new(5);
        kept.add(b"abc");
        kept.add(b"defg\n");
        assert_eq!(kept.head(), "abcde");
        for _ in 0..100 {
            kept.add(&[b'x'; 1000]);
        }
        kept.add(b"\nlast words\n\n");
        assert_eq!(kept.head.len(), 5);
        assert_eq!(kept.tail.len(), TAIL_BYTES_MAX);
        assert_eq!(kept.last_line().unwrap(), "last words");
    }

    #[test]
    fn nothing_printed_has_no_last_line() {
        let mut kept = Kept::new(0);
        assert_eq!(kept.last_line(), None);
        kept.add(b"\n \n");
        assert_eq!(kept.last_line(), None);
    }

    #[test]
    fn output_that_is_no_text_is_replaced() {
        let mut kept = Kept::new(3);
        kept.add(b"a\xffb");
        assert_eq!(kept.head(), "a\u{fffd}b");
    }

    #[test]
    fn a_writer_that_stays_does_not_keep_the_receiver() {
        for errors_only in [true, false] {
            let receiver = Receiver::start(errors_only).unwrap();
            let mut pipes = receiver.open(true, 10).unwrap();
            let writers = [pipes.stdout.take().unwrap(), pipes.stderr.take().unwrap()];
            for writer in &writers {
                rustix::io::write(writer, b"hello").unwrap();
            }
            let outputs = pipes.finish().unwrap();
            assert_eq!(outputs.stdout.head(), "hello");
            assert_eq!(outputs.stderr.head(), "hello");
        }
    }
}
