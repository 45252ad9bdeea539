//! Cost models, one per block.

use std::collections::BTreeMap;

use toll_stats::{CostModel, fit_cost_model, median};

use super::grid::Grid;
use super::quantity::Quantity;
use crate::claim::context::AnalysisContext;
use crate::reason::Reason;
use crate::spec::{BYTES_MOVED, CALLS, Derived};

/// Cost models, one per block.
pub struct CostModels {
    blocks: Vec<CostModel>,
    /// The cost model fitted to the median times.
    of_medians: CostModel,
    /// Calls and bytes of each level.
    pub sizes: Vec<(f64, f64)>,
}

impl CostModels {
    pub fn new(spec: &Derived, context: &AnalysisContext) -> Result<Self, Reason> {
        let times = Grid::new(spec, context)?;
        let sizes = sizes(spec, context)?;
        let (calls, bytes): (Vec<f64>, Vec<f64>) = sizes.iter().copied().unzip();
        let fit = |times: Vec<f64>| {
            fit_cost_model(&calls, &bytes, &times)
                .ok_or("the sizes or the times cannot tell the cost of a call from that of a byte")
        };
        let blocks = (0..times.blocks()).map(|block| fit(times.row(block)));
        Ok(Self {
            blocks: blocks.collect::<Result<_, _>>()?,
            of_medians: fit(times.medians())?,
            sizes,
        })
    }

    fn each(&self, output: impl Fn(&CostModel) -> f64) -> Vec<f64> {
        self.blocks.iter().map(output).collect()
    }

    /// Returns the quantity that `output` takes from the model of each block.
    pub fn quantity(&self, output: impl Fn(&CostModel) -> f64) -> Quantity {
        let values = self.each(output);
        let per_call = median(&self.each(|model| model.per_call));
        let per_byte = median(&self.each(|model| model.per_byte));
        let details = BTreeMap::from([
            ("cost_per_call_ns".into(), per_call),
            ("cost_per_byte_ns".into(), per_byte),
            (
                "relative_residual_rms".into(),
                self.of_medians.relative_residual_rms,
            ),
            (
                "relative_residual_max".into(),
                self.of_medians.relative_residual_max,
            ),
        ]);
        Quantity {
            details,
            ..Quantity::of_values(values)
        }
    }
}

/// Calls and bytes of each level.
fn sizes(spec: &Derived, context: &AnalysisContext) -> Result<Vec<(f64, f64)>, Reason> {
    let (_, indices) = context.over(spec, &spec.at)?;
    let value = |names: &[&str], index: usize| {
        let found = names.iter().find_map(|name| {
            let values = context.values(name, index);
            (!values.is_empty()).then(|| median(&values))
        });
        found.ok_or_else(|| Reason::NotRecorded {
            metric: names.join(" or "),
        })
    };
    let sizes = indices.into_iter();
    sizes
        .map(|index| Ok((value(&[CALLS], index)?, value(&BYTES_MOVED, index)?)))
        .collect()
}
