//! A small random generator whose output never changes.
//!
//! Plans are recreated from a stored seed, so a seed must give the same numbers in every later
//! version of the program. A general-purpose crate does not promise that for its convenience
//! functions.

use crate::normal::normal_quantile;

/// xoshiro256** of Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
/// 47 (2021), seeded through `SplitMix64` as they advise. Not suitable for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    /// The seed of a fork is derived from this. Unlike `state` it never advances, so a fork does
    /// not depend on how much was drawn before it.
    key: u64,
    state: [u64; 4],
}

impl Rng {
    /// Creates the generator of a seed; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Rng {
        let mut sequence = seed;
        let state = std::array::from_fn(|_| {
            sequence = sequence.wrapping_add(GOLDEN_GAMMA);
            split_mix(sequence)
        });
        Rng { key: seed, state }
    }

    /// Creates the generator of a numbered substream. It depends on this generator's seed and on
    /// `stream`, not on what was drawn so far.
    pub fn fork(&self, stream: u64) -> Rng {
        // Mixed twice, so that fork(1) of seed 2 and fork(2) of seed 1 differ.
        let stream = split_mix(stream.wrapping_add(GOLDEN_GAMMA));
        Rng::new(split_mix(self.key.rotate_left(32) ^ stream))
    }

    /// Returns 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Returns a uniform integer in `0..n`, without bias (Lemire, "Fast random integer generation
    /// in an interval", ACM TOMACS 29 (2019)).
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "no integer is below 0");
        let n = n as u64;
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let rejected_below = n.wrapping_neg() % n;
            while (product as u64) < rejected_below {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as usize
    }

    /// Returns a uniform number in `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * UNIFORM_STEP
    }

    /// Returns a standard normal number, by inversion of one uniform number.
    pub fn normal(&mut self) -> f64 {
        // Takes the middle of a step, so that 0, whose quantile is negative infinity, never
        // occurs.
        normal_quantile(((self.next_u64() >> 12) as f64 + 0.5) * (2.0 * UNIFORM_STEP))
    }

    /// Puts the items into uniformly random order (Fisher and Yates; Knuth,
    /// "The art of computer programming" 2, algorithm 3.4.2 P).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// 2⁻⁵³, the spacing of doubles just below 1.
const UNIFORM_STEP: f64 = 1.0 / (1u64 << 53) as f64;

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014).
fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_differ_from_each_other_and_ignore_what_was_drawn() {
        let mut rng = Rng::new(5);
        let before = rng.fork(3);
        rng.next_u64();
        assert_eq!(rng.fork(3), before);
        let mut firsts: Vec<u64> = (0..50)
            .flat_map(|seed| (0..50).map(move |stream| Rng::new(seed).fork(stream).next_u64()))
            .chain((0..50).map(|seed| Rng::new(seed).next_u64()))
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 50 * 50 + 50);
    }

    #[test]
    fn integers_below_a_bound_are_even() {
        let mut rng = Rng::new(11);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6)] += 1;
        }
        // Chi-squared with 5 degrees of freedom: 20.5 is the 0.1 % point.
        let chi_squared: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi_squared < 20.5, "{counts:?}");
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn every_order_of_three_is_as_likely() {
        let mut rng = Rng::new(12);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = ['a', 'b', 'c'];
            rng.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|c| (880..1120).contains(c)),
            "{counts:?}"
        );
    }

    #[test]
    fn uniform_and_normal_numbers_have_their_moments() {
        let mut rng = Rng::new(13);
        let uniform: Vec<f64> = (0..20_000).map(|_| rng.uniform()).collect();
        assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
        assert!((crate::mean(&uniform) - 0.5).abs() < 0.01);
        let normal: Vec<f64> = (0..20_000).map(|_| rng.normal()).collect();
        assert!(crate::mean(&normal).abs() < 0.03);
        assert!((crate::standard_deviation(&normal) - 1.0).abs() < 0.03);
    }

    #[test]
    #[should_panic(expected = "below 0")]
    fn nothing_is_below_zero() {
        Rng::new(0).below(0);
    }
}
