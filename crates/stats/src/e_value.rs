//! Evidence that is valid at any stopping time, and that multiplies across runs.

/// The strategies that are mixed: weight, factor for a block beyond the border, factor for any
/// other block. The two factors of a strategy have a mean of 1.
const STRATEGIES: [[f64; 3]; 2] = [[0.7, 1.95, 0.05], [0.3, 1.5, 0.5]];

/// Returns the natural logarithm of an e-value, given that `beyond` of `blocks` blocks are beyond a
/// border. It is evidence against the hypothesis that the median is not beyond the border.
///
/// The e-value is a test martingale (Waudby-Smith and Ramdas, "Estimating means of bounded random
/// variables by betting", JRSS B 86 (2024), where the variable is whether a block is beyond the
/// border). If each block is beyond it with a probability of at most 1/2, regardless of the earlier
/// blocks, the mean of the e-value is at most 1 at any stopping time. So it reaches 1/α with a
/// probability of at most α (Ville 1939), and so does the product of the e-values of several runs.
///
/// Two strategies are mixed. The first gains most if all blocks agree: 5 of 5 give an e-value of
/// 22. The second loses less if one block does not.
///
/// # Panics
/// If `beyond` exceeds `blocks`.
pub fn ln_e_value(beyond: usize, blocks: usize) -> f64 {
    assert!(beyond <= blocks, "{beyond} of {blocks} blocks");
    let (beyond, others) = (beyond as f64, (blocks - beyond) as f64);
    let [one, other] = STRATEGIES
        .map(|[weight, gain, loss]| weight.ln() + beyond * gain.ln() + others * loss.ln());
    ln_sum(one, other)
}

/// Returns the natural logarithm of the sum of two numbers, given their natural logarithms.
pub fn ln_sum(one: f64, other: f64) -> f64 {
    one.max(other) + (-(one - other).abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn e_value(beyond: usize, blocks: usize) -> f64 {
        ln_e_value(beyond, blocks).exp()
    }

    /// Mean over all sequences of blocks, each of which is beyond the border with probability
    /// `chance`.
    fn mean(blocks: u32, chance: f64) -> f64 {
        let of_sequence = |sequence: u32| {
            let beyond = sequence.count_ones();
            let others = (blocks - beyond).cast_signed();
            let likelihood = chance.powi(beyond.cast_signed()) * (1.0 - chance).powi(others);
            likelihood * e_value(beyond as usize, blocks as usize)
        };
        (0..1 << blocks).map(of_sequence).sum()
    }

    #[test]
    fn the_mean_is_1_at_the_border_and_less_short_of_it() {
        for blocks in 0..=16 {
            assert!((mean(blocks, 0.5) - 1.0).abs() < 1e-9, "{blocks}");
            assert!(blocks == 0 || mean(blocks, 0.45) < 1.0, "{blocks}");
        }
    }

    #[test]
    fn so_many_blocks_reach_20() {
        for (beyond, blocks) in [(5, 5), (9, 10), (13, 15)] {
            assert!(e_value(beyond, blocks) >= 20.0, "{beyond} of {blocks}");
            assert!(e_value(beyond - 1, blocks) < 20.0, "{beyond} of {blocks}");
        }
        assert!((e_value(5, 5).powi(2) - 485.0).abs() < 1.0);
    }

    #[test]
    fn any_number_of_blocks_has_a_finite_logarithm() {
        const MANY: usize = 10_000_000;
        for beyond in [0, 1, MANY / 2, MANY] {
            assert!(ln_e_value(beyond, MANY).is_finite(), "{beyond}");
        }
        assert_eq!(ln_sum(0.0, f64::NEG_INFINITY), 0.0);
        assert!((ln_sum(2.0_f64.ln(), 3.0_f64.ln()) - 5.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn whoever_stops_as_soon_as_it_decides_is_wrong_in_at_most_5_percent() {
        const RUNS: u32 = 4000;
        const BLOCKS: usize = 300;
        let is_ever_decided = |seed: u32| {
            let mut rng = Rng::new(u64::from(seed));
            let mut beyond = 0;
            (1..=BLOCKS).any(|blocks| {
                beyond += usize::from(rng.uniform() < 0.5);
                e_value(beyond, blocks) >= 20.0
            })
        };
        let wrong = (0..RUNS).filter(|seed| is_ever_decided(*seed)).count();
        let share = wrong as f64 / f64::from(RUNS);
        // Nearly as often as allowed, so the test would detect a larger gain.
        assert!((0.02..=0.05).contains(&share), "{share}");
    }
}
