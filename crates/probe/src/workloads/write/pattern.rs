//! The bytes that are written: random, so that a compressing file system gains
//! nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::buffer::Buffer;
use crate::random::split_mix;

/// Length of the pattern that an input is made of, unless one `write` is longer.
const PATTERN_BYTES: u64 = 4 << 20;

/// Seeds of the content that is written, and of an overwritten file's previous
/// content, so that reading back shows which was written last.
pub const SEED: u64 = 1;
pub const SEED_BEFORE: u64 = 2;

pub struct Pattern {
    memory: Buffer,
    write_bytes: usize,
}

impl Pattern {
    /// Makes a pattern for an input of `input_bytes`, passed to `write` in
    /// pieces of `write_bytes`. Each seed gives different content.
    pub fn new(write_bytes: usize, input_bytes: u64, seed: u64) -> Self {
        assert!(write_bytes > 0, "a write has at least one byte");
        let pieces = PATTERN_BYTES
            .min(input_bytes)
            .div_ceil(write_bytes as u64)
            .max(1);
        let mut memory = Buffer::aligned(pieces as usize * write_bytes);
        fill(memory.bytes_mut(), seed);
        Self {
            memory,
            write_bytes,
        }
    }

    /// Returns the number of bytes after which the pattern repeats.
    pub fn length(&self) -> usize {
        self.memory.bytes().len()
    }

    /// Returns the bytes at `offset` of the input, at most one piece and at
    /// most `left`.
    pub fn piece(&self, offset: u64, left: u64) -> &[u8] {
        let bytes = self.memory.bytes();
        let start = (offset % bytes.len() as u64) as usize;
        let end = start - start % self.write_bytes + self.write_bytes;
        let length = usize::try_from(left).map_or(end - start, |left| left.min(end - start));
        &bytes[start..start + length]
    }

    /// Writes an input to the start of a file, and waits until it is on the device.
    pub fn lay(&self, file: &File, input_bytes: u64) -> io::Result<()> {
        let mut offset = 0;
        while offset < input_bytes {
            let piece = self.piece(offset, input_bytes - offset);
            file.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
        }
        file.sync_all()
    }
}

/// Returns the offset of the first piece of a file that differs from what
/// `expected` has there; `None` if no piece differs.
pub fn first_difference<'p>(
    file: &File,
    size_bytes: u64,
    expected: impl Fn(u64) -> &'p Pattern,
) -> io::Result<Option<u64>> {
    let mut block = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < size_bytes {
        let left = (size_bytes - offset).min(block.len() as u64);
        let piece = expected(offset).piece(offset, left);
        let actual = &mut block[..piece.len()];
        file.read_exact_at(actual, offset)?;
        if actual != piece {
            return Ok(Some(offset));
        }
        offset += piece.len() as u64;
    }
    Ok(None)
}

fn fill(memory: &mut [u8], seed: u64) {
    let mut state = seed;
    for chunk in memory.chunks_mut(size_of::<u64>()) {
        let word = split_mix(&mut state).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pattern: &Pattern, input_bytes: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < input_bytes {
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(pattern.piece(offset, input_bytes - offset));
        }
        bytes
    }

    #[test]
    fn the_pieces_make_an_input_of_the_asked_length() {
        for write_bytes in [1, 7, 512, 4096, 5 << 20] {
            for input_bytes in [0, 1, 511, 10_001, 9 << 20] {
                if input_bytes / write_bytes as u64 > 1 << 20 {
                    continue;
                }
                let pattern = Pattern::new(write_bytes, input_bytes, 1);
                assert_eq!(whole(&pattern, input_bytes).len() as u64, input_bytes);
            }
        }
    }

    #[test]
    fn a_piece_resumed_after_a_short_write_goes_on_where_it_was() {
        let pattern = Pattern::new(100, 1_000, 1);
        let piece = pattern.piece(300, 700);
        assert_eq!(piece.len(), 100);
        assert_eq!(pattern.piece(330, 670), &piece[30..]);
    }

    #[test]
    fn seeds_yield_different_contents() {
        let first = whole(&Pattern::new(512, 4096, 1), 4096);
        let second = whole(&Pattern::new(512, 4096, 2), 4096);
        assert_ne!(first, second);
    }

    #[test]
    fn a_huge_input_needs_no_huge_pattern() {
        let pattern = Pattern::new(4096, 1 << 50, 1);
        assert_eq!(pattern.memory.bytes().len() as u64, PATTERN_BYTES);
        assert_eq!(pattern.piece((1 << 40) + 4096, 5).len(), 5);
    }
}
