//! Simulated sessions of the same systems: how often runs of the same work are called
//! different.

use toll_stats::Rng;

use super::*;
use crate::claim::between::{Side, compare_sides};
use crate::size;

/// Comparisons per world: the standard error of a share of 5 % is 1.3 %.
const TIMES: usize = 300;
const BLOCKS: u32 = 8;

/// Variation between runs, as standard deviations of logarithms.
struct World {
    /// Common to all treatments.
    together: f64,
    /// Of each treatment on its own.
    apart: f64,
}

/// Standard deviation between trials.
const TRIAL: f64 = 0.01;

/// Makes a run of four treatments with their estimates, but without trials.
fn template() -> Run {
    let four = "[profile.quick.factors]\ndurability = ['none']\n";
    let mut stored = run(four, BLOCKS, cost);
    let analysis = analyse(&stored);
    stored.trials.clear();
    Run { stored, analysis }
}

impl World {
    /// Makes some runs, each of which takes `times` as long.
    fn runs(&self, template: &Run, count: usize, times: f64, rng: &mut Rng) -> Vec<Run> {
        let mut session = || {
            let together = self.together * rng.normal() + times.ln();
            let mut run = template.clone();
            for treatment in &mut run.analysis.treatments {
                let own = together + self.apart * rng.normal();
                let trials = (0..BLOCKS).map(|_| 1e6 * (own + TRIAL * rng.normal()).exp());
                let estimate = treatment.estimates.get_mut("duration_ns").unwrap();
                estimate.trial_values = trials.collect();
                estimate.median.value = toll_stats::median(&estimate.trial_values);
            }
            run
        };
        (0..count).map(|_| session()).collect()
    }
}

const WORLDS: [World; 3] = [
    World {
        together: 0.03,
        apart: 0.0,
    },
    World {
        together: 0.0,
        apart: 0.03,
    },
    World {
        together: 0.02,
        apart: 0.02,
    },
];

/// Returns how often any treatment is called different between sides of `counts` runs.
fn called_different(world: &World, counts: [usize; 2], history: usize, times: f64) -> f64 {
    let (template, mut rng) = (template(), Rng::new(11));
    let called = (0..size::runs(TIMES)).filter(|_| {
        let old = world.runs(&template, counts[0], 1.0, &mut rng);
        let new = world.runs(&template, counts[1], times, &mut rng);
        let others = world.runs(&template, history, 1.0, &mut rng);
        let sides = [&new, &old].map(|runs| Side::new(runs).unwrap());
        let compared = compare_sides(&sides[0], &sides[1], &others).remove(0);
        assert_eq!(compared.ratios.len(), 4);
        let mut ratios = compared.ratios.iter();
        ratios.any(|one| matches!(one.relation, Relation::Better | Relation::Worse))
    });
    called.count() as f64 / size::runs(TIMES) as f64
}

#[test]
fn sessions_of_the_same_system_are_called_different_in_5_percent_at_most() {
    for (index, world) in WORLDS.iter().enumerate() {
        for (counts, history) in [([3, 3], 0), ([5, 4], 0), ([1, 1], 2), ([1, 1], 7)] {
            let share = called_different(world, counts, history, 1.0);
            assert!(
                share <= 0.05 + 2.0 * 0.0126 * size::widening(),
                "{index}, {counts:?}: {share}"
            );
        }
    }
}

#[test]
fn five_sessions_a_side_tell_a_fifth_more() {
    for (index, world) in WORLDS.iter().enumerate() {
        let share = called_different(world, [5, 5], 0, 1.2);
        assert!(share > 0.95, "{index}: {share}");
    }
}

#[test]
fn a_single_run_a_side_without_history_takes_a_shift_of_the_session_for_a_difference() {
    // A margin from three runs, or three runs per side, prevents this.
    assert!(called_different(&WORLDS[0], [1, 1], 0, 1.0) > 0.3);
}
