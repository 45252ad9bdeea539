//! Which treatments are compared, and with which.

use std::collections::BTreeMap;

use super::Treatment;
use crate::spec::{Experiment, Selector};

/// Returns each compared treatment with the one that it is compared with.
///
/// A reference that picks one treatment is compared with all others. A reference that names levels
/// of some factors may pick several treatments. Each treatment is then compared with the one that
/// has these levels and is otherwise the same.
pub fn pairs(experiment: &Experiment, treatments: &[Treatment]) -> Vec<(usize, usize)> {
    let Some(reference) = &experiment.reference else {
        return Vec::new();
    };
    let own = || treatments.iter().filter(|one| one.twin_of.is_none());
    let picked: Vec<&Treatment> = own().filter(|one| one.matches(reference)).collect();
    let others = own().filter(|one| !one.matches(reference));
    if let [only] = picked.as_slice() {
        return others.map(|one| (one.index, only.index)).collect();
    }
    let by_rest: BTreeMap<_, usize> = picked
        .iter()
        .map(|one| (rest(one, reference), one.index))
        .collect();
    let partner = |one: &Treatment| by_rest.get(&rest(one, reference)).copied();
    others
        .filter_map(|one| Some((one.index, partner(one)?)))
        .collect()
}

/// Returns the levels of factors that a selector does not name.
fn rest<'a>(treatment: &'a Treatment, selector: &Selector) -> Vec<(&'a str, &'a str)> {
    let levels = treatment.levels.iter();
    levels
        .filter(|(name, _)| !selector.contains_key(*name))
        .map(|(name, level)| (name.as_str(), level.text.as_str()))
        .collect()
}
