//! Filling a program's standard input.

use std::io::{PipeReader, Write};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use crate::content::Content;
use crate::sink::BUFFER_BYTES;

/// A pipe that is full, or holds all of `size_bytes`, and the thread that
/// writes the rest into it; none if there is no rest. A program never waits for
/// this process to begin.
///
/// With `exact` the bytes are those of the content. Else its first buffer is
/// written again and again, as a program with a buffer does: making or reading
/// other bytes would cost as much as what is measured.
///
/// # Errors
/// If there can be no pipe.
pub(crate) fn start(
    size_bytes: u64,
    seed: u64,
    exact: bool,
) -> std::io::Result<(PipeReader, Option<JoinHandle<()>>)> {
    let (reader, mut writer) = std::io::pipe()?;
    let mut pieces = Pieces::new(size_bytes, seed, exact);
    // As much as an empty pipe takes without blocking.
    let capacity = rustix::pipe::fcntl_getpipe_size(&writer)?;
    if let Some(piece) = pieces.next(capacity) {
        writer.write_all(piece)?;
    }
    if pieces.left_bytes == 0 {
        return Ok((reader, None));
    }
    let ready = Arc::new(Barrier::new(2));
    let theirs = ready.clone();
    let thread = std::thread::spawn(move || {
        theirs.wait();
        while let Some(piece) = pieces.next(BUFFER_BYTES) {
            // A program that leaves early is found out by what it delivered.
            if writer.write_all(piece).is_err() {
                return;
            }
        }
    });
    ready.wait();
    Ok((reader, Some(thread)))
}

/// The bytes that are written, up to a buffer at a time.
struct Pieces {
    buffer: Vec<u8>,
    position: usize,
    left_bytes: u64,
    /// What the buffer is filled with anew, if it is.
    content: Option<Content>,
}

impl Pieces {
    fn new(size_bytes: u64, seed: u64, exact: bool) -> Pieces {
        let mut content = Content::new(seed);
        let mut buffer = vec![0; BUFFER_BYTES];
        fill(&mut buffer, &mut content);
        Pieces {
            buffer,
            position: 0,
            left_bytes: size_bytes,
            content: exact.then_some(content),
        }
    }

    fn next(&mut self, length_max: usize) -> Option<&[u8]> {
        if self.position == self.buffer.len() {
            self.position = 0;
            if let Some(content) = &mut self.content {
                fill(&mut self.buffer, content);
            }
        }
        let left = usize::try_from(self.left_bytes).unwrap_or(usize::MAX);
        let length = length_max.min(left).min(self.buffer.len() - self.position);
        let piece = &self.buffer[self.position..self.position + length];
        self.position += length;
        self.left_bytes -= length as u64;
        (length > 0).then_some(piece)
    }
}

fn fill(buffer: &mut [u8], content: &mut Content) {
    let mut filled = 0;
    while filled < buffer.len() {
        let piece = content.take(buffer.len() - filled);
        buffer[filled..filled + piece.len()].copy_from_slice(piece);
        filled += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::content::Verifier;

    fn fed(size_bytes: u64, exact: bool) -> Vec<u8> {
        let (mut reader, thread) = start(size_bytes, 5, exact).expect("pipes can be made");
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("pipes can be read");
        if let Some(thread) = thread {
            thread.join().expect("a feeder does not panic");
        }
        bytes
    }

    #[test]
    fn an_exact_feeder_writes_the_content() {
        for size_bytes in [0, 1, 1024, 65_536, 65_537, 131_072, 500_001] {
            let mut verifier = Verifier::new(5);
            verifier.accept(&fed(size_bytes, true));
            verifier.finish(size_bytes).expect("these are the bytes");
        }
    }

    #[test]
    fn a_fast_feeder_writes_as_many_bytes() {
        let bytes = fed(500_001, false);
        assert_eq!(bytes.len(), 500_001);
        assert_eq!(bytes[..BUFFER_BYTES], bytes[BUFFER_BYTES..2 * BUFFER_BYTES]);
    }

    #[test]
    fn what_a_pipe_holds_needs_no_thread() {
        let (_reader, thread) = start(1024, 5, false).expect("pipes can be made");
        assert!(thread.is_none());
    }

    #[test]
    fn a_feeder_ends_when_nobody_reads() {
        let (reader, thread) = start(1 << 30, 5, false).expect("pipes can be made");
        drop(reader);
        let thread = thread.expect("no pipe is that large");
        thread.join().expect("a feeder does not panic");
    }
}
