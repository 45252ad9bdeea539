//! What is drawn: one metric of one treatment, with its level and its scatter.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toll_core::plan::Treatment;
use toll_stats::{Rng, median};

use super::noise::{RecordedRun, RecordedTreatment, Series};

/// Deviation of what has no record, in natural logarithms: independent, normal.
const ASSUMED_DEVIATION: f64 = 0.05;
/// Width of what is added to a drawn deviation, as a share of the scatter: few
/// recorded blocks would else repeat themselves (a smoothed bootstrap).
const SMOOTHING: f64 = 0.1;

/// Where the noise of a metric comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The same treatment of a stored run, drawn with all of its block.
    Measured,
    /// The treatment that is most like it, drawn by itself if another has it, too.
    Borrowed,
    /// Nothing recorded is like it.
    Assumed,
}

/// One metric of one treatment.
#[derive(Debug, Clone)]
pub struct Node {
    pub treatment: usize,
    pub metric: String,
    /// The node of the treatment of which this is the twin.
    pub twin_of: Option<usize>,
    pub origin: Origin,
    /// Recorded median; `None` if nothing is recorded.
    pub median: Option<f64>,
    shares_block: bool,
    deviations: Vec<Option<f64>>,
    known: Vec<f64>,
    jitter: f64,
}

/// Logarithm of the level of each node.
pub type World = Vec<f64>;

/// All nodes of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    pub all: Vec<Node>,
    places: BTreeMap<(usize, String), usize>,
    /// Blocks of the run whose noise is drawn.
    blocks: usize,
}

/// The recorded treatment that stands for each treatment.
pub struct Donors<'a> {
    run: Option<&'a RecordedRun>,
    /// By treatment: its donor, whether it is the same, and whether no other has it.
    chosen: Vec<Option<(&'a RecordedTreatment, bool, bool)>>,
}

impl<'a> Donors<'a> {
    /// Finds them for those treatments that are needed.
    pub fn new(
        run: Option<&'a RecordedRun>,
        treatments: &[Treatment],
        needed: &BTreeSet<usize>,
    ) -> Self {
        let mut chosen = vec![None; treatments.len()];
        let recorded = run.map_or(&[][..], |run| &run.treatments);
        let likeness = |treatment: &Treatment, one: &RecordedTreatment| {
            let is_same = |(name, level): &(&String, &toll_core::spec::Level)| {
                one.levels.get(*name) == Some(&level.text)
            };
            let same = treatment.levels.iter().filter(is_same).count();
            let is_exact = same == treatment.levels.len() && same == one.levels.len();
            (same, one.is_twin == treatment.twin_of.is_some(), is_exact)
        };
        let mut pairs = Vec::new();
        for treatment in treatments.iter().filter(|one| needed.contains(&one.index)) {
            let donors = recorded.iter().enumerate();
            let best = donors
                .max_by_key(|(place, one)| (likeness(treatment, one), std::cmp::Reverse(*place)));
            if let Some((place, one)) = best {
                pairs.push((likeness(treatment, one), treatment.index, place));
            }
        }
        // The most alike first, so that these keep what their blocks have in common.
        pairs.sort_by_key(|(likeness, index, _)| (std::cmp::Reverse(*likeness), *index));
        let mut used = BTreeSet::new();
        for ((_, is_twin_too, is_exact), index, place) in pairs {
            let is_first = used.insert(place);
            chosen[index] = Some((&recorded[place], is_exact && is_twin_too, is_first));
        }
        Self { run, chosen }
    }
}

impl Nodes {
    pub fn new(donors: &Donors) -> Self {
        Self {
            blocks: donors.run.map_or(1, |run| run.blocks.max(1)),
            ..Self::default()
        }
    }

    /// The node of a metric of a treatment, made if there is none yet.
    pub fn at(&mut self, treatment: usize, metric: &str, donors: &Donors) -> usize {
        let key = (treatment, metric.to_owned());
        let next = self.all.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.all.push(Node::new(treatment, metric, donors));
        }
        place
    }

    /// The metrics that nodes have.
    pub fn metrics(&self) -> BTreeSet<String> {
        self.all.iter().map(|node| node.metric.clone()).collect()
    }

    /// The recorded levels; 1 where nothing is recorded.
    pub fn recorded_levels(&self) -> World {
        let level = |node: &Node| node.median.unwrap_or(1.0).ln();
        self.all.iter().map(level).collect()
    }

    /// Deviations of all nodes in one block.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        let block = rng.below(self.blocks);
        self.all.iter().map(|node| node.draw(block, rng)).collect()
    }

    /// A signed sum of the deviations of some nodes in one block.
    pub fn draw_sum(&self, terms: &[(usize, f64)], rng: &mut Rng) -> f64 {
        let block = rng.below(self.blocks);
        let drawn = terms.iter();
        drawn
            .map(|(node, sign)| sign * self.all[*node].draw(block, rng))
            .sum()
    }
}

impl Node {
    fn new(treatment: usize, metric: &str, donors: &Donors) -> Self {
        let donor = donors.chosen[treatment];
        let found = donor.and_then(|(one, is_same, is_first)| {
            Some((one.metrics.get(metric)?, is_same, is_first))
        });
        let mut node = Self {
            treatment,
            metric: metric.to_owned(),
            twin_of: None,
            origin: Origin::Assumed,
            median: None,
            shares_block: false,
            deviations: Vec::new(),
            known: Vec::new(),
            jitter: 0.0,
        };
        if let Some((series, is_same, is_first)) = found {
            node.origin = match is_same {
                true => Origin::Measured,
                false => Origin::Borrowed,
            };
            node.median = Some(series.median);
            node.shares_block = is_first;
            node.take_deviations(series);
        }
        node
    }

    /// A series of n blocks scatters less than what it was drawn from, by (n - 1)/n.
    fn take_deviations(&mut self, series: &Series) {
        let known = series.deviations().flatten().count() as f64;
        let scale = (known / (known - 1.0).max(1.0)).sqrt();
        let deviations = series.deviations();
        self.deviations = deviations.map(|one| Some(one? * scale)).collect();
        self.known = self.deviations.iter().flatten().copied().collect();
        match self.known.is_empty() {
            // All values were 0, so how others would scatter is not known.
            true => self.origin = Origin::Assumed,
            false => {
                let distances: Vec<f64> = self.known.iter().map(|one| one.abs()).collect();
                // The median distance of a normal distribution is 0.6745 deviations.
                self.jitter = SMOOTHING * median(&distances) / 0.6745;
            }
        }
    }

    fn draw(&self, block: usize, rng: &mut Rng) -> f64 {
        if self.known.is_empty() {
            return ASSUMED_DEVIATION * rng.normal();
        }
        let with_block = self.deviations.get(block).copied().flatten();
        let drawn = with_block.filter(|_| self.shares_block);
        let drawn = drawn.unwrap_or_else(|| self.known[rng.below(self.known.len())]);
        match self.jitter > 0.0 {
            true => drawn + self.jitter * rng.normal(),
            false => drawn,
        }
    }
}
