//! What each kind of derived quantity is computed from.

use std::collections::BTreeMap;

use toll_stats::{CostModel, Staircase, knee, median, zero_crossing};

use super::Bootstrap;
use super::cost::CostGrid;
use super::grid::Grid;
use super::staircase;
use crate::claim::context::AnalysisContext;
use crate::claim::model::Better;
use crate::spec::{Derived, Level, Selector};

impl Bootstrap {
    pub(super) fn knee(
        spec: &Derived,
        tolerance: f64,
        context: &AnalysisContext,
    ) -> Result<Self, String> {
        let grid = Grid::new(spec, context)?;
        let better = context.metric(&spec.metric).better;
        Ok(Self::of(grid.blocks(), move |blocks: &[usize]| {
            let mut medians = grid.medians(blocks);
            if better == Better::Lower {
                for value in &mut medians {
                    *value = 1.0 / *value;
                }
            }
            knee(&grid.levels, &medians, tolerance)
        }))
    }

    pub(super) fn acceleration(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<Self, String> {
        let pick = |side: &Selector| {
            let mut selector = side.clone();
            selector.insert(spec.factor.clone(), level.clone());
            context.pick(&selector)
        };
        let logs = context.log_ratios(&spec.metric, pick(of)?, pick(to)?)?;
        Ok(Self::of(logs.len(), move |blocks: &[usize]| {
            let chosen: Vec<f64> = blocks.iter().map(|block| logs[*block]).collect();
            Some(1.0 - median(&chosen).exp())
        }))
    }

    pub(super) fn crossing(
        spec: &Derived,
        of: &Selector,
        to: &Selector,
        value: f64,
        context: &AnalysisContext,
    ) -> Result<Self, String> {
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
        let all: Vec<usize> = both.iter().flat_map(|(_, of, to)| [*of, *to]).collect();
        let blocks = context.common_blocks(&spec.metric, &all);
        let levels: Vec<f64> = both.iter().map(|(level, ..)| *level).collect();
        let accelerations: Vec<Vec<f64>> = both
            .iter()
            .map(|(_, of, to)| {
                let column = |index: usize| context.column(&spec.metric, index);
                let ratio = |block: &u32| 1.0 - column(*of)[block] / column(*to)[block];
                blocks.iter().map(ratio).collect()
            })
            .collect();
        let grid = Grid {
            levels,
            columns: accelerations,
        };
        Ok(Self::of(grid.blocks(), move |blocks: &[usize]| {
            let medians: Vec<f64> = grid
                .medians(blocks)
                .into_iter()
                .map(|acc| acc - value)
                .collect();
            zero_crossing(&grid.levels, &medians)
        }))
    }

    pub(super) fn cost(
        spec: &Derived,
        context: &AnalysisContext,
        output: impl Fn(&CostModel, &[(f64, f64)]) -> f64 + 'static,
    ) -> Result<Self, String> {
        let costs = CostGrid::new(spec, context)?;
        let details = costs.details();
        Ok(Self {
            blocks: costs.time.blocks(),
            details,
            outward: Vec::new(),
            statistic: Box::new(move |blocks| {
                let model = costs.fit(blocks)?;
                let value = output(&model, &costs.sizes);
                value.is_finite().then_some(value)
            }),
        })
    }

    pub(super) fn place(
        spec: &Derived,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<usize, String> {
        let (levels, _) = context.over(spec, &spec.at)?;
        levels
            .iter()
            .position(|number| Some(*number) == level.number)
            .ok_or_else(|| format!("this run has no {}={}", spec.factor, level.text))
    }

    pub(super) fn spread(spec: &Derived, context: &AnalysisContext) -> Result<Self, String> {
        let grid = Grid::new(spec, context)?;
        Ok(Self::of(grid.blocks(), move |blocks: &[usize]| {
            let medians = grid.medians(blocks);
            let largest = medians.iter().copied().fold(f64::MIN, f64::max);
            let smallest = medians.iter().copied().fold(f64::MAX, f64::min);
            (smallest > 0.0).then(|| largest / smallest)
        }))
    }

    /// The number of steps is that of all blocks together, and held in the
    /// resamples: with another number, the second step might be what was the
    /// third.
    pub(super) fn step(
        spec: &Derived,
        number: usize,
        rise: f64,
        context: &AnalysisContext,
    ) -> Result<Self, String> {
        let grid = Grid::new(spec, context)?;
        let mut details = BTreeMap::new();
        let mut steps = number;
        if grid.blocks() > 0 {
            let fit = staircase::fit(&grid, rise).ok_or("there are too few levels for a step")?;
            steps = fit.starts.len();
            if steps < number {
                return Err(format!(
                    "the curve has {steps} steps of {} or more",
                    crate::format::percent(rise)
                ));
            }
            details = BTreeMap::from([
                ("steps".into(), steps as f64),
                ("relative_residual_rms".into(), fit.residual_rms.exp_m1()),
            ]);
        }
        Ok(Self {
            blocks: grid.blocks(),
            details,
            outward: grid.levels.clone(),
            statistic: Box::new(move |blocks| {
                let logs = staircase::log_medians(&grid, blocks);
                let fit = Staircase::fit(&logs, steps, staircase::PLATEAU_LEVELS_MIN)?;
                let start = fit.starts[number - 1];
                Some((grid.levels[start - 1] * grid.levels[start]).sqrt())
            }),
        })
    }

    pub(super) fn quotient(
        spec: &Derived,
        per: &str,
        level: &Level,
        context: &AnalysisContext,
    ) -> Result<Self, String> {
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
        Ok(Self::of(quotients.len(), move |blocks: &[usize]| {
            let chosen: Vec<f64> = blocks.iter().map(|block| quotients[*block]).collect();
            Some(median(&chosen))
        }))
    }
}
