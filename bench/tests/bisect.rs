//! Searches in simulated histories; `make bench-bisect` runs more of them.

use toll_bench::bisect::{Effort, Noise, Tally, World, search, tally};

/// Noise of path lengths, and of times, also on a machine that gets slower.
const NOISES: [Noise; 3] = [
    Noise::PathLength,
    Noise::Time(World::Plain),
    Noise::Time(World::Drift),
];

fn twenty(versions: usize, change: f64, noise: Noise) -> Tally {
    let effort = Effort {
        runs: 20,
        seed: 1,
        threads: 2,
    };
    tally(effort, (versions, change, noise), search)
}

#[test]
fn a_change_of_3_percent_is_found_in_19_of_20_histories() {
    for noise in NOISES {
        let tally = twenty(32, 0.03, noise);
        assert!(tally.right >= 19, "{noise:?}: {tally:?}");
    }
    let tally = twenty(64, 0.03, Noise::Time(World::Plain));
    assert!(tally.right >= 19, "{tally:?}");
}

#[test]
fn a_flat_history_has_a_culprit_in_at_most_1_of_20() {
    for noise in NOISES {
        let tally = twenty(32, 0.0, noise);
        assert!(tally.wrong <= 1, "{noise:?}: {tally:?}");
        assert!(tally.no_difference >= 18, "{noise:?}: {tally:?}");
    }
}
