//! The treatment that a selector picks.

use super::treatment::Treatment;
use crate::reason::Reason;
use crate::spec::{Factor, Selector};

/// Returns the one treatment, twins excluded, that a selector picks. Fails with the reason
/// if it picks none or several.
pub fn find(
    treatments: &[Treatment],
    selector: &Selector,
    factors: &[Factor],
) -> Result<usize, Reason> {
    let mut found = picked(treatments, selector);
    match found.next() {
        None => Err(why_none(selector, factors)),
        Some(only) => match left_open(treatments, selector) {
            None => Ok(only.index),
            Some(open) => Err(format!("{} names no level of {open}", describe(selector)).into()),
        },
    }
}

fn picked<'a>(
    treatments: &'a [Treatment],
    selector: &'a Selector,
) -> impl Iterator<Item = &'a Treatment> {
    let is_picked =
        |treatment: &&Treatment| treatment.twin_of.is_none() && treatment.matches(selector);
    treatments.iter().filter(is_picked)
}

/// Returns a factor of which a selector should name a level, since it picks several
/// treatments.
pub(super) fn left_open<'a>(
    treatments: &'a [Treatment],
    selector: &'a Selector,
) -> Option<&'a str> {
    let mut found = picked(treatments, selector);
    let (first, second) = (found.next()?, found.next()?);
    first.first_difference(second)
}

fn why_none(selector: &Selector, factors: &[Factor]) -> Reason {
    for (name, level) in selector {
        let factor = factors.iter().find(|factor| factor.name == *name);
        if let Some(factor) = factor
            && factor.find(level).is_none()
        {
            let what = format!("{name}={}", factor.label(level));
            return Reason::LeftOut { what };
        }
    }
    let what = format!("treatment {}", describe(selector));
    Reason::LeftOut { what }
}

/// Describes a selector, as in `a=1 b=2`.
pub fn describe(selector: &Selector) -> String {
    if selector.is_empty() {
        return "(any)".into();
    }
    let parts: Vec<_> = selector
        .iter()
        .map(|(name, level)| format!("{name}={}", level.text))
        .collect();
    parts.join(" ")
}
