//! The values that are drawn: one metric of one treatment each, with its level and its scatter.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toll_core::plan::Treatment;
use toll_core::spec::{Level, Table, TableMean};
use toll_stats::{Rng, fit_cost_model, median};

use super::noise::{RecordedRun, RecordedTreatment, Series};

/// Assumed deviation of a metric, in natural logarithms, if none is recorded or published.
const ASSUMED_DEVIATION: f64 = 0.05;
/// Width of the noise that is added to a drawn deviation, as a share of the scatter. Without this
/// smoothed bootstrap, the values of few recorded blocks would repeat.
const SMOOTHING: f64 = 0.1;
/// Number of draws for the centre of a ratio's noise.
const CENTRE_DRAWS: usize = 20_000;

/// The source of the noise of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The same treatment in a stored run. Its noise is drawn together with the block.
    Measured,
    /// The most similar recorded treatment. Its noise is drawn independently if another treatment
    /// uses it, too.
    Borrowed,
    /// The scatter that the report publishes, because this machine does not record the metric.
    Published,
    /// An assumption, because nothing is known about the noise.
    Assumed,
}

/// One metric of one treatment.
#[derive(Debug, Clone)]
pub struct Node {
    pub treatment: usize,
    pub metric: String,
    /// If the treatment is a twin, the node of the treatment that it repeats.
    pub twin_of: Option<usize>,
    pub origin: Origin,
    /// Recorded median; `None` if nothing is recorded.
    pub median: Option<f64>,
    shares_block: bool,
    deviations: Vec<Option<f64>>,
    known: Vec<f64>,
    /// Width of normal noise that is added to a drawn deviation. It is all of the noise if none
    /// is recorded.
    normal: f64,
}

/// The level of each node, as a natural logarithm.
pub type World = Vec<f64>;

/// All nodes of an experiment.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    pub all: Vec<Node>,
    places: BTreeMap<(usize, String), usize>,
    /// Number of blocks of the run whose noise is drawn.
    blocks: usize,
}

/// A recorded treatment that provides noise for a treatment of the experiment.
#[derive(Clone)]
struct Donor<'a> {
    treatment: &'a RecordedTreatment,
    is_same: bool,
    /// Whether this treatment is the first that uses the donor.
    is_first: bool,
}

/// Known noise of each treatment.
pub struct Donors<'a> {
    run: Option<&'a RecordedRun>,
    chosen: Vec<Option<Donor<'a>>>,
    /// The largest deviation that the report gives, by metric.
    published: BTreeMap<String, f64>,
}

impl<'a> Donors<'a> {
    /// Finds a donor of noise for each treatment that needs one.
    pub fn new(
        run: Option<&'a RecordedRun>,
        treatments: &[Treatment],
        needed: &BTreeSet<usize>,
        tables: &[Table],
    ) -> Self {
        let mut chosen = vec![None; treatments.len()];
        let recorded = run.map_or(&[][..], |run| &run.treatments);
        let mut pairs = Vec::new();
        for treatment in treatments.iter().filter(|one| needed.contains(&one.index)) {
            let donors = recorded.iter().enumerate();
            let best =
                donors.max_by_key(|(place, one)| (likeness(treatment, one), Reverse(*place)));
            if let Some((place, one)) = best {
                pairs.push((likeness(treatment, one), treatment.index, place));
            }
        }
        // The most similar pairs come first, so that they keep what their blocks have in common.
        pairs.sort_by_key(|(likeness, index, ..)| (Reverse(*likeness), *index));
        let mut used = BTreeSet::new();
        for ((_, is_twin_too, is_exact), index, place) in pairs {
            chosen[index] = Some(Donor {
                treatment: &recorded[place],
                is_same: is_exact && is_twin_too,
                is_first: used.insert(place),
            });
        }
        let published = published(tables);
        Self {
            run,
            chosen,
            published,
        }
    }
}

/// Returns how similar a recorded treatment is, whether both are twins or neither is, and whether
/// all levels are the same. The distance of two numbers is the difference of their logarithms. The
/// distance of two different words is larger.
fn likeness(treatment: &Treatment, recorded: &RecordedTreatment) -> (Reverse<u64>, bool, bool) {
    const WORDS: f64 = 10.0;
    let distance = |(name, level): (&String, &Level)| {
        let other = recorded.levels.get(name).map(|text| Level::new(text));
        match (level.number, other.as_ref().and_then(|one| one.number)) {
            _ if other.is_some_and(|other| other.same(level)) => 0.0,
            (Some(a), Some(b)) if a > 0.0 && b > 0.0 => f64::abs((a / b).ln()),
            _ => WORDS,
        }
    };
    let distance: f64 = treatment.levels.iter().map(distance).sum();
    let thousandths = (1e3 * distance) as u64;
    let is_exact = distance == 0.0 && treatment.levels.len() == recorded.levels.len();
    let is_twin_too = recorded.is_twin == treatment.twin_of.is_some();
    (Reverse(thousandths), is_twin_too, is_exact)
}

/// Returns the largest standard deviation, relative to its mean, that a report gives for all its
/// runs, by metric. Deviations without extremes are ignored, because dropping values made them
/// small.
fn published(tables: &[Table]) -> BTreeMap<String, f64> {
    let mut largest = BTreeMap::new();
    let tables = tables
        .iter()
        .filter(|table| table.mean == Some(TableMean::All));
    let quantities = tables.flat_map(|table| &table.quantities);
    for quantity in quantities.filter(|one| one.per.is_none()) {
        for row in &quantity.rows {
            if let (Some(mean), Some(deviation)) = (row.published, row.deviation)
                && mean > 0.0
            {
                let known: &mut f64 = largest.entry(quantity.metric.clone()).or_default();
                *known = known.max(deviation / mean);
            }
        }
    }
    largest
}

impl Nodes {
    pub fn new(donors: &Donors) -> Self {
        Self {
            blocks: donors.run.map_or(1, |run| run.blocks.max(1)),
            ..Self::default()
        }
    }

    /// Returns the node of a metric of a treatment. Creates the node if there is none yet.
    pub fn at(&mut self, treatment: usize, metric: &str, donors: &Donors) -> usize {
        let key = (treatment, metric.to_owned());
        let next = self.all.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.all.push(Node::new(treatment, metric, donors));
        }
        place
    }

    /// Returns the metrics of all nodes.
    pub fn metrics(&self) -> BTreeSet<String> {
        self.all.iter().map(|node| node.metric.clone()).collect()
    }

    /// Returns the recorded levels; 1 where nothing is recorded.
    pub fn recorded_levels(&self) -> World {
        let level = |node: &Node| node.median.unwrap_or(1.0).ln();
        self.all.iter().map(level).collect()
    }

    /// Draws the deviations of all nodes in one block.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        let block = rng.below(self.blocks);
        self.all.iter().map(|node| node.draw(block, rng)).collect()
    }

    /// Draws a signed sum of the deviations of some nodes in one block.
    pub fn draw_sum(&self, terms: &[(usize, f64)], rng: &mut Rng) -> f64 {
        let block = rng.below(self.blocks);
        let drawn = terms.iter();
        drawn
            .map(|(node, sign)| sign * self.all[*node].draw(block, rng))
            .sum()
    }

    /// Returns the centre of the noise of a signed sum. That is the pseudo-median, which rank
    /// intervals estimate, or the median for a quotient.
    pub fn centre(&self, terms: &[(usize, f64)], is_quotient: bool) -> f64 {
        let mut rng = Rng::new(1);
        let draws = (0..CENTRE_DRAWS).map(|_| self.draw_sum(terms, &mut rng));
        let drawn: Vec<f64> = draws.collect();
        if is_quotient {
            return median(&drawn);
        }
        let pairs = drawn.chunks_exact(2);
        let means: Vec<f64> = pairs.map(|two| f64::midpoint(two[0], two[1])).collect();
        median(&means)
    }

    /// Returns the median call share of the cost models of drawn blocks. This median differs from
    /// the call share of a block without noise.
    pub fn median_call_share(&self, curve: &[[usize; 3]], place: usize, world: &World) -> f64 {
        let level = |nodes: usize| curve.iter().map(move |node| world[node[nodes]].exp());
        let (calls, bytes): (Vec<f64>, Vec<f64>) = level(1).zip(level(2)).unzip();
        let mut rng = Rng::new(1);
        let draws = (0..CENTRE_DRAWS).filter_map(|_| {
            let deviations = self.draw(&mut rng);
            let times = curve.iter().zip(level(0));
            let times: Vec<f64> = times
                .map(|([time, ..], level)| level * deviations[*time].exp())
                .collect();
            let model = fit_cost_model(&calls, &bytes, &times)?;
            Some(model.call_share(calls[place], bytes[place]))
        });
        median(&draws.collect::<Vec<_>>())
    }
}

impl Node {
    fn new(treatment: usize, metric: &str, donors: &Donors) -> Self {
        let mut node = Self {
            treatment,
            metric: metric.to_owned(),
            twin_of: None,
            origin: Origin::Assumed,
            median: None,
            shares_block: false,
            deviations: Vec::new(),
            known: Vec::new(),
            normal: ASSUMED_DEVIATION,
        };
        let donor = donors.chosen[treatment].as_ref();
        let found = donor.and_then(|donor| Some((donor, donor.treatment.metrics.get(metric)?)));
        match (found, donors.published.get(metric)) {
            (Some((donor, series)), _) => {
                node.origin = if donor.is_same {
                    Origin::Measured
                } else {
                    Origin::Borrowed
                };
                node.median = Some(series.median);
                node.shares_block = donor.is_first;
                node.take_deviations(series);
            }
            (None, Some(deviation)) => {
                node.origin = Origin::Published;
                node.normal = *deviation;
            }
            (None, None) => {}
        }
        node
    }

    /// Copies recorded deviations into the node. The deviations of n blocks are widened, because
    /// they scatter less than their distribution, by (n - 1)/n.
    fn take_deviations(&mut self, series: &Series) {
        let known = series.deviations().flatten().count() as f64;
        let scale = (known / (known - 1.0).max(1.0)).sqrt();
        let deviations = series.deviations();
        self.deviations = deviations.map(|one| Some(one? * scale)).collect();
        self.known = self.deviations.iter().flatten().copied().collect();
        if self.known.is_empty() {
            // All values were 0, so the scatter of other values is unknown.
            self.origin = Origin::Assumed
        } else {
            let distances: Vec<f64> = self.known.iter().map(|one| one.abs()).collect();
            // The median distance of a normal distribution is 0.6745 standard deviations.
            self.normal = SMOOTHING * median(&distances) / 0.6745;
        }
    }

    fn draw(&self, block: usize, rng: &mut Rng) -> f64 {
        let normal = if self.normal > 0.0 {
            self.normal * rng.normal()
        } else {
            0.0
        };
        if self.known.is_empty() {
            return normal;
        }
        let with_block = self.deviations.get(block).copied().flatten();
        let drawn = with_block.filter(|_| self.shares_block);
        normal + drawn.unwrap_or_else(|| self.known[rng.below(self.known.len())])
    }
}
