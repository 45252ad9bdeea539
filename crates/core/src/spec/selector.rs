//! Selectors of treatments.

use std::collections::BTreeMap;

use super::Level;

/// Levels by factor name, which select treatments.
pub type Selector = BTreeMap<String, Level>;

/// Adds levels of factors that a selector does not name yet.
pub(super) fn join(selector: &mut Selector, at: &Selector) {
    for (name, level) in at {
        selector
            .entry(name.clone())
            .or_insert_with(|| level.clone());
    }
}
