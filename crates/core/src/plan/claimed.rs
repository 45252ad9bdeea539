//! Which treatments the claims of an experiment need.

use std::collections::BTreeSet;

use super::find::find;
use super::treatment::Treatment;
use crate::spec::{Derived, Experiment, Level, Test};

/// Keeps only the treatments that claims compare, and renumbers them. Keeps all treatments if no
/// claim compares any, for instance because the profile's levels leave every claim out.
pub fn keep(experiment: &Experiment, mut treatments: Vec<Treatment>) -> Vec<Treatment> {
    let wanted = claimed(experiment, &treatments);
    if !wanted.is_empty() {
        treatments.retain(|treatment| wanted.contains(&treatment.index));
        for (index, treatment) in treatments.iter_mut().enumerate() {
            treatment.index = index;
        }
    }
    treatments
}

fn claimed(experiment: &Experiment, treatments: &[Treatment]) -> BTreeSet<usize> {
    let claims = experiment.claims.iter();
    claims
        .flat_map(|claim| of_claim(experiment, &claim.test(), treatments))
        .collect()
}

/// Returns the indices of the treatments that a claim compares.
pub fn of_claim(experiment: &Experiment, test: &Test<'_>, treatments: &[Treatment]) -> Vec<usize> {
    match test {
        Test::Ratio(contrast) => {
            let per = contrast.per.into_iter().flat_map(|(of, to)| [of, to]);
            let sides = [contrast.of, contrast.to].into_iter().chain(per);
            let picked = sides.map(|side| find(treatments, side, &experiment.factors));
            picked.filter_map(Result::ok).collect()
        }
        Test::Derived(id) => {
            let derived = experiment.derived.iter().filter(|one| one.id == *id);
            derived
                .flat_map(|one| of_derived(one, treatments))
                .collect()
        }
        Test::Never(_) => Vec::new(),
    }
}

fn of_derived(derived: &Derived, treatments: &[Treatment]) -> Vec<usize> {
    let sides = derived.selectors();
    let level = derived.kind.level();
    let level = level.filter(|_| derived.kind.needs_only_its_level());
    let is_among = |own: &Level| match level {
        Some(level) => own.same(level),
        None => derived.among.is_empty() || derived.among.iter().any(|one| one.same(own)),
    };
    let is_needed = |treatment: &&Treatment| {
        let level = treatment.levels.get(&derived.factor);
        sides.iter().any(|side| treatment.matches(side)) && level.is_some_and(is_among)
    };
    let needed = treatments.iter().filter(is_needed);
    needed.map(|treatment| treatment.index).collect()
}
