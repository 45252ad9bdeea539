//! Buffers that data passes through.

use toll_wire::BUFFER_BYTES_MAX;

use crate::failure;

pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Returns the length of a buffer; fails unless it is 1 to [`BUFFER_BYTES_MAX`] bytes.
pub fn checked_length(buffer_bytes: u64) -> Result<usize, toll_wire::Failure> {
    if buffer_bytes == 0 || buffer_bytes > BUFFER_BYTES_MAX {
        return Err(failure::instrument(format!(
            "cannot make a buffer of {buffer_bytes} bytes: the probe takes 1 to \
             {BUFFER_BYTES_MAX}; choose another buffer_bytes"
        )));
    }
    Ok(buffer_bytes as usize)
}

/// A buffer with a chosen alignment to pages.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Returns a buffer that starts on a page boundary. Every page is touched in advance, so that
    /// its page faults are not measured.
    pub fn aligned(length: usize) -> Self {
        // A fill with zeros would use calloc, which touches no page.
        Self::at_page(vec![0xa5; length + page_bytes()], length)
    }

    /// Returns a buffer that starts on a page boundary, for a program that may need only some of
    /// its pages. The kernel provides each page on first use.
    pub fn untouched(length: usize) -> Self {
        Self::at_page(vec![0; length + page_bytes()], length)
    }

    fn at_page(memory: Vec<u8>, length: usize) -> Self {
        let page = page_bytes();
        let start = memory.as_ptr().align_offset(page);
        assert!(start < page, "a byte pointer can always be aligned");
        Self {
            memory,
            start,
            length,
        }
    }

    /// Returns a buffer where `malloc` places it. If that is a page boundary, the
    /// start moves by 16 bytes, the alignment of glibc's `malloc`. Every page is
    /// touched in advance.
    pub fn unaligned(length: usize) -> Self {
        const MALLOC_ALIGNMENT: usize = 16;
        let memory = vec![0xa5; length + MALLOC_ALIGNMENT];
        let is_aligned = memory.as_ptr().addr().is_multiple_of(page_bytes());
        Self {
            memory,
            start: if is_aligned { MALLOC_ALIGNMENT } else { 0 },
            length,
        }
    }

    /// Returns the bytes from the previous page boundary to the buffer's start.
    pub fn page_offset(&self) -> usize {
        self.bytes().as_ptr().addr() % page_bytes()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_buffer_starts_on_a_page_and_an_unaligned_one_does_not() {
        for length in [1, 4095, 4096, 4097, 1 << 20] {
            let mut aligned = Buffer::aligned(length);
            assert_eq!(aligned.page_offset(), 0);
            assert_eq!(aligned.bytes_mut().len(), length);
            assert_ne!(Buffer::unaligned(length).page_offset(), 0);
        }
    }

    #[test]
    fn a_buffer_length_has_limits() {
        assert!(checked_length(0).is_err());
        assert!(checked_length(BUFFER_BYTES_MAX + 1).is_err());
        assert_eq!(checked_length(512).unwrap(), 512);
    }
}
