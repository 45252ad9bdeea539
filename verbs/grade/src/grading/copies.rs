//! Blocks whose measurements are the same, to the nanosecond, more often than chance allows.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks count as copies only if honest blocks are the same with less than this probability.
const CHANCE_MAX: f64 = 1e-4;

/// Shortest trial that counts. Shorter trials may be the same on a coarse clock.
const TRIAL_NS_MIN: f64 = 1e6;

/// Time from which two trials differ by more than any clock's resolution. The other constants are
/// the coarsest resolution, and the largest chance that two such trials are the same.
const NOISY_NS: f64 = 1e7;
const RESOLUTION_NS: f64 = 1e3;
const NOISY_SAME_MAX: f64 = 0.01;

/// Maximum number of blocks that are compared, since comparing all pairs takes time.
pub const BLOCKS_COMPARED_MAX: usize = 500;

/// The timed iterations of each treatment in a block, in nanoseconds.
pub type Block<'a> = BTreeMap<usize, &'a [f64]>;

/// Two blocks, by their places, and the number of trials that they have in common.
struct Pair {
    places: (usize, usize),
    common: i32,
    /// Number of common trials that are the same in all iterations.
    same: i32,
}

/// Returns the pairs of blocks that are the same in all common trials, unless chance explains that.
/// Trials count as a whole, since iterations of a trial may resemble each other.
///
/// The resolution of the clock is not known. If the clock were so coarse that whole blocks became
/// the same by chance, single trials would often be the same, too. So the probability is computed
/// that this many blocks are equal while this few single trials are, at the resolution where this
/// probability is largest.
pub fn copied_blocks(blocks: &[Block]) -> Vec<(usize, usize)> {
    let blocks = &blocks[..blocks.len().min(BLOCKS_COMPARED_MAX)];
    let pairs: Vec<Pair> = (0..blocks.len())
        .flat_map(|one| (one + 1..blocks.len()).map(move |other| (one, other)))
        .map(|places| pair(blocks, places))
        .collect();
    let is_whole = |pair: &&Pair| pair.common > 1 && pair.same == pair.common;
    let parted = pairs.iter().filter(|pair| !is_whole(pair));
    let single = parted.map(|pair| pair.same).sum();
    let trials = pairs.iter().map(|pair| pair.common).sum();
    let same_max = if blocks.iter().all(is_noisy) {
        NOISY_SAME_MAX
    } else {
        1.0
    };
    // Counts all pairs, and the pairs that are the same, by the number of trials in common.
    let mut alike: BTreeMap<i32, (usize, usize)> = BTreeMap::new();
    for pair in &pairs {
        let (all, whole) = alike.entry(pair.common).or_default();
        *all += 1;
        *whole += usize::from(is_whole(&pair));
    }
    let no_chance = alike
        .into_iter()
        .filter(|(common, pairs)| chance(*pairs, *common, (single, trials), same_max) < CHANCE_MAX);
    let no_chance: BTreeSet<i32> = no_chance.map(|(common, _)| common).collect();
    let copied = pairs.iter().filter(is_whole);
    let copied = copied.filter(|pair| no_chance.contains(&pair.common));
    copied.map(|pair| pair.places).collect()
}

fn pair(blocks: &[Block], places: (usize, usize)) -> Pair {
    let is_long = |samples: &[f64]| samples.iter().sum::<f64>() >= TRIAL_NS_MIN;
    let other = &blocks[places.1];
    let mut pair = Pair {
        places,
        common: 0,
        same: 0,
    };
    for (treatment, samples) in &blocks[places.0] {
        if let Some(others) = other.get(treatment).filter(|_| is_long(samples)) {
            pair.common += 1;
            pair.same += i32::from(samples == others);
        }
    }
    pair
}

/// Whether durations are so long and so finely resolved that two measurements of them can
/// hardly be the same in all trials.
fn is_noisy(block: &Block) -> bool {
    let mut all = block.values().flat_map(|samples| samples.iter());
    all.clone().all(|value| *value >= NOISY_NS) && all.any(|value| value % RESOLUTION_NS != 0.0)
}

/// Returns the largest chance of two things together. First, some of `pairs` pairs of blocks, but
/// at most `whole`, are the same in all of `common` trials. Second, at most `single` of all
/// `trials` compared are the same. The chance is the largest over all clock resolutions with which
/// a trial is the same with a chance up to `same_max`.
fn chance(
    (pairs, whole): (usize, usize),
    common: i32,
    (single, trials): (i32, i32),
    same_max: f64,
) -> f64 {
    let of_one = |same: f64| {
        let whole_expected = pairs as f64 * same.powi(common);
        let single_expected = f64::from(trials) * same * (1.0 - same.powi(common - 1));
        whole_expected.min(1.0)
            * few_of_poisson(whole as f64, whole_expected)
            * few_of_poisson(f64::from(single), single_expected)
    };
    (0..400)
        .map(|step| of_one(same_max * 0.95_f64.powi(step)))
        .fold(0.0, f64::max)
}

/// Returns Chernoff's bound on the chance that a Poisson variable is at most `count`.
fn few_of_poisson(count: f64, mean: f64) -> f64 {
    if count >= mean {
        return 1.0;
    }
    let share = if count > 0.0 {
        (mean / count).ln()
    } else {
        0.0
    };
    (count - mean + count * share).exp()
}

#[cfg(test)]
mod tests {
    use toll_stats::Rng;

    use super::*;

    /// Simulates blocks of trials with two iterations, measured by a clock of some
    /// resolution. The second takes as long as the first, or has its own noise.
    fn measured(
        rng: &mut Rng,
        blocks: usize,
        trials: usize,
        resolution_ns: f64,
        is_alike: bool,
    ) -> Vec<Vec<[f64; 2]>> {
        let mut value = || {
            let duration_ns = 1e6 + 2000.0 * rng.normal();
            (duration_ns / resolution_ns).round() * resolution_ns
        };
        let mut trial = || {
            let first = value();
            [first, if is_alike { first } else { value() }]
        };
        (0..blocks)
            .map(|_| (0..trials).map(|_| trial()).collect())
            .collect()
    }

    fn copied(blocks: &[Vec<[f64; 2]>]) -> Vec<(usize, usize)> {
        let block = |trials: &Vec<[f64; 2]>| {
            let trials = trials.to_vec().leak();
            trials
                .iter()
                .map(|samples| &samples[..])
                .enumerate()
                .collect()
        };
        copied_blocks(&blocks.iter().map(block).collect::<Vec<Block>>())
    }

    #[test]
    fn honest_blocks_are_no_copies_however_coarse_the_clock() {
        let mut rng = Rng::new(1);
        for resolution_ns in [1.0, 40.0, 100.0, 500.0, 1000.0, 4000.0, 1e6] {
            for trials in [2, 3, 6] {
                for blocks in [2, 3, 6, 20] {
                    for round in 0..100 {
                        let all = measured(&mut rng, blocks, trials, resolution_ns, round < 50);
                        assert_eq!(copied(&all), [], "{resolution_ns} {trials} {blocks}");
                    }
                }
            }
        }
    }

    #[test]
    fn copies_of_one_block_and_of_many_are_found() {
        let mut rng = Rng::new(2);
        let mut blocks = measured(&mut rng, 10, 3, 1.0, false);
        blocks[7] = blocks[3].clone();
        assert_eq!(copied(&blocks), [(3, 7)]);
        // A block of fewer trials after complete ones.
        blocks[9].pop();
        assert_eq!(copied(&blocks), [(3, 7)]);
        let blocks = measured(&mut rng, 10, 4, 1.0, false);
        let half = [&blocks[..], &blocks[..]].concat();
        assert_eq!(copied(&half).len(), 10);
        let constant = vec![vec![[12_345_678.0, 23_456_789.0]; 3]; 6];
        assert_eq!(copied(&constant).len(), 15);
    }
}
