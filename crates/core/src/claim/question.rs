//! What a run has to answer, and how many blocks that takes.

use super::model::Outcome;
use crate::spec::ComparisonGoal;

/// A question that a run has to answer: a claim or a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Id of the claim, or label of the compared treatment.
    pub id: String,
    /// Half-width of the question's interval on a logarithmic scale: 0.05 is ±5 %.
    pub half_width: f64,
    /// Target half-width. Sampling for a claim stops here even if it is undecided; a comparison
    /// must reach the target. For a comparison against a limit, the target is the distance from the
    /// estimate to the limit.
    pub target: f64,
    /// Whether the interval decides the question.
    pub is_decided: bool,
    /// Whether the run must continue, up to its last block, until the question is decided.
    pub must_be_decided: bool,
    /// The claim's verdict so far; `None` for a comparison.
    pub outcome: Option<Outcome>,
    /// Treatments whose trials answer the question.
    pub treatments: Vec<usize>,
}

impl Question {
    /// Returns whether no further block is needed. While `is_early`, a comparison must be
    /// decided and reach its target; later `goal` says what suffices. A question with
    /// `must_be_decided` only has to be decided.
    pub fn is_settled(&self, goal: ComparisonGoal, is_early: bool) -> bool {
        let is_narrow = self.half_width <= self.target;
        match self.outcome {
            Some(_) => self.is_decided || is_narrow,
            None if self.must_be_decided => self.is_decided,
            None => match goal {
                ComparisonGoal::Precision if !is_early => is_narrow,
                _ => is_narrow && self.is_decided,
            },
        }
    }
}

/// Number of blocks that a run needs for verdicts. The number depends on which claims can be tested
/// here, and not on measured values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidingBlocks {
    /// Minimum number of blocks that can decide any claim, with claims tested one after another in
    /// a fixed sequence.
    pub in_sequence: usize,
    /// Minimum number of blocks that can decide any claim, whatever the results of the other
    /// claims.
    pub together: usize,
}
