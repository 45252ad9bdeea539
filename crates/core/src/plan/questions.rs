//! Which treatments each question of a run compares.

use super::{Treatment, claimed, pairs};
use crate::spec::Experiment;

/// Returns the treatments that each claim compares or, without claims, each treatment with
/// its reference.
pub(super) fn compared(experiment: &Experiment, treatments: &[Treatment]) -> Vec<Vec<usize>> {
    let claims = experiment.claims.iter();
    let of_claims = claims.map(|claim| claimed::of_claim(experiment, &claim.test(), treatments));
    let of_claims: Vec<Vec<usize>> = of_claims.filter(|needed| !needed.is_empty()).collect();
    if !of_claims.is_empty() {
        return of_claims;
    }
    let pairs = pairs(experiment, treatments);
    if !pairs.is_empty() {
        return pairs.into_iter().map(|(one, to)| vec![to, one]).collect();
    }
    // A reference alone is compared with its twin, which no block may leave out.
    let is_reference = |one: &&Treatment| {
        experiment
            .reference
            .as_ref()
            .is_some_and(|at| one.matches(at))
    };
    let own = treatments.iter().filter(|one| one.twin_of.is_none());
    let others = own.filter(|one| !is_reference(one));
    others.map(|one| vec![one.index]).collect()
}
