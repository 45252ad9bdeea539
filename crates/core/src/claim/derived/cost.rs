//! What a cost model is fitted to.

use std::collections::BTreeMap;

use toll_stats::{CostModel, fit_cost_model, median};

use super::grid::Grid;
use crate::claim::context::AnalysisContext;
use crate::spec::Derived;

/// What a cost model is fitted to.
pub struct CostGrid {
    pub time: Grid,
    /// Calls and bytes of each level.
    pub sizes: Vec<(f64, f64)>,
}

impl CostGrid {
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, String> {
        let (_, indices) = context.over(spec, &spec.at)?;
        let value = |names: &[&str], index: usize| {
            let found = names.iter().find_map(|name| {
                let values = context.values(name, index);
                (!values.is_empty()).then(|| median(&values))
            });
            found.ok_or_else(|| format!("no trial recorded {}", names.join(" or ")))
        };
        let sizes = indices
            .iter()
            .map(|index| {
                Ok((
                    value(&["calls"], *index)?,
                    value(
                        &["bytes_written", "bytes_copied", "bytes_transferred"],
                        *index,
                    )?,
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            time: Grid::new(spec, context)?,
            sizes,
        })
    }

    pub fn fit(&self, blocks: &[usize]) -> Option<CostModel> {
        let (calls, bytes): (Vec<f64>, Vec<f64>) = self.sizes.iter().copied().unzip();
        fit_cost_model(&calls, &bytes, &self.time.medians(blocks))
    }

    pub fn details(&self) -> BTreeMap<String, f64> {
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
