//! The order of trials.

use toll_stats::Rng;

/// Small or large file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// What a start costs.
    Small,
    /// What bytes cost.
    Large,
}

/// Numbers of blocks by size. One block runs every program of every case once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks of the large file.
    pub large: usize,
    /// Blocks of the small file.
    pub small: usize,
}

/// The sizes of all blocks in order: small ones are spread evenly among the
/// large ones, at random within each part, so that a drift of the machine
/// meets both.
pub(crate) fn block_sizes(blocks: Blocks, rng: &mut Rng) -> Vec<Size> {
    let rounds = blocks.large.max(1);
    let mut sizes = Vec::with_capacity(blocks.large + blocks.small);
    for round in 0..rounds {
        let small = blocks.small * (round + 1) / rounds - blocks.small * round / rounds;
        let mut part = vec![Size::Small; small];
        if round < blocks.large {
            part.push(Size::Large);
        }
        rng.shuffle(&mut part);
        sizes.append(&mut part);
    }
    sizes
}

/// The numbers below `count` in random order.
pub(crate) fn permutation(count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    rng.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_planned_once_and_small_ones_are_spread() {
        let blocks = Blocks {
            large: 4,
            small: 30,
        };
        let sizes = block_sizes(blocks, &mut Rng::new(1));
        let count = |size, of: &[Size]| of.iter().filter(|&&other| other == size).count();
        assert_eq!(count(Size::Large, &sizes), 4);
        assert_eq!(count(Size::Small, &sizes), 30);
        // 7 or 8 small ones beside each large one.
        assert_eq!(count(Size::Large, &sizes[..17]), 2);
    }

    #[test]
    fn a_size_without_blocks_is_not_run() {
        let only_small = Blocks { large: 0, small: 3 };
        let sizes = block_sizes(only_small, &mut Rng::new(1));
        assert_eq!(sizes, [Size::Small; 3]);
        let only_large = Blocks { large: 3, small: 0 };
        let sizes = block_sizes(only_large, &mut Rng::new(1));
        assert_eq!(sizes, [Size::Large; 3]);
    }

    #[test]
    fn every_program_takes_every_place() {
        let mut rng = Rng::new(1);
        let mut seen = [[0; 3]; 3];
        for _ in 0..300 {
            for (place, program) in permutation(3, &mut rng).into_iter().enumerate() {
                seen[program][place] += 1;
            }
        }
        // 100 expected, 8 standard deviations apart.
        let is_even = |&count: &i32| (35..165).contains(&count);
        assert!(seen.as_flattened().iter().all(is_even), "{seen:?}");
    }
}
