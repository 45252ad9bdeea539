//! The search for the version that introduced a change: which versions to compare next,
//! and the result. This module does not know what versions are or how they are measured.
//!
//! 1. The ends are compared. Without a difference there is nothing to search for.
//! 2. Each gap between neighbouring versions has a probability of containing the step.
//!    Blocks of both ends and of the version in the middle of the remaining probability
//!    update these, until one gap is nearly certain (probabilistic bisection: Waeber,
//!    Frazier and Henderson, "Bisection search with noisy responses", SIAM Journal on
//!    Control and Optimization 51 (2013)). So a version is measured only as long as it
//!    gives information. A version whose value lies between the ends has one step before
//!    it and another after it. The search then continues before it.
//! 3. The found version is compared with its predecessor, in fresh blocks. Only this
//!    verdict names the version. It does not depend on the assumptions of the search.
//!
//! So a wrong version is named only if a confirmation errs. All confirmations share
//! [`ALPHA`]: the first has half of it, each further one half as much as the previous one.

mod block;
mod posterior;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use block::value;
use posterior::Posterior;
use toll_core::claim::model::{Better, Estimate, Relation};
use toll_core::claim::ratio::JudgedRatio;
use toll_core::claim::{ALPHA, CONFIDENCE, MARGIN_MIN};
use toll_stats::{Looks, hodges_lehmann, median, stopped_interval, values_needed};

pub use block::{Block, Gap, Stage};

/// Probability from which a gap is worth a confirmation.
const PROBABLE: f64 = 0.98;
/// Number of confirmations that may fail before the search gives up.
pub const CONFIRMATIONS: usize = 3;

/// Confidence required to conclude that a version lies between the ends.
const BETWEEN: f64 = 0.99;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Measure further blocks of these versions.
    Measure {
        stage: Stage,
        places: Vec<usize>,
        blocks: usize,
    },
    /// Nothing more to measure.
    Done(Ending),
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The ends do not differ, or it is undecided whether they do.
    NoDifference,
    /// A difference was confirmed between two versions.
    Confirmed { gap: Gap, effect: Effect },
    /// The most probable version was not confirmed. No other version is left, or too many were
    /// tried.
    NotConfirmed { gap: Gap, effect: Effect },
}

/// The ratio of two versions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    pub ratio: Estimate,
    pub relation: Relation,
    pub blocks: usize,
}

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Probability that a verdict is wrong.
    pub error: f64,
    /// Maximum number of blocks of a comparison of two versions.
    pub comparison_blocks: usize,
    /// Maximum number of blocks of the search between the ends.
    pub search_blocks: usize,
}

impl Limits {
    /// Returns limits that suffice for a difference of 3 % if trials scatter by 2 %.
    pub fn for_versions(versions: usize) -> Self {
        let halvings = versions.max(2).ilog2() as usize + 1;
        Self {
            error: ALPHA,
            comparison_blocks: 80,
            search_blocks: 20 * halvings,
        }
    }
}

/// A search, and all that was measured for it.
#[derive(Debug, Clone)]
pub struct Bisection {
    /// Place of the last version; the first version has place 0.
    last: usize,
    better: Better,
    limits: Limits,
    measured: Vec<(Stage, Block)>,
    skipped: BTreeSet<usize>,
}

impl Bisection {
    /// Starts a search among the versions from 0, which lacks the change, to `last`, which has it.
    pub fn new(last: usize, better: Better, limits: Limits) -> Self {
        assert!(last > 0, "a history needs two versions");
        Self {
            last,
            better,
            limits,
            measured: Vec::new(),
            skipped: BTreeSet::new(),
        }
    }

    /// Adds a block that [`Next::Measure`] asked for.
    pub fn add(&mut self, stage: Stage, block: Block) {
        self.measured.push((stage, block));
    }

    /// Leaves out a version that cannot be measured.
    pub fn skip(&mut self, place: usize) {
        assert!(0 < place && place < self.last, "an end cannot be left out");
        self.skipped.insert(place);
    }

    /// Returns the versions that were left out.
    pub fn skipped(&self) -> &BTreeSet<usize> {
        &self.skipped
    }

    /// Returns the result of comparing the ends so far, without the blocks of the search.
    pub fn ends(&self) -> Option<Effect> {
        self.judge(Stage::Ends, self.whole())
    }

    /// Compares one version with the first version, in blocks of the search. This is not a verdict.
    /// Returns the ratio, and the number of blocks.
    pub fn of_first(&self, place: usize) -> Option<(Estimate, usize)> {
        let logs = self.logs(
            Stage::Search,
            Gap {
                before: 0,
                at: place,
            },
        );
        let ratio = || Estimate::from(&hodges_lehmann(&logs, CONFIDENCE).map(f64::exp));
        (!logs.is_empty()).then(|| (ratio(), logs.len()))
    }

    /// Returns the result of the last stage that measured both versions of a gap.
    pub fn confirmation(&self, gap: Gap) -> Option<Effect> {
        let of_gap = |block: &Block| value(block, gap.before).and(value(block, gap.at)).is_some();
        let stages = self.measured.iter().filter(|(_, block)| of_gap(block));
        let stage = stages.map(|(stage, _)| *stage).max()?;
        self.judge(stage, gap)
    }

    /// Returns the shortest range of versions that contains the step with a probability of 98 %.
    pub fn suspects(&self) -> RangeInclusive<usize> {
        self.posterior().suspects(PROBABLE)
    }

    /// Returns what to do next. The result follows only from what was measured.
    pub fn next(&self) -> Next {
        let Some(ends) = self.ends().filter(|ends| self.is_over(Stage::Ends, ends)) else {
            return self.compare(Stage::Ends, self.whole());
        };
        if !ends.relation.differs() {
            return Next::Done(Ending::NoDifference);
        }
        let gap = self.whole();
        if gap
            .suspects()
            .all(|place| place == self.last || self.skipped.contains(&place))
        {
            // The ends are the two sides of the only gap. Nothing was selected, so no confirmation
            // is needed.
            return Next::Done(Ending::Confirmed { gap, effect: ends });
        }
        let mut refuted = Vec::new();
        for attempt in 0..CONFIRMATIONS {
            let stage = Stage::Confirmation(attempt);
            let Some(gap) = self.gap_of(stage) else {
                break;
            };
            let Some(effect) = self
                .judge(stage, gap)
                .filter(|one| self.is_over(stage, one))
            else {
                return self.compare(stage, gap);
            };
            if effect.relation == ends.relation {
                return Next::Done(Ending::Confirmed { gap, effect });
            }
            refuted.push((gap, effect));
        }
        self.search(&refuted)
    }

    /// Measures the middle of the remaining probability, or confirms a gap that is probable enough.
    fn search(&self, refuted: &[(Gap, Effect)]) -> Next {
        let mut posterior = self.posterior();
        refuted.iter().for_each(|(gap, _)| posterior.remove(*gap));
        let best = posterior.most_probable();
        if let Some((gap, effect)) = refuted.last().copied()
            && (refuted.len() == CONFIRMATIONS || best.is_none())
        {
            return Next::Done(Ending::NotConfirmed { gap, effect });
        }
        let (gap, probability) = best.expect("without a refuted gap, one is left");
        let searched = self.measured.iter();
        let searched = searched
            .filter(|(stage, _)| *stage == Stage::Search)
            .count();
        let further = self.limits.search_blocks.saturating_sub(searched);
        match posterior.middle(self.current()) {
            Some(middle) if probability < PROBABLE && further > 0 => Next::Measure {
                stage: Stage::Search,
                places: vec![0, middle, self.range().at],
                blocks: posterior.blocks_to_tell().min(further),
            },
            _ => self.compare(Stage::Confirmation(refuted.len()), gap),
        }
    }

    fn whole(&self) -> Gap {
        Gap {
            before: 0,
            at: self.last,
        }
    }

    /// Returns the version that the search measured last.
    fn current(&self) -> Option<usize> {
        let mut searched = self.measured.iter().rev();
        let (_, block) = searched.find(|(stage, _)| *stage == Stage::Search)?;
        let mut places: Vec<usize> = block.iter().map(|(place, _)| *place).collect();
        places.sort_unstable();
        places.get(1).copied()
    }

    fn posterior(&self) -> Posterior {
        Posterior::new(self.range(), &self.skipped, &self.measured)
    }

    /// Returns the versions among which the search continues: up to the last version, or up to a
    /// version that lies between the ends.
    fn range(&self) -> Gap {
        let mut range = self.whole();
        while let Some(between) = (1..range.at).find(|place| self.lies_between(*place, range)) {
            range.at = between;
        }
        range
    }

    /// Whether a version is shown to be farther than a quarter of the step from both ends. Such a
    /// version is on neither side of a single step.
    fn lies_between(&self, place: usize, range: Gap) -> bool {
        let distances = |(stage, block): &(Stage, Block)| {
            let ends = (value(block, range.before)?, value(block, range.at)?);
            let from_middle = value(block, place)? - f64::midpoint(ends.0, ends.1);
            (*stage == Stage::Search).then_some((from_middle, ends.1 - ends.0))
        };
        let measured = self.measured.iter().filter_map(distances);
        let (from_middle, steps): (Vec<f64>, Vec<f64>) = measured.unzip();
        if from_middle.is_empty() {
            return false;
        }
        let interval = hodges_lehmann(&from_middle, BETWEEN);
        let quarter = median(&steps).abs() / 4.0;
        interval.reaches(BETWEEN) && interval.low > -quarter && interval.high < quarter
    }

    /// Returns the gap that a confirmation is about.
    fn gap_of(&self, stage: Stage) -> Option<Gap> {
        let (_, block) = self.measured.iter().find(|(one, _)| *one == stage)?;
        let places = || block.iter().map(|(place, _)| *place);
        Some(Gap {
            before: places().min()?,
            at: places().max()?,
        })
    }

    fn compare(&self, stage: Stage, gap: Gap) -> Next {
        let done = self.logs(stage, gap).len();
        let looks = self.looks(stage);
        let next_look = (done + 1..).find(|blocks| looks.is_look(*blocks));
        Next::Measure {
            stage,
            places: vec![gap.before, gap.at],
            blocks: next_look.expect("there is a last look") - done,
        }
    }

    fn judge(&self, stage: Stage, gap: Gap) -> Option<Effect> {
        let logs = self.logs(stage, gap);
        if logs.is_empty() {
            return None;
        }
        let confidence = self.confidence(stage);
        let interval = stopped_interval(&logs, confidence, self.looks(stage).at(logs.len()));
        let judged = JudgedRatio::of_logs(&interval, confidence, self.better);
        Some(Effect {
            ratio: judged.ratio,
            relation: judged.relation(MARGIN_MIN),
            blocks: logs.len(),
        })
    }

    fn is_over(&self, stage: Stage, effect: &Effect) -> bool {
        let looks = self.looks(stage);
        let is_decided = effect.relation != Relation::Undecided;
        is_decided && looks.is_look(effect.blocks) || effect.blocks >= looks.last
    }

    fn looks(&self, stage: Stage) -> Looks {
        let last = self.limits.comparison_blocks;
        let looks = |first| Looks { first, last };
        let enough = |first: &usize| values_needed(self.confidence(stage), looks(*first)) <= *first;
        looks((1..last).find(enough).unwrap_or(last))
    }

    /// Returns the confidence of the verdicts of a stage.
    fn confidence(&self, stage: Stage) -> f64 {
        let error = self.limits.error;
        match stage {
            Stage::Confirmation(attempt) => 1.0 - error / 2.0_f64.powi(attempt as i32 + 1),
            _ => 1.0 - error,
        }
    }

    /// Returns the log-ratios over a gap in the blocks of a stage.
    fn logs(&self, stage: Stage, gap: Gap) -> Vec<f64> {
        let blocks = self.measured.iter().filter(|(one, _)| *one == stage);
        let log =
            |(_, block): &(Stage, Block)| Some(value(block, gap.at)? - value(block, gap.before)?);
        blocks.filter_map(log).collect()
    }
}

#[cfg(test)]
mod tests;
