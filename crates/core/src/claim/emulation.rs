//! Times of guests whose instructions QEMU translates.
//!
//! The kernel of such a guest counts faults, calls and blocks as any other kernel does. But its
//! times are a property of the translator, which models no cache and no TLB. What is cheap on a CPU
//! may be expensive under translation. So such times are shown but never judged.

use std::collections::BTreeSet;

use super::metric::describe;
use crate::plan::{self, Treatment};
use crate::run::BootRecord;
use crate::spec::{Claim, Derived, Experiment, Test};

/// Treatments that ran in a guest under TCG.
pub(super) fn emulated(treatments: &[Treatment], boots: &[BootRecord]) -> BTreeSet<usize> {
    let ran_there = |treatment: &&Treatment| {
        treatment.boot().is_some_and(|levels| {
            boots
                .iter()
                .any(|boot| boot.levels == levels && boot.accelerator.as_deref() == Some("tcg"))
        })
    };
    let found = treatments.iter().filter(ran_there);
    found.map(|treatment| treatment.index).collect()
}

/// Returns the treatments that ran in a guest under TCG and whose counts no claim judges.
pub fn unjudged(
    experiment: &Experiment,
    treatments: &[Treatment],
    boots: &[BootRecord],
) -> BTreeSet<usize> {
    let is_counted = |test: &Test<'_>| match test {
        Test::Ratio(contrast) => !is_time(experiment, contrast.metric),
        Test::Derived(id) => {
            let mut derived = experiment.derived.iter().filter(|one| one.id == *id);
            derived.any(|one| !is_of_times(experiment, one))
        }
        Test::Never(_) => false,
    };
    let claims = experiment.claims.iter().map(Claim::test);
    let counted: BTreeSet<usize> = claims
        .filter(|test| is_counted(test))
        .flat_map(|test| plan::of_claim(experiment, &test, treatments))
        .collect();
    let is_needed = |index: &usize| {
        let original = treatments[*index].twin_of.unwrap_or(*index);
        counted.contains(&original)
    };
    let mut found = emulated(treatments, boots);
    found.retain(|index| !is_needed(index));
    found
}

/// Returns whether a derived quantity is computed from a time or a rate.
pub(super) fn is_of_times(experiment: &Experiment, derived: &Derived) -> bool {
    let further = derived.kind.further_metrics().into_iter().flatten();
    let mut metrics = std::iter::once(derived.metric.as_str()).chain(further);
    metrics.any(|metric| is_time(experiment, metric))
}

/// Returns whether a metric is a time or a rate.
pub fn is_time(experiment: &Experiment, metric: &str) -> bool {
    let unit = describe(experiment, metric).unit;
    unit == "ns" || unit.starts_with("ns/") || unit.ends_with("/s") || unit == "s"
}

#[cfg(test)]
mod tests;
