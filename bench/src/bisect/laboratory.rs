//! Histories with a planted change, and the blocks that a search draws from them.

use std::collections::BTreeSet;

use toll_stats::Rng;
use toll_versions::search::Block;

use crate::simulation::{Disturbances, World};

/// The noise of measured values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Noise of path lengths: 0.02 %, drawn again for each boot.
    PathLength,
    /// Noise of times in this simulated world.
    Time(World),
}

/// A history: version 0 and `versions` later versions.
#[derive(Debug, Clone, Copy)]
pub struct History {
    pub versions: usize,
    /// The first version with the change, if there is one.
    pub culprit: Option<usize>,
    /// The change, such as 0.03 for 3 % more.
    pub change: f64,
    pub noise: Noise,
}

impl History {
    /// Creates a history of `versions` versions; the seed determines which one introduces the
    /// change.
    pub fn drawn(versions: usize, change: f64, noise: Noise, seed: u64) -> Self {
        let culprit = 1 + Rng::new(seed).fork(2).below(versions);
        Self {
            versions,
            culprit: (change != 0.0).then_some(culprit),
            change,
            noise,
        }
    }
}

/// The result of a search in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This version introduced the change.
    Version(usize),
    /// There is no difference, or the comparison is undecided.
    NoDifference,
    /// There is a difference, but no version was confirmed.
    NotConfirmed,
}

/// The result and the cost of one search.
#[derive(Debug, Clone, Copy)]
pub struct Searched {
    pub answer: Answer,
    /// Number of trials. Each trial measures one version in one block.
    pub trials: usize,
    /// Number of versions that were measured, and so had to be built.
    pub built: usize,
}

/// Draws blocks of a history. Equal seeds give equal blocks.
pub struct Laboratory {
    history: History,
    disturbances: Option<Disturbances>,
    rng: Rng,
    trials: usize,
    built: BTreeSet<usize>,
}

impl Laboratory {
    pub fn new(history: History, seed: u64) -> Self {
        let disturbances = match history.noise {
            Noise::PathLength => None,
            Noise::Time(world) => Some(Disturbances::new(world, seed)),
        };
        Self {
            history,
            disturbances,
            rng: Rng::new(seed).fork(1),
            trials: 0,
            built: BTreeSet::new(),
        }
    }

    pub fn block(&mut self, places: &[usize]) -> Block {
        let mut order = places.to_vec();
        self.rng.shuffle(&mut order);
        self.trials += order.len();
        self.built.extend(&order);
        let measure = |place| {
            let noise = match &mut self.disturbances {
                None => 0.0002 * self.rng.normal(),
                Some(disturbances) => disturbances.draw(),
            };
            let is_changed = self.history.culprit.is_some_and(|first| place >= first);
            let change = if is_changed {
                self.history.change.ln_1p()
            } else {
                0.0
            };
            (place, change + noise)
        };
        order.into_iter().map(measure).collect()
    }

    pub fn searched(&self, answer: Answer) -> Searched {
        Searched {
            answer,
            trials: self.trials,
            built: self.built.len(),
        }
    }
}
