//! A staging buffer that output is put into piece by piece.

use super::line::Lines;
use super::line_number::LineNumber;
use super::special::BLOCK;

/// Bytes of the staged: few enough to stay in the first cache.
const SIZE: usize = 16384;

/// Most bytes between two calls of `make_room`: those of a block of newlines,
/// the number of the first line, and what is written beyond a count.
const MARGIN: usize = BLOCK * Lines::LONGEST + LineNumber::LONGEST + BLOCK;

const _: () = assert!(MARGIN < SIZE / 2);

/// Where output lies that is not yet in the caller's buffer.
pub type StagingBuffer = [u8; SIZE];

/// Puts output into a staging buffer. A vector would compare its capacity and call for
/// a copy of every few bytes; here it is a few stores.
pub struct Sink<'a> {
    staged: &'a mut StagingBuffer,
    length: usize,
}

impl<'a> Sink<'a> {
    pub fn new(staged: &'a mut StagingBuffer) -> Self {
        Self { staged, length: 0 }
    }

    /// Makes room for what a block of input can put.
    #[inline(always)]
    pub fn make_room(&mut self, output: &mut Vec<u8>) {
        if self.length > SIZE - MARGIN {
            self.drain(output);
        }
    }

    #[inline(always)]
    pub fn drain(&mut self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.staged[..self.length]);
        self.length = 0;
    }

    /// Puts the lowest `count` bytes of a word, of eight at most.
    #[inline(always)]
    pub fn put_word(&mut self, word: u64, count: usize) {
        self.staged[self.length..self.length + 8].copy_from_slice(&word.to_le_bytes());
        self.length += count;
    }

    /// Puts the first `count` bytes of at least a block, of a block at most.
    #[inline(always)]
    pub fn put_block(&mut self, bytes: &[u8], count: usize) {
        self.staged[self.length..self.length + BLOCK].copy_from_slice(&bytes[..BLOCK]);
        self.length += count;
    }

    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.staged[self.length..self.length + N].copy_from_slice(&bytes);
        self.length += N;
    }
}
