//! Metrics of a run: their units, their better sides, and the metrics that are compared without a
//! request.

use toll_wire::{Role, metrics_with};

use super::model::Metric;
use crate::spec::{Experiment, WorkloadKind};

/// Processor time, which can decide on a busy machine when wall-clock time cannot.
pub const CPU_TIME: &str = "cpu_ns";

/// Wall-clock time, which also grows if commands wait longer.
pub const WALL_TIME: &str = "duration_ns";

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

/// Returns the time of commands that is compared without a request: wall-clock time if only
/// processor time is requested, else processor time. `None` if both are requested.
pub(super) fn other_time(experiment: &Experiment) -> Option<&'static str> {
    let is_named = |name: &str| experiment.compared_metrics().any(|one| one == name);
    match (is_named(CPU_TIME), is_named(WALL_TIME)) {
        _ if experiment.workload.kind != WorkloadKind::Command => None,
        (false, _) => Some(CPU_TIME),
        (true, false) => Some(WALL_TIME),
        (true, true) => None,
    }
}

/// Resources that the kernel reports for commands, except metrics that are compared anyway.
pub(super) fn resources(experiment: &Experiment) -> Vec<&'static str> {
    let is_shown = |name: &&str| {
        let mut compared = experiment.compared_metrics();
        experiment.workload.kind == WorkloadKind::Command && compared.all(|one| one != *name)
    };
    let others = metrics_with(Role::Resource).map(|resource| resource.name);
    let others = others.filter(|name| *name != CPU_TIME && is_shown(name));
    other_time(experiment).into_iter().chain(others).collect()
}
