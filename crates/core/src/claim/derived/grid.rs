//! Values along a factor.

use toll_stats::median;

use crate::claim::context::AnalysisContext;
use crate::plan::Treatment;
use crate::spec::{Derived, Selector};

/// Values by block of one metric at each level of a factor.
pub struct Grid {
    /// Numbers of the levels, ascending.
    pub levels: Vec<f64>,
    /// By level, then block.
    pub columns: Vec<Vec<f64>>,
}

impl Grid {
    /// Levels of `factor` at which `at` has trials, and their values in the
    /// blocks that have all of them.
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, String> {
        let (levels, indices) = context.over(spec, &spec.at)?;
        let metric = &spec.metric;
        let blocks = context.common_blocks(metric, &indices);
        Ok(Self {
            levels,
            columns: indices
                .iter()
                .map(|index| {
                    let column = context.column(metric, *index);
                    blocks.iter().map(|block| column[block]).collect()
                })
                .collect(),
        })
    }

    /// The levels from one position up to another.
    pub fn part(&self, from: usize, to: usize) -> Self {
        Self {
            levels: self.levels[from..to].to_vec(),
            columns: self.columns[from..to].to_vec(),
        }
    }

    /// Blocks that have all levels.
    pub fn blocks(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Medians by level over chosen blocks.
    pub fn medians(&self, blocks: &[usize]) -> Vec<f64> {
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

impl AnalysisContext<'_> {
    /// Treatments that a quantity may be computed from.
    pub fn involved(&self, spec: &Derived) -> Vec<usize> {
        let is_involved = |treatment: &&Treatment| {
            let mut at = spec.at.iter();
            at.all(|(name, level)| {
                let own = treatment.levels.get(name);
                own.is_none_or(|own| own.same(level))
            })
        };
        let involved = self.treatments.iter().filter(is_involved);
        involved.map(|treatment| treatment.index).collect()
    }

    /// Treatments along a quantity's factor: numbers of the levels, ascending,
    /// and indices.
    pub fn over(&self, spec: &Derived, at: &Selector) -> Result<(Vec<f64>, Vec<usize>), String> {
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
            match self.pick(&selector) {
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
