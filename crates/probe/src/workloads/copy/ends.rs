//! The ends of a copy as its request names them.

use toll_wire::{Content, CopyRequest, Failure, Sink, SinkFile, Source};

use super::reader::{Purpose, READER_BUFFER_BYTES};
use super::sink::OpenSink;
use crate::verify::{self, Arrived};

/// Opens a fresh sink in the state that the request names.
pub fn open_sink(copy: &CopyRequest, purpose: Purpose) -> Result<OpenSink, Failure> {
    let sink = OpenSink::open(copy.sink, &copy.directory, purpose)?;
    if copy.sink_file == SinkFile::Cold {
        sink.lay_cold(copy.size_bytes)?;
    }
    Ok(sink)
}

pub fn check(arrived: &Arrived, copy: &CopyRequest) -> Result<(), Failure> {
    let xxh3 = match &copy.source {
        Source::File { xxh3, .. } => *xxh3,
        Source::Zero => verify::hash_zeros(copy.size_bytes),
    };
    let size_bytes = copy.size_bytes;
    verify::check(arrived, &Content { size_bytes, xxh3 })
}

pub fn sink_name(copy: &CopyRequest) -> String {
    match copy.sink {
        Sink::Null => "/dev/null".to_owned(),
        Sink::Pipe => "a pipe".to_owned(),
        Sink::File => format!("a file in {}", copy.directory.display()),
        Sink::Socket => "a TCP socket".to_owned(),
    }
}

pub fn notes_of_ends(copy: &CopyRequest) -> Vec<String> {
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
