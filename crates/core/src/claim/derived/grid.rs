//! Values along a factor.

use toll_stats::median;

use crate::claim::context::AnalysisContext;
use crate::plan::Treatment;
use crate::reason::Reason;
use crate::spec::{Derived, Selector};

/// Values by block of one metric at each level of a factor.
pub struct Grid {
    /// Numbers of the levels, ascending.
    pub levels: Vec<f64>,
    /// Values by level, then by block.
    pub columns: Vec<Vec<f64>>,
}

impl Grid {
    /// Collects the levels of the factor that have trials, and the values of the blocks that have
    /// all these levels. Fails with the reason if there is no such block.
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, Reason> {
        let (levels, indices) = context.over(spec, &spec.at)?;
        let metric = &spec.metric;
        let blocks = context.blocks_of_all(spec, &indices)?;
        let column = |index: &usize| {
            let column = context.column(metric, *index);
            blocks.iter().map(|block| column[block]).collect()
        };
        Ok(Self {
            levels,
            columns: indices.iter().map(column).collect(),
        })
    }

    /// Replaces each value with its logarithm. Fails if a value is not positive.
    pub fn logs(mut self) -> Result<Self, Reason> {
        for value in self.columns.iter_mut().flatten() {
            if *value <= 0.0 {
                return Err(format!("a value of {value} has no ratio").into());
            }
            *value = value.ln();
        }
        Ok(self)
    }

    /// Returns the number of blocks that have all levels.
    pub fn blocks(&self) -> usize {
        self.columns[0].len()
    }

    /// Returns the values of one block, by level.
    pub fn row(&self, block: usize) -> Vec<f64> {
        self.columns.iter().map(|column| column[block]).collect()
    }

    /// Returns the medians over blocks, by level.
    pub fn medians(&self) -> Vec<f64> {
        self.columns.iter().map(|column| median(column)).collect()
    }
}

impl AnalysisContext<'_> {
    /// Returns the blocks in which all `treatments` have a value of a quantity's metric. Fails with
    /// the reason if there is no such block.
    pub fn blocks_of_all(&self, spec: &Derived, treatments: &[usize]) -> Result<Vec<u32>, Reason> {
        let blocks = self.common_blocks(&spec.metric, treatments);
        if blocks.is_empty() {
            Err(self
                .why_absent(&spec.metric, &self.involved(spec))
                .unwrap_or_else(|| Reason::NoCommonBlock {
                    sides: "every level".into(),
                }))
        } else {
            Ok(blocks)
        }
    }

    /// Returns the treatments that a quantity may be computed from.
    fn involved(&self, spec: &Derived) -> Vec<usize> {
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

    /// Returns the treatments along a quantity's factor: the numbers of their levels, ascending,
    /// and their indices.
    pub fn over(&self, spec: &Derived, at: &Selector) -> Result<(Vec<f64>, Vec<usize>), Reason> {
        let factor = self
            .experiment
            .factor(&spec.factor)
            .ok_or("the experiment lacks the factor")?;
        let mut found: Vec<(f64, usize)> = Vec::new();
        let mut reason = Reason::from(format!("no level of {} ran here", factor.name));
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
