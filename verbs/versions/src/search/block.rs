//! Blocks of measured versions, and the questions and gaps for which they are measured.

use std::ops::RangeInclusive;

/// Values of the versions in a block: each version's place in the history, and the logarithm of its
/// measured value.
pub type Block = Vec<(usize, f64)>;

/// The question for which blocks are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Whether the ends differ.
    Ends,
    /// On which side of the step a version lies.
    Search,
    /// Whether a found version differs from its predecessor. Confirmations are numbered from 0.
    Confirmation(usize),
}

/// A place where a step may be: after one version, and no later than in another. The versions in
/// between cannot be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub before: usize,
    pub at: usize,
}

impl Gap {
    /// Returns the versions of which one may have introduced the step.
    pub fn suspects(self) -> RangeInclusive<usize> {
        self.before + 1..=self.at
    }
}

/// The logarithm of a version's value in a block.
pub(super) fn value(block: &Block, place: usize) -> Option<f64> {
    let found = block.iter().find(|(one, _)| *one == place)?;
    Some(found.1)
}
