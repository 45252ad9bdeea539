//! The bytes that are copied, and whether they arrived.

use toll_stats::Rng;

/// Bytes made at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// An endless sequence of random bytes, the same for the same seed. Random, so
/// that no file system can compress it or store it as a hole.
pub(crate) struct Content {
    rng: Rng,
    block: Vec<u8>,
    position: usize,
}

impl Content {
    pub(crate) fn new(seed: u64) -> Content {
        Content {
            rng: Rng::new(seed),
            block: vec![0; BLOCK_BYTES],
            position: BLOCK_BYTES,
        }
    }

    /// The next bytes: at least one and at most `length_max`.
    pub(crate) fn take(&mut self, length_max: usize) -> &[u8] {
        assert!(length_max > 0, "no bytes cannot be taken");
        if self.position == BLOCK_BYTES {
            for word in self.block.chunks_exact_mut(8) {
                word.copy_from_slice(&self.rng.next_u64().to_le_bytes());
            }
            self.position = 0;
        }
        let end = BLOCK_BYTES.min(self.position.saturating_add(length_max));
        let taken = &self.block[self.position..end];
        self.position = end;
        taken
    }
}

/// Compares what arrives, in pieces of any size, with the content.
pub(crate) struct Verifier {
    expected: Content,
    bytes: u64,
    first_wrong: Option<u64>,
}

impl Verifier {
    pub(crate) fn new(seed: u64) -> Verifier {
        Verifier {
            expected: Content::new(seed),
            bytes: 0,
            first_wrong: None,
        }
    }

    pub(crate) fn accept(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let expected = self.expected.take(piece.len());
            let (head, rest) = piece.split_at(expected.len());
            if head != expected && self.first_wrong.is_none() {
                let within = head.iter().zip(expected).take_while(|(a, b)| a == b);
                self.first_wrong = Some(self.bytes + within.count() as u64);
            }
            self.bytes += head.len() as u64;
            piece = rest;
        }
    }

    /// Whether exactly the first `size_bytes` of the content arrived.
    ///
    /// # Errors
    /// With what is wrong.
    pub(crate) fn finish(self, size_bytes: u64) -> Result<(), String> {
        if let Some(offset) = self.first_wrong.filter(|&offset| offset < size_bytes) {
            return Err(format!("delivered a wrong byte at offset {offset}"));
        }
        check_length(self.bytes, size_bytes)
    }
}

/// Checks how many bytes arrived.
///
/// # Errors
/// If they are fewer or more than `size_bytes`.
pub(crate) fn check_length(bytes: u64, size_bytes: u64) -> Result<(), String> {
    if bytes == size_bytes {
        Ok(())
    } else {
        Err(format!("delivered {bytes} bytes instead of {size_bytes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u64, length: usize) -> Vec<u8> {
        let mut content = Content::new(seed);
        let mut all = Vec::new();
        while all.len() < length {
            all.extend_from_slice(content.take(length - all.len()));
        }
        all
    }

    fn verify(arrived: &[u8], piece: usize, size_bytes: u64) -> Result<(), String> {
        let mut verifier = Verifier::new(7);
        arrived
            .chunks(piece)
            .for_each(|piece| verifier.accept(piece));
        verifier.finish(size_bytes)
    }

    #[test]
    fn the_right_bytes_are_right_in_pieces_of_any_size() {
        let right = bytes(7, 200_001);
        for piece in [1000, 4096, 131_072, 200_001] {
            verify(&right, piece, 200_001).expect("these are the bytes");
        }
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        let mut wrong = bytes(7, 200_001);
        wrong[150_000] ^= 1;
        wrong[150_001] ^= 1;
        let error = verify(&wrong, 999, 200_001).expect_err("a byte is wrong");
        assert!(error.contains("offset 150000"), "{error}");
    }

    #[test]
    fn too_few_and_too_many_bytes_are_wrong() {
        let right = bytes(7, 1025);
        assert!(verify(&right[..1023], 100, 1024).is_err());
        assert!(verify(&right, 100, 1024).is_err());
        verify(&right[..1024], 100, 1024).expect("just right");
    }

    #[test]
    fn other_seeds_give_other_bytes() {
        assert_ne!(bytes(1, 64), bytes(2, 64));
    }
}
