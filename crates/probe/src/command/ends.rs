//! What a command reads, and where its output arrives.

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

use crate::copy::mmap::Mapped;
use crate::copy::mover::{Job, Mover};
use crate::copy::reader::{Purpose, READER_BUFFER_BYTES};
use crate::copy::sink::OpenSink;
use crate::copy::source::OpenSource;
use crate::failure::OrFail;
use crate::{children, failure, scratch, verify};

/// Bytes written into a command's input at a time, as `cat` does.
const FEED_BYTES: u64 = 128 << 10;
/// Longest wait until a pipe is full.
const FILL_PATIENCE: Duration = Duration::from_secs(5);
const FILL_POLL: Duration = Duration::from_micros(50);
/// A command that has ended leaves its output open for longer than this only if
/// it has left a process behind.
const END_PATIENCE: Duration = Duration::from_secs(1);

pub struct Input {
    path: PathBuf,
    is_piped: bool,
    /// The file, if it is to be in memory.
    warm: Option<OpenSource>,
}

impl Input {
    pub fn new(file: &InputFile) -> Result<Self, Failure> {
        let warm = file
            .warm_bytes
            .map(|bytes| OpenSource::of_file(&file.path, bytes, CacheState::Warm));
        Ok(Self {
            path: super::absolute(&file.path)?,
            is_piped: file.is_piped,
            warm: warm.transpose()?,
        })
    }

    /// Opens it for one run. A pipe is full then, or holds all there is: no
    /// command waits for the probe to begin.
    pub fn open(&self) -> Result<Stdio, Failure> {
        let file = match &self.warm {
            Some(source) => source.ready()?.into_file(),
            None => File::open(&self.path).failed_with("open", &self.path)?,
        };
        match self.is_piped {
            false => Ok(file.into()),
            true => feed(file).failed_with("open", "a pipe"),
        }
    }

    /// Whether a path means the same regular file.
    pub fn is_file(&self, path: &Path) -> bool {
        let identity = |path: &Path| {
            let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
            Some((found.dev(), found.ino()))
        };
        identity(path).is_some_and(|output| identity(&self.path) == Some(output))
    }

    /// How much of it was in memory.
    pub fn note(&self) -> Option<String> {
        self.warm.as_ref()?.note()
    }
}

/// Has a thread write a file into a pipe. It ends when nobody reads any more.
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
        // A command need not read all of its input. What it misses is found in
        // its output.
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

/// The sink that takes a command's output, if the probe receives it or makes its
/// file.
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
        // No command pays for what an earlier one has written.
        File::open(directory)
            .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
            .failed_with("open", directory)?;
    }
    let purpose = match is_check {
        true => Purpose::Hash,
        false => purpose,
    };
    OpenSink::open(sink, directory, purpose).map(Some)
}

/// Waits until a sink has all that a command wrote. Gives when that was, unless
/// the command left a process behind that had to be ended first.
pub fn finish(sink: &mut OpenSink) -> Result<Option<u64>, Failure> {
    if sink.is_finished_within(END_PATIENCE) {
        return Ok(sink.finish());
    }
    children::end_all();
    match sink.is_finished_within(END_PATIENCE) {
        true => Ok(None),
        false => Err(failure::failed(
            "cannot receive all output: another process keeps it open; let the command wait for \
             those that it starts"
                .to_owned(),
        )),
    }
}

/// Compares what arrived with what was expected.
pub fn check(sink: OpenSink, expected: &Content, is_check: bool) -> Result<(), Failure> {
    let purpose = match is_check {
        true => Purpose::Hash,
        false => Purpose::Count,
    };
    let (arrived, _) = sink.arrived(expected.size_bytes, purpose)?;
    verify::check(&arrived, expected)
}

/// How the output is received, for the notes.
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
