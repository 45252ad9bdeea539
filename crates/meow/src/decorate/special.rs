//! Finding the bytes that are not shown as they are, 64 at a time.

use super::notation::{CR, LF, TAB};

/// How many bytes are looked at together: as many as a mask has bits.
pub const BLOCK: usize = 64;

/// Which bytes are not shown as they are.
#[derive(Clone, Copy)]
pub struct Specials {
    /// All but printable ASCII, tab and newline.
    pub nonprinting: bool,
    pub tab: bool,
    pub newline: bool,
    pub carriage_return: bool,
}

/// A bit for each special byte, the lowest for the first: with `V` the
/// nonprinting ones, with `T` tabs, with `L` newlines, with `C` carriage
/// returns.
#[inline(always)]
pub fn special_mask<const V: bool, const T: bool, const L: bool, const C: bool>(
    block: &[u8; BLOCK],
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of the instruction set of every x86-64.
    return unsafe { sse2::special_mask::<V, T, L, C>(block) };
    #[cfg(not(target_arch = "x86_64"))]
    return words::special_mask::<V, T, L, C>(block);
}

/// With the vectors that every x86-64 has.
#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128,
    };

    use super::{BLOCK, CR, LF, TAB};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn special_mask<const V: bool, const T: bool, const L: bool, const C: bool>(
        block: &[u8; BLOCK],
    ) -> u64 {
        let mut mask = 0;
        for (index, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
            let [low, high] = [0, 8].map(|at| {
                let half = bytes[at..at + 8].try_into();
                i64::from_le_bytes(half.expect("a half has eight bytes"))
            });
            let special = special::<V, T, L, C>(_mm_set_epi64x(high, low));
            let bits = _mm_movemask_epi8(special).cast_unsigned();
            mask |= u64::from(bits) << (16 * index);
        }
        mask
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(bytes: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn special<const V: bool, const T: bool, const L: bool, const C: bool>(
        bytes: __m128i,
    ) -> __m128i {
        if V {
            // Bytes from 128 on are negative here, and so below the space.
            let is_below_space = _mm_cmplt_epi8(bytes, _mm_set1_epi8(b' '.cast_signed()));
            let mut special = _mm_or_si128(is_below_space, equal(bytes, 0x7f));
            if !T {
                special = _mm_andnot_si128(equal(bytes, TAB), special);
            }
            if !L {
                special = _mm_andnot_si128(equal(bytes, LF), special);
            }
            return special;
        }
        let mut special = _mm_setzero_si128();
        for (is_special, byte) in [(T, TAB), (L, LF), (C, CR)] {
            if is_special {
                special = _mm_or_si128(special, equal(bytes, byte));
            }
        }
        special
    }
}

/// With eight bytes in an integer, for any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use super::{BLOCK, CR, LF, TAB};

    /// All but the high bit of each byte: sums of these never carry into the
    /// next byte, so that each test below is exact.
    const LOW: u64 = repeated(0x7f);
    const HIGH: u64 = repeated(0x80);

    /// A factor that moves the lowest bit of each byte into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;

    const fn repeated(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }

    #[inline(always)]
    pub fn special_mask<const V: bool, const T: bool, const L: bool, const C: bool>(
        block: &[u8; BLOCK],
    ) -> u64 {
        let mut mask = 0;
        for (index, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            let special = special::<V, T, L, C>(u64::from_le_bytes(*bytes));
            mask |= (special >> 7).wrapping_mul(GATHER) >> 56 << (8 * index);
        }
        mask
    }

    /// The high bit of each byte that is equal to another.
    #[inline(always)]
    const fn equal(word: u64, byte: u8) -> u64 {
        let difference = word ^ repeated(byte);
        !(((difference & LOW) + LOW) | difference) & HIGH
    }

    /// The high bit of each special byte.
    #[inline(always)]
    const fn special<const V: bool, const T: bool, const L: bool, const C: bool>(word: u64) -> u64 {
        let mut special = 0;
        if V {
            let low = word & LOW;
            let is_from_space = low + repeated(0x80 - b' ');
            let is_delete = low + repeated(0x80 - 0x7f);
            special = (word | !is_from_space | is_delete) & HIGH;
            if !T {
                special &= !equal(word, TAB);
            }
            if !L {
                special &= !equal(word, LF);
            }
            return special;
        }
        if T {
            special |= equal(word, TAB);
        }
        if L {
            special |= equal(word, LF);
        }
        if C {
            special |= equal(word, CR);
        }
        special
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Mask = fn(&[u8; BLOCK]) -> u64;

    /// Holds masks against a test of each byte, with every byte at every place
    /// between neighbours that could carry into it.
    #[track_caller]
    fn check(masks: [Mask; 2], is_special: fn(u8) -> bool) {
        for neighbour in [0x00, 0x0a, 0x7f, 0x80, 0xff] {
            for byte in 0..=u8::MAX {
                for place in [0, 1, 7, 8, 30, 31, 32, 63] {
                    let mut block = [neighbour; BLOCK];
                    block[place] = byte;
                    let expected = (0..BLOCK)
                        .fold(0, |mask, at| mask | u64::from(is_special(block[at])) << at);
                    for mask in masks {
                        assert_eq!(mask(&block), expected, "{byte} at {place} in {neighbour}");
                    }
                }
            }
        }
    }

    fn is_nonprinting(byte: u8) -> bool {
        !(32..127).contains(&byte) && byte != TAB && byte != LF
    }

    macro_rules! masks {
        ($($flag:literal),*) => {
            [special_mask::<$($flag),*>, words::special_mask::<$($flag),*>]
        };
    }

    #[test]
    fn masks_mark_exactly_the_special_bytes() {
        check(masks!(true, false, false, false), is_nonprinting);
        check(masks!(true, true, false, false), |byte| {
            is_nonprinting(byte) || byte == TAB
        });
        check(masks!(true, false, true, false), |byte| {
            is_nonprinting(byte) || byte == LF
        });
        check(masks!(false, true, false, false), |byte| byte == TAB);
        check(masks!(false, false, true, false), |byte| byte == LF);
        check(masks!(false, false, true, true), |byte| {
            byte == LF || byte == CR
        });
    }
}
