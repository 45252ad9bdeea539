//! One combination of levels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::spec::guest::{GuestParameters, IN_GUEST, PLACE};
use crate::spec::{Factor, Level, Selector};

/// Boot parameters of a guest: level by name, of all parameters that need a boot.
pub type Boot = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Treatment {
    pub index: usize,
    /// Level by name, of factors and of fixed parameters.
    pub levels: BTreeMap<String, Level>,
    /// The levels that vary in this plan, in readable form: `method=page sink=null`.
    pub label: String,
    /// The treatment of which this is the A/A twin.
    pub twin_of: Option<usize>,
    /// Why the treatment cannot run here.
    pub skipped: Option<Reason>,
}

impl Treatment {
    pub(super) fn new(index: usize, factors: &[&Factor], levels: BTreeMap<String, Level>) -> Self {
        let varying: Vec<&&Factor> = factors
            .iter()
            .filter(|factor| factor.levels.len() > 1)
            .collect();
        let label = match varying.as_slice() {
            [] => match factors.first() {
                Some(factor) => factor.label(&levels[&factor.name]),
                None => "only treatment".to_owned(),
            },
            [only] => only.label(&levels[&only.name]),
            several => {
                let part = |factor: &&&Factor| {
                    format!("{}={}", factor.name, factor.label(&levels[&factor.name]))
                };
                several.iter().map(part).collect::<Vec<_>>().join(" ")
            }
        };
        Self {
            index,
            levels,
            label,
            twin_of: None,
            skipped: None,
        }
    }

    pub(super) fn twin(&self, index: usize) -> Self {
        Self {
            index,
            label: format!("{} (A/A twin)", self.label),
            twin_of: Some(self.index),
            ..self.clone()
        }
    }

    /// Whether the treatment has every level that a selector names.
    pub fn matches(&self, selector: &Selector) -> bool {
        selector.iter().all(|(name, wanted)| {
            self.levels
                .get(name)
                .is_some_and(|level| level.same(wanted))
        })
    }

    /// Returns the boot of the guest that the treatment runs in; `None` on this machine.
    pub fn boot(&self) -> Option<Boot> {
        let place = self.levels.get(PLACE)?;
        (place.text == IN_GUEST).then(|| {
            let known = GuestParameters::names();
            known
                .filter_map(|name| {
                    let level = self.levels.get(name)?;
                    Some((name.to_owned(), level.text.clone()))
                })
                .collect()
        })
    }

    pub(super) fn first_difference(&self, other: &Treatment) -> Option<&str> {
        self.levels
            .iter()
            .find(|(name, level)| other.levels.get(*name).is_none_or(|one| !one.same(level)))
            .map(|(name, _)| name.as_str())
    }
}
