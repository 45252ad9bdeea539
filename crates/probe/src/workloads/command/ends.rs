//! The input of a command, and the sink of its output.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};
use toll_wire::{CacheState, CommandRequest, Content, Failure, InputFile, OutputPolicy, Sink};

use super::search::absolute;
use crate::failure::OrFail;
use crate::workloads::copy::mmap::Mapped;
use crate::workloads::copy::mover::{Job, Mover};
use crate::workloads::copy::reader::{Purpose, READER_BUFFER_BYTES};
use crate::workloads::copy::sink::OpenSink;
use crate::workloads::copy::source::OpenSource;
use crate::{children, failure, scratch, verify};

/// Bytes written to a command's input at a time, the same as `cat`.
const FEED_BYTES: u64 = 128 << 10;
/// Longest wait until a pipe is full.
const FILL_PATIENCE: Duration = Duration::from_secs(5);
const FILL_POLL: Duration = Duration::from_micros(50);
/// Longest wait for the end of the output after a command has ended. Only a process that the
/// command left behind keeps the output open for longer.
const END_PATIENCE: Duration = Duration::from_secs(1);

pub struct Input {
    path: PathBuf,
    is_piped: bool,
    /// The file, if it must be in the page cache.
    warm: Option<OpenSource>,
}

impl Input {
    pub fn new(file: &InputFile) -> Result<Self, Failure> {
        let warm = file
            .warm_bytes
            .map(|bytes| OpenSource::of_file(&file.path, bytes, CacheState::Warm));
        Ok(Self {
            path: absolute(&file.path)?,
            is_piped: file.is_piped,
            warm: warm.transpose()?,
        })
    }

    /// Opens the input for one run. A pipe is returned full, or with the whole
    /// file, so that no command waits for the probe to start writing.
    pub fn open(&self) -> Result<Stdio, Failure> {
        let file = match &self.warm {
            Some(source) => source.ready()?.into_file(),
            None => File::open(&self.path).failed_with("open", &self.path)?,
        };
        if self.is_piped {
            feed(file).failed_with("open", "a pipe")
        } else {
            Ok(file.into())
        }
    }

    /// Whether `path` refers to the same regular file as the input.
    pub fn is_file(&self, path: &Path) -> bool {
        let identity = |path: &Path| {
            let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
            Some((found.dev(), found.ino()))
        };
        identity(path).is_some_and(|output| identity(&self.path) == Some(output))
    }

    /// Returns a note on how much of the input was in the page cache.
    pub fn note(&self) -> Option<String> {
        self.warm.as_ref()?.note()
    }
}

/// Starts a thread that writes a file into a pipe, and returns the reading end
/// once the pipe is full or holds the whole file. The thread ends when the
/// reading end is closed.
fn feed(file: File) -> io::Result<Stdio> {
    let size_bytes = file.metadata()?.len();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let room = fcntl_getpipe_size(&writer)? as u64;
    thread::Builder::new().spawn(move || {
        let job = Job {
            source: file.as_fd(),
            sink: writer.as_fd(),
            sink_kind: Sink::Pipe,
            size_bytes,
        };
        // A command need not read all of its input, so an error is ignored.
        // Input that it misses shows in its output.
        let _ = Mapped::whole(Some(FEED_BYTES)).map(|mut mapped| mapped.run(&job));
    })?;
    let deadline = Instant::now() + FILL_PATIENCE;
    while ioctl_fionread(&reader)? < room.min(size_bytes) {
        if Instant::now() > deadline {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        thread::sleep(FILL_POLL);
    }
    Ok(reader.into())
}

/// Opens the sink of a command's output, if the probe receives the output or
/// creates its file.
pub fn open_sink(request: &CommandRequest, is_check: bool) -> Result<Option<OpenSink>, Failure> {
    let nowhere = Path::new("/");
    let (sink, directory, purpose) = match &request.output {
        OutputPolicy::Pipe if request.capture_bytes_max == 0 => {
            (Sink::Pipe, nowhere, Purpose::Count)
        }
        OutputPolicy::PipeSpliced => (Sink::Pipe, nowhere, Purpose::Splice),
        OutputPolicy::Socket => (Sink::Socket, nowhere, Purpose::Count),
        OutputPolicy::NewFile(directory) => (Sink::File, directory.as_path(), Purpose::Count),
        OutputPolicy::Null | OutputPolicy::Pipe | OutputPolicy::File(_) => return Ok(None),
    };
    if sink == Sink::File {
        scratch::remove_left_overs(directory);
        // Writes back what an earlier command wrote, so that this one does not
        // pay for it.
        File::open(directory)
            .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
            .failed_with("open", directory)?;
    }
    let purpose = if is_check { Purpose::Hash } else { purpose };
    OpenSink::open(sink, directory, purpose).map(Some)
}

/// Waits until a sink has received all that a command wrote. Returns when that
/// was, in nanoseconds of the clock. `None` for a sink without a reader, or if a
/// process that the command left behind had to be ended first.
pub fn finish(sink: &mut OpenSink) -> Result<Option<u64>, Failure> {
    if sink.is_finished_within(END_PATIENCE) {
        return Ok(sink.finish());
    }
    children::end_all();
    if sink.is_finished_within(END_PATIENCE) {
        Ok(None)
    } else {
        Err(failure::failed(
            "cannot receive all output: another process keeps it open; make the command wait for \
             the processes that it starts"
                .to_owned(),
        ))
    }
}

/// Checks the output that arrived against the expected content.
pub fn check(sink: OpenSink, expected: &Content, is_check: bool) -> Result<(), Failure> {
    let purpose = if is_check {
        Purpose::Hash
    } else {
        Purpose::Count
    };
    let (arrived, _) = sink.arrived(expected.size_bytes, purpose)?;
    verify::check(&arrived, expected)
}

/// Returns a note on how the output is received.
pub fn note(output: &OutputPolicy) -> Option<String> {
    let what = match output {
        OutputPolicy::Pipe => "pipe",
        OutputPolicy::Socket => "socket",
        _ => return None,
    };
    Some(format!(
        "a thread reads the {what} {READER_BUFFER_BYTES} bytes at a time"
    ))
}
