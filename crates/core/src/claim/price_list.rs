//! Price of each row of an experiment.

use std::collections::BTreeMap;

use toll_wire::{ChaseStride, Workload};

use super::context::AnalysisContext;
use super::model::{DerivedEstimate, DerivedValue, Estimate, Price, TreatmentSummary};
use crate::plan::{Treatment, TreatmentParameters};
use crate::spec::Row;

/// Returns the price list of an experiment with rows, in the order of its groups. Derived
/// quantities come last in their group. Empty if no row has a group.
pub(super) fn list(
    context: &AnalysisContext,
    summaries: &[TreatmentSummary],
    derived: &[DerivedEstimate],
    caches: &BTreeMap<String, u64>,
) -> Vec<Price> {
    let experiment = context.experiment;
    if experiment.rows.iter().all(|row| row.group.is_none()) {
        return Vec::new();
    }
    let own = context
        .treatments
        .iter()
        .filter(|one| one.twin_of.is_none());
    let mut prices: Vec<Price> = own
        .filter_map(|treatment| {
            let row = experiment.row(&treatment.levels)?;
            let mut price = price(row, treatment, &summaries[treatment.index], context);
            if price.value.is_some() {
                price.note = cache_of(treatment, context, caches);
            }
            Some(price)
        })
        .collect();
    let groups = experiment.derived.iter().map(|spec| &spec.group);
    for (one, group) in derived.iter().zip(groups) {
        if group.is_some() {
            prices.push(of_derived(one, group.clone()));
        }
    }
    let mut order: Vec<Option<String>> = Vec::new();
    for price in &prices {
        if !order.contains(&price.group) {
            order.push(price.group.clone());
        }
    }
    prices.sort_by_key(|price| order.iter().position(|group| *group == price.group));
    prices
}

fn price(
    row: &Row,
    treatment: &Treatment,
    summary: &TreatmentSummary,
    context: &AnalysisContext,
) -> Price {
    let unit = context.metric(&row.metric).unit;
    let scaled = |median: &Estimate| DerivedValue {
        value: Some(median.value * row.times),
        low: Some(median.low * row.times),
        high: Some(median.high * row.times),
        confidence: median.confidence,
    };
    let value = summary.estimates.get(&row.metric);
    let value = value.map(|estimate| scaled(&estimate.median));
    let missing = || {
        let reason = summary.skipped.clone().or(summary.first_failure.clone());
        reason.unwrap_or_else(|| format!("no trial recorded {}", row.metric))
    };
    Price {
        name: treatment.label.clone(),
        group: row.group.clone(),
        treatment: Some(treatment.index),
        per: row.per.clone(),
        // A time per call or per byte, multiplied by a number of calls or bytes, is a time.
        unit: if unit.starts_with("ns/") {
            "ns".into()
        } else {
            unit
        },
        note: value.is_none().then(missing),
        value,
    }
}

fn of_derived(derived: &DerivedEstimate, group: Option<String>) -> Price {
    Price {
        name: derived.text.clone(),
        group,
        treatment: None,
        per: String::new(),
        unit: derived.unit.clone(),
        value: derived.estimate,
        note: derived.note.clone(),
    }
}

/// Names the smallest data cache that holds the buffer of a pointer chase, or memory; `None`
/// for anything else.
fn cache_of(
    treatment: &Treatment,
    context: &AnalysisContext,
    caches: &BTreeMap<String, u64>,
) -> Option<String> {
    let parameters = TreatmentParameters::new(context.experiment, treatment).ok()?;
    let size = match parameters.workload {
        Workload::Chase(chase) if chase.stride == ChaseStride::Line => chase.size_bytes,
        _ => return None,
    };
    let data = caches.iter().filter(|(name, _)| !name.ends_with('i'));
    let holding = data.filter(|(_, bytes)| **bytes >= size);
    Some(match holding.min_by_key(|(_, bytes)| **bytes) {
        Some((name, _)) => format!("in {name}"),
        None if caches.is_empty() => return None,
        None => "in memory".into(),
    })
}
