//! Quantities computed from several treatments, with bootstrap intervals.

use std::collections::BTreeMap;

use toll_stats::{
    BootstrapInterval, BootstrapMethod, CostModel, Interval, cluster_bca, fit_cost_model, knee,
    median, zero_crossing,
};

use super::data::Data;
use super::model::{Better, DerivedEstimate, DerivedValue};
use super::{CONFIDENCE, contrast, metric};
use crate::plan::Treatment;
use crate::spec::{Derived, DerivedKind, Experiment, Level, Selector};

/// Resamples of the bootstrap: enough for the 0.1 % tails that Holm asks of
/// the smallest p-value among some fifty claims.
const REPLICATES: usize = 4000;
/// Fixed, so that the same run always has the same intervals.
const SEED: u64 = 0x746f_6c6c;
/// Levels at which a bootstrapped claim may be decided.
const LEVELS: [f64; 10] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];

/// Values by block of one metric at each level of a factor.
struct Grid {
    levels: Vec<f64>,
    /// By level, then block.
    columns: Vec<Vec<f64>>,
}

impl Grid {
    /// Levels of `factor` at which `at` has trials, and their values in the
    /// blocks that have all of them.
    fn new(spec: &Derived, source: &Source<'_>) -> Result<Self, String> {
        let (levels, indices) = source.over(spec, &spec.at)?;
        let metric = &spec.metric;
        let blocks = source.data.common_blocks(metric, &indices);
        Ok(Self {
            levels,
            columns: indices
                .iter()
                .map(|index| {
                    let column = source.data.column(metric, *index);
                    blocks.iter().map(|block| column[block]).collect()
                })
                .collect(),
        })
    }

    fn blocks(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Medians by level over chosen blocks.
    fn medians(&self, blocks: &[usize]) -> Vec<f64> {
        let mut chosen = Vec::with_capacity(blocks.len());
        self.columns
            .iter()
            .map(|column| {
                chosen.clear();
                chosen.extend(blocks.iter().map(|block| column[*block]));
                median(&chosen)
            })
            .collect()
    }
}

/// Where values come from.
struct Source<'a> {
    experiment: &'a Experiment,
    treatments: &'a [Treatment],
    data: &'a Data,
}

impl Source<'_> {
    /// Treatments along a quantity's factor: numbers of the levels, ascending,
    /// and indices.
    fn over(&self, spec: &Derived, at: &Selector) -> Result<(Vec<f64>, Vec<usize>), String> {
        let factor = self
            .experiment
            .factor(&spec.factor)
            .ok_or("the factor is not there")?;
        let mut found: Vec<(f64, usize)> = Vec::new();
        let mut reason = format!("no level of {} ran here", factor.name);
        for (place, level) in factor.levels.iter().enumerate() {
            if !spec.among.is_empty() && !spec.among.iter().any(|one| one.same(level)) {
                continue;
            }
            let mut selector = at.clone();
            selector.insert(factor.name.clone(), level.clone());
            match contrast::pick(&selector, &self.experiment.factors, self.treatments) {
                Ok(index) => found.push((level.number.unwrap_or(place as f64), index)),
                Err(why) => reason = why,
            }
        }
        if found.len() < 2 {
            return Err(reason);
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(found.into_iter().unzip())
    }
}

type Statistic = Box<dyn Fn(&[usize]) -> Option<f64>>;

/// A derived quantity, ready to be resampled over blocks.
pub(super) struct Bootstrap {
    blocks: usize,
    statistic: Statistic,
    details: BTreeMap<String, f64>,
}

impl Bootstrap {
    /// Collects what the quantity needs from a run.
    ///
    /// # Errors
    /// With the reason if the run does not have it.
    pub fn new(
        spec: &Derived,
        experiment: &Experiment,
        treatments: &[Treatment],
        data: &Data,
    ) -> Result<Self, String> {
        let source = Source {
            experiment,
            treatments,
            data,
        };
        let bootstrap = match &spec.kind {
            DerivedKind::Knee { tolerance } => Self::knee(spec, *tolerance, &source)?,
            DerivedKind::Acceleration { of, to, level } => {
                Self::acceleration(spec, of, to, level, &source)?
            }
            DerivedKind::Crossing { of, to, value } => {
                Self::crossing(spec, of, to, *value, &source)?
            }
            DerivedKind::CostPerCall => Self::cost(spec, &source, |model, _| model.per_call)?,
            DerivedKind::CostPerByte => Self::cost(spec, &source, |model, _| model.per_byte)?,
            DerivedKind::CallShare { level } => {
                let place = Self::place(spec, level, &source)?;
                Self::cost(spec, &source, move |model, sizes| {
                    let (calls, bytes) = sizes[place];
                    model.call_share(calls, bytes)
                })?
            }
            DerivedKind::Spread => Self::spread(spec, &source)?,
            DerivedKind::Quotient { per, level } => Self::quotient(spec, per, level, &source)?,
        };
        match bootstrap.blocks {
            0 => Err(data
                .why_absent(&spec.metric)
                .unwrap_or_else(|| "no block has a trial of every level".into())),
            _ => Ok(bootstrap),
        }
    }

    fn knee(spec: &Derived, tolerance: f64, source: &Source<'_>) -> Result<Self, String> {
        let grid = Grid::new(spec, source)?;
        let better = metric::describe(source.experiment, &spec.metric).better;
        Ok(Self {
            blocks: grid.blocks(),
            details: BTreeMap::new(),
            statistic: Box::new(move |blocks| {
                let mut medians = grid.medians(blocks);
                if better == Better::Lower {
                    for value in &mut medians {
                        *value = 1.0 / *value;
                    }
                }
                knee(&grid.levels, &medians, tolerance)
            }),
        })
    }

    fn acceleration(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        level: &Level,
        source: &Source<'_>,
    ) -> Result<Self, String> {
        let pick = |side: &Selector| {
            let mut selector = side.clone();
            selector.insert(spec.factor.clone(), level.clone());
            contrast::pick(&selector, &source.experiment.factors, source.treatments)
        };
        let logs = source.data.log_ratios(&spec.metric, pick(of)?, pick(to)?)?;
        Ok(Self {
            blocks: logs.len(),
            details: BTreeMap::new(),
            statistic: Box::new(move |blocks| {
                let chosen: Vec<f64> = blocks.iter().map(|block| logs[*block]).collect();
                Some(1.0 - median(&chosen).exp())
            }),
        })
    }

    fn crossing(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        value: f64,
        source: &Source<'_>,
    ) -> Result<Self, String> {
        let (levels, of) = source.over(spec, of)?;
        let (to_levels, to) = source.over(spec, to)?;
        // Only levels that both sides have can be compared.
        let both: Vec<(f64, usize, usize)> = levels
            .iter()
            .zip(&of)
            .filter_map(|(level, of)| {
                let place = to_levels.iter().position(|other| other == level)?;
                Some((*level, *of, to[place]))
            })
            .collect();
        let all: Vec<usize> = both.iter().flat_map(|(_, of, to)| [*of, *to]).collect();
        let blocks = source.data.common_blocks(&spec.metric, &all);
        let levels: Vec<f64> = both.iter().map(|(level, ..)| *level).collect();
        let accelerations: Vec<Vec<f64>> = both
            .iter()
            .map(|(_, of, to)| {
                let column = |index: usize| source.data.column(&spec.metric, index);
                let ratio = |block: &u32| 1.0 - column(*of)[block] / column(*to)[block];
                blocks.iter().map(ratio).collect()
            })
            .collect();
        let grid = Grid {
            levels,
            columns: accelerations,
        };
        Ok(Self {
            blocks: grid.blocks(),
            details: BTreeMap::new(),
            statistic: Box::new(move |blocks| {
                let medians: Vec<f64> = grid
                    .medians(blocks)
                    .into_iter()
                    .map(|acc| acc - value)
                    .collect();
                zero_crossing(&grid.levels, &medians)
            }),
        })
    }

    fn cost(
        spec: &Derived,
        source: &Source<'_>,
        output: impl Fn(&CostModel, &[(f64, f64)]) -> f64 + 'static,
    ) -> Result<Self, String> {
        let costs = CostGrid::new(spec, source)?;
        let details = costs.details();
        Ok(Self {
            blocks: costs.time.blocks(),
            details,
            statistic: Box::new(move |blocks| {
                let model = costs.fit(blocks)?;
                let value = output(&model, &costs.sizes);
                value.is_finite().then_some(value)
            }),
        })
    }

    fn place(spec: &Derived, level: &Level, source: &Source<'_>) -> Result<usize, String> {
        let (levels, _) = source.over(spec, &spec.at)?;
        levels
            .iter()
            .position(|number| Some(*number) == level.number)
            .ok_or_else(|| format!("this run has no {}={}", spec.factor, level.text))
    }

    fn spread(spec: &Derived, source: &Source<'_>) -> Result<Self, String> {
        let grid = Grid::new(spec, source)?;
        Ok(Self {
            blocks: grid.blocks(),
            details: BTreeMap::new(),
            statistic: Box::new(move |blocks| {
                let medians = grid.medians(blocks);
                let largest = medians.iter().copied().fold(f64::MIN, f64::max);
                let smallest = medians.iter().copied().fold(f64::MAX, f64::min);
                (smallest > 0.0).then(|| largest / smallest)
            }),
        })
    }

    fn quotient(
        spec: &Derived,
        per: &str,
        level: &Level,
        source: &Source<'_>,
    ) -> Result<Self, String> {
        let mut selector = spec.at.clone();
        selector.insert(spec.factor.clone(), level.clone());
        let factors = &source.experiment.factors;
        let index = contrast::pick(&selector, factors, source.treatments)?;
        let absent = [&spec.metric, per].into_iter();
        if let Some(reason) = absent
            .filter_map(|name| source.data.why_absent(name))
            .next()
        {
            return Err(reason);
        }
        let (of, per) = (
            source.data.column(&spec.metric, index),
            source.data.column(per, index),
        );
        let pairs = of
            .iter()
            .filter_map(|(block, of)| Some((*of, *per.get(block)?)));
        let quotients: Vec<f64> = pairs
            .filter(|(_, per)| *per > 0.0)
            .map(|(of, per)| of / per)
            .collect();
        Ok(Self {
            blocks: quotients.len(),
            details: BTreeMap::new(),
            statistic: Box::new(move |blocks| {
                let chosen: Vec<f64> = blocks.iter().map(|block| quotients[*block]).collect();
                Some(median(&chosen))
            }),
        })
    }

    /// Blocks that enter.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The estimate with its interval; infinite ends lie beyond the levels.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        self.resample(confidence).map(|result| result.interval)
    }

    fn resample(&self, confidence: f64) -> Option<BootstrapInterval> {
        cluster_bca(self.blocks, &self.statistic, confidence, REPLICATES, SEED)
    }

    /// The smallest of some levels at which the interval still decides, 1 if
    /// none does: a p-value rounded up.
    pub fn smallest_level(&self, decides: impl Fn(&Interval) -> bool) -> f64 {
        let mut smallest = 1.0;
        for level in LEVELS {
            match self.interval(1.0 - level) {
                Some(interval) if decides(&interval) => smallest = level,
                _ => break,
            }
        }
        smallest
    }
}

/// What a cost model is fitted to.
pub(super) struct CostGrid {
    time: Grid,
    /// Calls and bytes of each level.
    sizes: Vec<(f64, f64)>,
}

impl CostGrid {
    fn new(spec: &Derived, source: &Source<'_>) -> Result<Self, String> {
        let (_, indices) = source.over(spec, &spec.at)?;
        let value = |names: &[&str], index: usize| {
            let found = names.iter().find_map(|name| {
                let values = source.data.values(name, index);
                (!values.is_empty()).then(|| median(&values))
            });
            found.ok_or_else(|| format!("no trial recorded {}", names.join(" or ")))
        };
        let sizes = indices
            .iter()
            .map(|index| {
                Ok((
                    value(&["calls"], *index)?,
                    value(&["bytes_written", "bytes_copied"], *index)?,
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            time: Grid::new(spec, source)?,
            sizes,
        })
    }

    fn fit(&self, blocks: &[usize]) -> Option<CostModel> {
        let (calls, bytes): (Vec<f64>, Vec<f64>) = self.sizes.iter().copied().unzip();
        fit_cost_model(&calls, &bytes, &self.time.medians(blocks))
    }

    fn details(&self) -> BTreeMap<String, f64> {
        let all: Vec<usize> = (0..self.time.blocks()).collect();
        if all.is_empty() {
            return BTreeMap::new();
        }
        self.fit(&all).map_or_else(BTreeMap::new, |model| {
            BTreeMap::from([
                ("cost_per_call_ns".into(), model.per_call),
                ("cost_per_byte_ns".into(), model.per_byte),
                ("relative_residual_rms".into(), model.relative_residual_rms),
                ("relative_residual_max".into(), model.relative_residual_max),
            ])
        })
    }
}

/// Unit of a derived quantity.
pub(super) fn unit(spec: &Derived, experiment: &Experiment) -> String {
    let of_factor = || match experiment.factor(&spec.factor) {
        Some(factor) if factor.is_size => "bytes",
        _ => "",
    };
    match spec.kind {
        DerivedKind::Knee { .. } | DerivedKind::Crossing { .. } => of_factor(),
        DerivedKind::CostPerCall => "ns",
        DerivedKind::CostPerByte => "ns/byte",
        DerivedKind::Acceleration { .. }
        | DerivedKind::CallShare { .. }
        | DerivedKind::Spread
        | DerivedKind::Quotient { .. } => "",
    }
    .into()
}

/// An interval whose infinite ends become absent.
pub(super) fn bounded(interval: &Interval, confidence: f64) -> DerivedValue {
    let finite = |value: f64| value.is_finite().then_some(value);
    DerivedValue {
        value: finite(interval.estimate),
        low: finite(interval.low),
        high: finite(interval.high),
        confidence,
    }
}

/// What a reader must know of an interval that is not a plain BCa one.
fn qualification(result: &BootstrapInterval) -> Option<String> {
    if result.undefined_share > 0.0 {
        return Some(format!(
            "undefined in {:.0} % of the resamples, which the interval leaves out",
            result.undefined_share * 100.0
        ));
    }
    let is_point = result.interval.low == result.interval.high;
    (result.method == BootstrapMethod::Percentile && !is_point)
        .then(|| "a percentile interval: its bias could not be corrected".into())
}

/// Estimates all derived quantities of an experiment.
pub(super) fn estimate_all(
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> Vec<DerivedEstimate> {
    experiment
        .derived
        .iter()
        .map(|spec| estimate(spec, experiment, treatments, data))
        .collect()
}

/// Estimates one derived quantity.
pub(super) fn estimate(
    spec: &Derived,
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> DerivedEstimate {
    let mut estimate = DerivedEstimate {
        id: spec.id.clone(),
        text: spec.text.clone(),
        unit: unit(spec, experiment),
        estimate: None,
        details: BTreeMap::new(),
        note: None,
    };
    match Bootstrap::new(spec, experiment, treatments, data) {
        Err(reason) => estimate.note = Some(reason),
        Ok(bootstrap) => {
            match bootstrap.resample(CONFIDENCE) {
                Some(result) => {
                    estimate.estimate = Some(bounded(&result.interval, CONFIDENCE));
                    estimate.note = qualification(&result);
                }
                None => estimate.note = Some("it is not defined on this run".into()),
            }
            estimate.details = bootstrap.details;
        }
    }
    estimate
}
