//! `readv` and `writev` over four parts (readv(2)).

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use rustix::io::{Errno, readv, writev};
use toll_wire::Failure;

use super::mover::{CallError, Job, Moved, Mover, portion};
use super::read_write::BUFFER_BYTES_DEFAULT;
use crate::buffer::{Buffer, checked_length};
use crate::failure;

const PARTS: usize = 4;

pub struct Vectored {
    buffer: Buffer,
}

impl Vectored {
    /// Returns a copier over four parts that have `buffer_bytes` together.
    pub fn new(buffer_bytes: Option<u64>) -> Result<Self, Failure> {
        let length = checked_length(buffer_bytes.unwrap_or(BUFFER_BYTES_DEFAULT))?;
        if length < PARTS {
            return Err(failure::instrument(format!(
                "cannot split a buffer of {length} bytes: it must have {PARTS} parts; \
                 choose a larger buffer_bytes"
            )));
        }
        Ok(Self {
            buffer: Buffer::aligned(length),
        })
    }
}

impl Mover for Vectored {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let memory = self.buffer.bytes_mut();
        let mut moved = Moved::default();
        while moved.bytes < job.size_bytes {
            let wanted = portion(job.size_bytes - moved.bytes, memory.len());
            let length = match readv(job.source, &mut parts_mut(memory, wanted)) {
                Ok(0) => break,
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(CallError::characteristic("readv", errno, moved.calls)),
            };
            moved.calls += 1;
            let mut written = 0;
            while written < length {
                match writev(job.sink, &parts(memory, written..length)) {
                    Ok(0) => return Err(CallError::no_progress("writev")),
                    Ok(count) => {
                        written += count;
                        moved.calls += 1;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(CallError::new("writev", errno)),
                }
            }
            moved.bytes += length as u64;
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        let length = self.buffer.bytes().len();
        vec![format!("buffer of {length} bytes in {PARTS} parts")]
    }
}

/// Splits the first `length` bytes into four parts; a part may be empty.
fn parts_mut(memory: &mut [u8], length: usize) -> [IoSliceMut<'_>; PARTS] {
    let part = memory.len() / PARTS;
    let (first, rest) = memory[..length].split_at_mut(part.min(length));
    let (second, rest) = rest.split_at_mut(part.min(rest.len()));
    let (third, fourth) = rest.split_at_mut(part.min(rest.len()));
    [first, second, third, fourth].map(IoSliceMut::new)
}

/// Splits the bytes of `range` by the part that holds them; a part may be empty.
fn parts(memory: &[u8], range: Range<usize>) -> [IoSlice<'_>; PARTS] {
    let part = memory.len() / PARTS;
    std::array::from_fn(|index| {
        let end = if index + 1 == PARTS {
            memory.len()
        } else {
            (index + 1) * part
        };
        let from = range.start.max(index * part);
        let to = range.end.min(end);
        IoSlice::new(if from < to { &memory[from..to] } else { &[] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_together_are_the_range() {
        let mut memory: Vec<u8> = (0..23).collect();
        for length in 0..=memory.len() {
            let lengths: usize = parts_mut(&mut memory, length)
                .iter()
                .map(|part| part.len())
                .sum();
            assert_eq!(lengths, length);
            for start in 0..=length {
                let joined: Vec<u8> = parts(&memory, start..length)
                    .iter()
                    .flat_map(|part| part.to_vec())
                    .collect();
                assert_eq!(joined, memory[start..length]);
            }
        }
    }
}
