//! The kinds of derived quantities: how each is computed, in which unit, and from how many intervals.

use std::collections::BTreeMap;

use toll_stats::{CostModel, Interval, Knee, Spread, hodges_lehmann, step, zero_crossing};

use super::cost::CostModels;
use super::grid::Grid;
use super::quantity::Quantity;
use super::staircase::{self, PLATEAU_LEVELS_MIN};
use crate::claim::context::{AnalysisContext, acceleration_log};
use crate::claim::model::Better;
use crate::claim::{CONFIDENCE, metric};
use crate::reason::Reason;
use crate::spec::{Derived, DerivedKind, Experiment, Level, Selector};

impl Quantity {
    /// Collects what the quantity needs from a run. Fails with the reason if something is
    /// missing.
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, Reason> {
        match &spec.kind {
            DerivedKind::Knee { tolerance } => Self::knee(spec, *tolerance, context),
            DerivedKind::Acceleration { of, to, level } => {
                Self::acceleration(spec, of, to, level, context)
            }
            DerivedKind::Crossing { of, to, value } => {
                Self::crossing(spec, of, to, *value, context)
            }
            DerivedKind::CostPerCall {} => Self::cost(spec, context, |model| model.per_call),
            DerivedKind::CostPerByte {} => Self::cost(spec, context, |model| model.per_byte),
            DerivedKind::CallShare { level } => Self::call_share(spec, level, context),
            DerivedKind::Spread {} => Self::spread(spec, context),
            DerivedKind::Quotient { per, level } => Self::quotient(spec, per, level, context),
            DerivedKind::Step { number, rise } => Self::step(spec, *number, *rise, context),
        }
    }

    fn knee(spec: &Derived, tolerance: f64, context: &AnalysisContext) -> Result<Self, Reason> {
        let mut grid = Grid::new(spec, context)?.logs()?;
        if context.metric(&spec.metric).better == Better::Lower {
            for log in grid.columns.iter_mut().flatten() {
                *log = -*log;
            }
        }
        let knee = Knee::new(&grid.levels, &grid.columns, tolerance);
        let interval = move |confidence| knee.interval(confidence);
        Ok(Self::estimated(grid.blocks(), interval))
    }

    fn acceleration(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<Self, Reason> {
        let pick = |side: &Selector| {
            let mut selector = side.clone();
            selector.insert(spec.factor.clone(), level.clone());
            context.pick(&selector)
        };
        let logs = context.accelerations(&spec.metric, pick(of)?, pick(to)?)?;
        Ok(Self {
            evidence_values: logs.iter().map(|log| 1.0 - log.exp()).collect(),
            ..Self::estimated(logs.len(), move |confidence| {
                let ratio = hodges_lehmann(&logs, confidence).map(f64::exp);
                Interval {
                    estimate: 1.0 - ratio.estimate,
                    low: 1.0 - ratio.high,
                    high: 1.0 - ratio.low,
                    ..ratio
                }
            })
        })
    }

    fn crossing(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        value: f64,
        context: &AnalysisContext,
    ) -> Result<Self, Reason> {
        let (levels, of) = context.over(spec, of)?;
        let (to_levels, to) = context.over(spec, to)?;
        // Only levels that both sides have can be compared.
        let both: Vec<(f64, usize, usize)> = levels
            .iter()
            .zip(&of)
            .filter_map(|(level, of)| {
                let place = to_levels.iter().position(|other| other == level)?;
                Some((*level, *of, to[place]))
            })
            .collect();
        let levels: Vec<f64> = both.iter().map(|(level, ..)| *level).collect();
        let all: Vec<usize> = both.iter().flat_map(|(_, of, to)| [*of, *to]).collect();
        let blocks = context.blocks_of_all(spec, &all)?;
        // Logarithm of the ratio of the sides at the requested acceleration.
        let ratio = (1.0 - value).ln();
        let above = |(_, of, to): &(f64, usize, usize)| {
            let column = |index: usize| context.column(&spec.metric, index);
            let (of, to) = (column(*of), column(*to));
            let above = |block: &u32| Ok(ratio - acceleration_log(of[block], to[block])?);
            blocks.iter().map(above).collect()
        };
        let columns: Vec<Vec<f64>> = both.iter().map(above).collect::<Result<_, Reason>>()?;
        Ok(Self::estimated(blocks.len(), move |confidence| {
            zero_crossing(&levels, &columns, confidence)
        }))
    }

    fn cost(
        spec: &Derived,
        context: &AnalysisContext,
        output: impl Fn(&CostModel) -> f64,
    ) -> Result<Self, Reason> {
        Ok(CostModels::new(spec, context)?.quantity(output))
    }

    fn call_share(
        spec: &Derived,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<Self, Reason> {
        let (levels, _) = context.over(spec, &spec.at)?;
        let place = levels
            .iter()
            .position(|number| Some(*number) == level.number)
            .ok_or_else(|| Reason::LeftOut {
                what: format!("{}={}", spec.factor, level.text),
            })?;
        let models = CostModels::new(spec, context)?;
        let (calls, bytes) = models.sizes[place];
        Ok(models.quantity(|model| model.call_share(calls, bytes)))
    }

    fn spread(spec: &Derived, context: &AnalysisContext) -> Result<Self, Reason> {
        let grid = Grid::new(spec, context)?.logs()?;
        let spread = Spread::new(&grid.columns);
        let interval = move |confidence| spread.interval(confidence);
        Ok(Self::estimated(grid.blocks(), interval))
    }

    fn step(
        spec: &Derived,
        number: usize,
        rise: f64,
        context: &AnalysisContext,
    ) -> Result<Self, Reason> {
        let grid = Grid::new(spec, context)?.logs()?;
        let fit = staircase::fit(&grid, rise).ok_or("there are too few levels for a step")?;
        let (blocks, steps) = (grid.blocks(), fit.starts.len());
        let details = BTreeMap::from([
            ("steps".into(), steps as f64),
            ("relative_residual_rms".into(), fit.residual_rms.exp_m1()),
        ]);
        let outward = grid.levels.clone();
        let at = move |confidence| {
            let Grid { levels, columns } = &grid;
            let rise = rise.ln_1p();
            step(
                levels,
                columns,
                number,
                rise,
                PLATEAU_LEVELS_MIN,
                confidence,
            )
        };
        match at(CONFIDENCE) {
            None => {
                let rise = crate::format::percent(rise);
                Err(format!("the curve has {steps} steps of {rise} or more").into())
            }
            Some(_) => Ok(Self {
                details,
                outward,
                ..Self::estimated(blocks, move |confidence| {
                    at(confidence).expect("a step exists at every confidence or at none")
                })
            }),
        }
    }

    fn quotient(
        spec: &Derived,
        per: &str,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<Self, Reason> {
        let mut selector = spec.at.clone();
        selector.insert(spec.factor.clone(), level.clone());
        let index = context.pick(&selector)?;
        let absent = [&spec.metric, per].into_iter();
        if let Some(reason) = absent
            .filter_map(|name| context.why_absent(name, &[index]))
            .next()
        {
            return Err(reason);
        }
        let (of, per) = (
            context.column(&spec.metric, index),
            context.column(per, index),
        );
        let pairs = of
            .iter()
            .filter_map(|(block, of)| Some((*of, *per.get(block)?)));
        let quotients: Vec<f64> = pairs
            .filter(|(_, per)| *per > 0.0)
            .map(|(of, per)| of / per)
            .collect();
        if quotients.is_empty() {
            Err(Reason::NoCommonBlock {
                sides: "both metrics".into(),
            })
        } else {
            Ok(Self::of_values(quotients))
        }
    }
}

/// Returns how many intervals must hold simultaneously so that a quantity's interval holds, in a
/// run that has all levels. For a step, this is the smallest possible number.
pub(in crate::claim) fn joint_intervals(spec: &Derived, experiment: &Experiment) -> usize {
    let levels = match experiment.factor(&spec.factor) {
        Some(factor) if spec.among.is_empty() => factor.levels.len(),
        _ => spec.among.len(),
    };
    match spec.kind {
        DerivedKind::Knee { .. } => levels.saturating_sub(1).max(1),
        DerivedKind::Crossing { .. } => levels,
        DerivedKind::Spread {} => levels * levels.saturating_sub(1),
        DerivedKind::Step { number, .. } => number + 3,
        DerivedKind::Acceleration { .. }
        | DerivedKind::CostPerCall {}
        | DerivedKind::CostPerByte {}
        | DerivedKind::CallShare { .. }
        | DerivedKind::Quotient { .. } => 1,
    }
}

/// Unit of a derived quantity.
pub(in crate::claim) fn unit(spec: &Derived, experiment: &Experiment) -> String {
    match &spec.kind {
        DerivedKind::Knee { .. } | DerivedKind::Crossing { .. } | DerivedKind::Step { .. } => {
            experiment.level_unit(&spec.factor)
        }
        DerivedKind::CostPerCall {} => "ns",
        DerivedKind::CostPerByte {} => "ns/byte",
        DerivedKind::Quotient { per, .. } => {
            let unit = |name: &str| metric::describe(experiment, name).unit;
            match (unit(&spec.metric).as_str(), unit(per.as_str()).as_str()) {
                ("ns", "count") => "ns",
                ("ns", "bytes") => "ns/byte",
                _ => "",
            }
        }
        DerivedKind::Acceleration { .. }
        | DerivedKind::CallShare { .. }
        | DerivedKind::Spread {} => "",
    }
    .into()
}
