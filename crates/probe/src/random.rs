//! Numbers and orders derived from a seed.

/// Returns the next number of SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014), with the constants
/// of its reference code.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Shuffles by Durstenfeld's method (Algorithm 235, CACM 7 (1964)): every order is equally likely,
/// up to a bias of 2^-32 at most.
pub fn shuffle<T>(order: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..order.len()).rev() {
        let chosen = split_mix(&mut state) % (last as u64 + 1);
        order.swap(last, chosen as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_yields_the_published_numbers() {
        // The first words of the reference code for the seed 1234567.
        let mut state = 1_234_567;
        for word in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ] {
            assert_eq!(split_mix(&mut state), word);
        }
    }

    #[test]
    fn another_seed_gives_another_order() {
        let order = |seed| {
            let mut order: Vec<u32> = (0..100).collect();
            shuffle(&mut order, seed);
            order
        };
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
    }
}
