//! Plateaus between the steps of a curve.

use std::collections::BTreeMap;

use toll_stats::{Staircase as Fit, mean, median_interval};

use super::grid::Grid;
use crate::claim::context::AnalysisContext;
use crate::claim::model::{DerivedEstimate, Estimate, NearestCache, Plateau, Staircase, Step};
use crate::claim::{CONFIDENCE, contrast};
use crate::spec::{Derived, DerivedKind};

/// Minimum number of consecutive levels of a plateau. Fewer levels may be the rise between two
/// plateaus.
pub(super) const PLATEAU_LEVELS_MIN: usize = 3;

/// Fits a staircase to the medians of logarithms; `None` if there are too few levels.
pub(super) fn fit(logs: &Grid, rise: f64) -> Option<Fit> {
    Fit::rising(&logs.medians(), rise.ln_1p(), PLATEAU_LEVELS_MIN)
}

/// Returns the staircases whose steps an experiment asks for. Staircases without a step, and those
/// that cannot be computed, are omitted; the derived quantities give the reason.
pub(in crate::claim) fn all(
    context: &AnalysisContext,
    derived: &[DerivedEstimate],
    caches: &BTreeMap<String, u64>,
) -> Vec<Staircase> {
    let mut groups: Vec<Vec<&Derived>> = Vec::new();
    for spec in &context.experiment.derived {
        if !matches!(spec.kind, DerivedKind::Step { .. }) {
            continue;
        }
        match groups.iter_mut().find(|group| same_curve(group[0], spec)) {
            Some(group) => group.push(spec),
            None => groups.push(vec![spec]),
        }
    }
    groups
        .iter()
        .filter_map(|group| staircase(group, context, derived, caches))
        .collect()
}

fn same_curve(a: &Derived, b: &Derived) -> bool {
    let rise = |spec: &Derived| match spec.kind {
        DerivedKind::Step { rise, .. } => Some(rise),
        _ => None,
    };
    a.factor == b.factor
        && a.metric == b.metric
        && a.among == b.among
        && a.at == b.at
        && rise(a) == rise(b)
}

fn staircase(
    group: &[&Derived],
    context: &AnalysisContext,
    derived: &[DerivedEstimate],
    caches: &BTreeMap<String, u64>,
) -> Option<Staircase> {
    let first = *group.first()?;
    let DerivedKind::Step { rise, .. } = first.kind else {
        return None;
    };
    let logs = Grid::new(first, context).ok()?.logs().ok()?;
    let plateaus = plateaus(&logs, &fit(&logs, rise)?);
    let factor_unit = context.experiment.level_unit(&first.factor).to_owned();
    let caches = (factor_unit == "bytes").then_some(caches);
    let steps: Vec<Step> = group
        .iter()
        .filter_map(|spec| step(spec, &plateaus, derived, caches))
        .collect();
    (!steps.is_empty()).then(|| Staircase {
        at: contrast::levels(&first.at, context.experiment),
        factor: first.factor.clone(),
        factor_unit,
        metric: first.metric.clone(),
        unit: context.metric(&first.metric).unit,
        plateaus,
        steps,
    })
}

/// Returns the plateaus. In each block, the value is the geometric mean over the plateau's
/// levels.
fn plateaus(logs: &Grid, fit: &Fit) -> Vec<Plateau> {
    let mut bounds = vec![0];
    bounds.extend(&fit.starts);
    bounds.push(logs.levels.len());
    let plateau = |pair: &[usize]| {
        let (from, to) = (pair[0], pair[1]);
        let mean = |block: usize| mean(&logs.row(block)[from..to]);
        let means: Vec<f64> = (0..logs.blocks()).map(mean).collect();
        Plateau {
            from: logs.levels[from],
            to: logs.levels[to - 1],
            value: Estimate::from(&median_interval(&means, CONFIDENCE).map(f64::exp)),
        }
    };
    bounds.windows(2).map(plateau).collect()
}

fn step(
    spec: &Derived,
    plateaus: &[Plateau],
    derived: &[DerivedEstimate],
    caches: Option<&BTreeMap<String, u64>>,
) -> Option<Step> {
    let DerivedKind::Step { number, .. } = spec.kind else {
        return None;
    };
    let at = derived.iter().find(|one| one.id == spec.id)?.estimate?;
    let (before, after) = (plateaus.get(number - 1)?.value, plateaus.get(number)?.value);
    Some(Step {
        id: spec.id.clone(),
        text: spec.text.clone(),
        at,
        before,
        after,
        rise: after.value / before.value,
        nearest_cache: caches.and_then(|caches| nearest(at.value?, caches)),
    })
}

/// Largest factor between a step and the size of the cache that it is attributed to. Cache
/// levels are more than a factor of four apart, so no step is near two of them.
const NEAR: f64 = 2.0;

/// Returns the cache whose size is nearest to a step on a logarithmic scale; `None` if it is
/// farther away than [`NEAR`].
fn nearest(place: f64, caches: &BTreeMap<String, u64>) -> Option<NearestCache> {
    let distance = |bytes: u64| (place / bytes as f64).ln().abs();
    let (name, bytes) = caches
        .iter()
        .filter(|(_, bytes)| distance(**bytes) <= NEAR.ln())
        .min_by(|a, b| distance(*a.1).total_cmp(&distance(*b.1)))?;
    Some(NearestCache {
        name: name.clone(),
        bytes: *bytes,
        share: place / *bytes as f64,
    })
}
