//! The C functions that a program, the kernel and a module share:
//! `kernel/common/count_primes_core.c`.

use std::mem::MaybeUninit;

/// Numbers counted per call (`TOLL_PRIMES_CHUNK`): the kernel has to check for
/// signals in between, and a program makes the same calls.
const CHUNK: usize = 1024;

unsafe extern "C" {
    fn toll_draw_numbers(numbers: *mut u32, n: u32, seed: u64);
    fn toll_count_primes(numbers: *const u32, n: u32) -> u32;
}

/// Fills all places with numbers from 2 to the number of places, drawn from a seed.
pub fn draw(places: &mut [MaybeUninit<u32>], seed: u64) {
    let n = u32::try_from(places.len()).expect("n is limited");
    assert!(n >= 2, "at least two numbers");
    // SAFETY: the function writes `n` numbers, for all of which there is room.
    unsafe { toll_draw_numbers(places.as_mut_ptr().cast(), n, seed) };
}

pub fn count(numbers: &[u32]) -> u64 {
    let count_chunk = |chunk: &[u32]| {
        // SAFETY: the function reads `chunk.len()` numbers, at most CHUNK.
        u64::from(unsafe { toll_count_primes(chunk.as_ptr(), chunk.len() as u32) })
    };
    numbers.chunks(CHUNK).map(count_chunk).sum()
}

/// Maps a random word to a number from 2 to `n`, as `toll_number_in_range`
/// does.
pub fn in_range(word: u32, n: u32) -> u32 {
    2 + ((u64::from(word) * u64::from(n - 1)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::super::expected::Expected;
    use super::*;

    #[test]
    fn the_c_functions_agree_with_the_independent_ones() {
        for n in [2, 3, 10, 1023, 1024, 1025, 100_000] {
            let mut numbers = Vec::with_capacity(n);
            draw(&mut numbers.spare_capacity_mut()[..n], 5);
            // SAFETY: `draw` has filled the first `n` places.
            unsafe { numbers.set_len(n) };
            let expected = Expected::new(n as u32);
            assert_eq!(count(&numbers), expected.count(&numbers), "{n}");
            assert_eq!(count(&numbers), expected.seeded(5), "{n}");
        }
    }

    #[test]
    fn every_prime_up_to_a_limit_is_counted_once() {
        let numbers: Vec<u32> = (0..=100).collect();
        assert_eq!(count(&numbers), 25);
        assert_eq!(count(&[u32::MAX, 4_294_967_291]), 1);
    }

    #[test]
    fn a_word_becomes_a_number_in_range() {
        assert_eq!((in_range(0, 10), in_range(u32::MAX, 10)), (2, 10));
        assert_eq!(in_range(u32::MAX, 2), 2);
    }
}
