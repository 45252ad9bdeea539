//! Emptying a program's sink.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Barrier;
use std::thread::JoinHandle;
use std::{fs, io, sync};

use rustix::pipe::{SpliceFlags, splice};

use toll_probe::clock;

use crate::case::Sink;
use crate::content::{Verifier, check_length};

/// Buffer of readers and feeders, that of GNU and uutils `cat`.
pub(crate) const BUFFER_BYTES: usize = 128 << 10;

/// What a reader does with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Counts them.
    Count,
    /// Compares them with the content of this seed.
    Verify(u64),
}

/// What a reader saw.
struct Seen {
    /// When the end of file was seen.
    end_ns: u64,
    /// Whether the right bytes arrived.
    right: Result<(), String>,
}

/// The far end of a program's sink.
pub(crate) struct FarEnd {
    thread: Option<JoinHandle<Seen>>,
}

impl FarEnd {
    /// Waits for the end of file and yields when it was seen; `None` if nobody
    /// reads.
    ///
    /// # Errors
    /// If wrong bytes arrived.
    pub(crate) fn join(self) -> Result<Option<u64>, String> {
        let Some(thread) = self.thread else {
            return Ok(None);
        };
        let seen = thread.join().map_err(|_| "the reader failed".to_owned())?;
        seen.right.map(|()| Some(seen.end_ns))
    }
}

/// Opens a sink: what the program gets, and its far end. A reader reads
/// already when this returns.
///
/// # Errors
/// With the reason of the operating system.
pub(crate) fn open(
    sink: Sink,
    path: &Path,
    size_bytes: u64,
    reading: Reading,
) -> io::Result<(OwnedFd, FarEnd)> {
    let nobody = FarEnd { thread: None };
    match sink {
        Sink::Null => {
            let null = File::options().write(true).open("/dev/null")?;
            Ok((null.into(), nobody))
        }
        Sink::File => Ok((File::create(path)?.into(), nobody)),
        Sink::PipeRead => {
            let (reader, writer) = io::pipe()?;
            Ok((writer.into(), read(reader, size_bytes, reading)))
        }
        Sink::PipeSplice => {
            let (reader, writer) = io::pipe()?;
            // What is spliced away cannot be looked at; the program cannot
            // tell the two readers apart.
            let far_end = match reading {
                Reading::Count => splice_away(reader.into(), size_bytes)?,
                Reading::Verify(_) => read(reader, size_bytes, reading),
            };
            Ok((writer.into(), far_end))
        }
        Sink::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let near = TcpStream::connect(listener.local_addr()?)?;
            let (far, _) = listener.accept()?;
            Ok((near.into(), read(far, size_bytes, reading)))
        }
    }
}

/// Starts a reader and waits until it runs.
fn start(reader: impl FnOnce() -> Seen + Send + 'static) -> FarEnd {
    let ready = sync::Arc::new(Barrier::new(2));
    let theirs = ready.clone();
    let thread = std::thread::spawn(move || {
        theirs.wait();
        reader()
    });
    ready.wait();
    FarEnd {
        thread: Some(thread),
    }
}

fn read(mut from: impl Read + Send + 'static, size_bytes: u64, reading: Reading) -> FarEnd {
    // Made before the reader runs: its pages are touched by then.
    let mut buffer = vec![1; BUFFER_BYTES];
    let mut verifier = match reading {
        Reading::Count => None,
        Reading::Verify(seed) => Some(Verifier::new(seed)),
    };
    start(move || {
        let mut bytes = 0;
        let failed = loop {
            match from.read(&mut buffer) {
                Ok(0) => break None,
                Ok(length) => {
                    bytes += length as u64;
                    if let Some(verifier) = &mut verifier {
                        verifier.accept(&buffer[..length]);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(format!("the reader cannot read: {error}")),
            }
        };
        let end_ns = clock::now_ns();
        let right = match (failed, verifier) {
            (Some(reason), _) => Err(reason),
            (None, Some(verifier)) => verifier.finish(size_bytes),
            (None, None) => check_length(bytes, size_bytes),
        };
        Seen { end_ns, right }
    })
}

fn splice_away(from: OwnedFd, size_bytes: u64) -> io::Result<FarEnd> {
    let null = File::options().write(true).open("/dev/null")?;
    Ok(start(move || {
        let mut bytes = 0;
        let failed = loop {
            match splice(
                &from,
                None,
                &null,
                None,
                // More than any pipe holds, so that a call takes all there is.
                1 << 30,
                SpliceFlags::empty(),
            ) {
                Ok(0) => break None,
                Ok(length) => bytes += length as u64,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Some(format!("the reader cannot splice: {error}")),
            }
        };
        let end_ns = clock::now_ns();
        let right = failed.map_or_else(|| check_length(bytes, size_bytes), Err);
        Seen { end_ns, right }
    }))
}

/// Checks a file that a program wrote.
///
/// # Errors
/// If its bytes are not the right ones.
pub(crate) fn check_file(path: &Path, size_bytes: u64, reading: Reading) -> Result<(), String> {
    let wrong = |error: io::Error| format!("its file cannot be read: {error}");
    let Reading::Verify(seed) = reading else {
        let length = fs::metadata(path).map_err(wrong)?.len();
        return check_length(length, size_bytes);
    };
    let mut file = File::open(path).map_err(wrong)?;
    let mut verifier = Verifier::new(seed);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer).map_err(wrong)? {
            0 => return verifier.finish(size_bytes),
            length => verifier.accept(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::content::Content;

    fn deliver(sink: Sink, bytes: &[u8], size_bytes: u64, reading: Reading) -> Result<(), String> {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("sink");
        let (near, far) = open(sink, &path, size_bytes, reading).expect("sinks can be opened");
        File::from(near).write_all(bytes).expect("it is read");
        if sink == Sink::File {
            check_file(&path, size_bytes, reading)?;
        }
        far.join().map(drop)
    }

    #[test]
    fn every_sink_knows_the_right_bytes() {
        let mut content = Content::new(9);
        let right = content.take(50_000).to_vec();
        for sink in [Sink::PipeRead, Sink::PipeSplice, Sink::File, Sink::Tcp] {
            for reading in [Reading::Count, Reading::Verify(9)] {
                deliver(sink, &right, 50_000, reading).expect("these are the bytes");
                let short = deliver(sink, &right[1..], 50_000, reading);
                assert!(short.is_err(), "{sink:?} {reading:?}");
            }
            let wrong = deliver(sink, &right, 50_000, Reading::Verify(10));
            assert!(wrong.is_err(), "{sink:?}");
        }
    }
}
