//! A staging buffer that collects output piece by piece.

use super::special::BLOCK;

/// Size of the staging buffer in bytes: small enough to stay in the first-level cache.
const SIZE: usize = 16384;

/// Output that is not yet in the caller's buffer.
pub type StagingBuffer = [u8; SIZE];

/// Puts output into a staging buffer with a few stores. A vector would check its
/// capacity and call a copy function for every few bytes.
pub struct Sink<'a> {
    staged: &'a mut StagingBuffer,
    length: usize,
}

impl<'a> Sink<'a> {
    pub fn new(staged: &'a mut StagingBuffer) -> Self {
        Self { staged, length: 0 }
    }

    /// Makes room for at least `margin` bytes, by moving the staged output to `output`
    /// if needed.
    #[inline(always)]
    pub fn make_room(&mut self, margin: usize, output: &mut Vec<u8>) {
        if self.length > SIZE - margin {
            self.drain(output);
        }
    }

    #[inline(always)]
    pub fn drain(&mut self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.staged[..self.length]);
        self.length = 0;
    }

    /// Writes the lowest `count` bytes of a word; `count` is at most 8.
    #[inline(always)]
    pub fn put_word(&mut self, word: u64, count: usize) {
        self.staged[self.length..self.length + 8].copy_from_slice(&word.to_le_bytes());
        self.length += count;
    }

    /// Writes the first `count` bytes of a slice. The slice must have at least a block,
    /// and `count` is at most a block.
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
