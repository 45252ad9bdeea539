//! Units and better sides of a run's metrics.

use std::collections::BTreeMap;

use super::context::AnalysisContext;
use super::model::Metric;
use crate::spec::Experiment;

/// Describes all metrics of a run.
pub(super) fn describe_all(context: &AnalysisContext) -> BTreeMap<String, Metric> {
    context
        .metrics()
        .chain(context.experiment.compared_metrics())
        .map(|name| (name.to_owned(), context.metric(name)))
        .collect()
}

/// Describes one metric.
pub(super) fn describe(experiment: &Experiment, name: &str) -> Metric {
    if let Some(parsed) = experiment.parsed_metrics.get(name) {
        return Metric {
            unit: parsed.unit.clone(),
            better: parsed.better,
        };
    }
    let (unit, better) = toll_wire::unit_and_better(name);
    Metric {
        unit: unit.into(),
        better,
    }
}
