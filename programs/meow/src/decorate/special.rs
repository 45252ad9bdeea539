//! Finds the bytes that may be shown changed, 64 at a time.

/// The line feed, which ends a line.
pub const LF: u8 = b'\n';
/// The carriage return, which belongs to a line's end if a newline follows it.
pub const CR: u8 = b'\r';
/// The tab, which only `-T` changes.
pub const TAB: u8 = b'\t';

/// Number of bytes that are examined together, one for each bit of a mask.
pub const BLOCK: usize = 64;

#[derive(Clone, Copy)]
pub struct Specials {
    /// All bytes except printable ASCII, tab and newline.
    pub nonprinting: bool,
    pub tab: bool,
    pub newline: bool,
    pub carriage_return: bool,
}

/// Returns a mask with a bit for each special byte, the lowest bit for the first byte.
/// The parameters choose the special bytes: nonprinting bytes (`V`), tabs (`T`),
/// newlines (`L`), carriage returns (`C`).
#[inline(always)]
pub fn special_mask<const V: bool, const T: bool, const L: bool, const C: bool>(
    block: &[u8; BLOCK],
) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of the instruction set of every x86-64.
    return unsafe { sse2::special_mask::<V, T, L, C>(block) };
    #[cfg(not(target_arch = "x86_64"))]
    return bytewise_mask::<V, T, L, C>(block);
}

/// Computes the mask with vector instructions that every x86-64 has.
#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128,
    };

    use crate::decorate::special::{BLOCK, CR, LF, TAB};

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
            // As signed values, bytes from 128 on are negative, and so they are below
            // the space.
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

/// Computes the mask byte by byte, on any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn bytewise_mask<const V: bool, const T: bool, const L: bool, const C: bool>(
    block: &[u8; BLOCK],
) -> u64 {
    let is_special = |byte| match byte {
        TAB => T,
        LF => L,
        CR => V || C,
        b' '..0x7f => false,
        _ => V,
    };
    let bits = block.iter().enumerate();
    bits.fold(0, |mask, (at, byte)| {
        mask | u64::from(is_special(*byte)) << at
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every byte at every position among other bytes.
    macro_rules! check {
        ($($flag:literal),*) => {
            for neighbour in [0x00, 0x0a, 0x7f, 0x80, 0xff] {
                for byte in 0..=u8::MAX {
                    for place in 0..BLOCK {
                        let mut block = [neighbour; BLOCK];
                        block[place] = byte;
                        let found = special_mask::<$($flag),*>(&block);
                        let expected = bytewise_mask::<$($flag),*>(&block);
                        assert_eq!(found, expected, "{byte} at {place} in {neighbour}");
                    }
                }
            }
        };
    }

    #[test]
    fn masks_mark_exactly_the_special_bytes() {
        check!(true, false, false, false);
        check!(true, true, false, false);
        check!(true, false, true, false);
        check!(true, true, true, false);
        check!(false, true, false, false);
        check!(false, false, true, false);
        check!(false, false, true, true);
        check!(false, true, true, true);
    }
}
