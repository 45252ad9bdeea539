//! Summaries of the guests of a run.

use super::model::GuestSummary;
use crate::run::BootRecord;

/// Groups boots by their boot parameters. The groups are in the order of their first boots.
pub(super) fn summarise(boots: &[BootRecord]) -> Vec<GuestSummary> {
    let mut kinds: Vec<Vec<&BootRecord>> = Vec::new();
    for boot in boots {
        match kinds.iter_mut().find(|kind| kind[0].levels == boot.levels) {
            Some(kind) => kind.push(boot),
            None => kinds.push(vec![boot]),
        }
    }
    kinds.iter().map(|kind| summary(kind)).collect()
}

fn summary(boots: &[&BootRecord]) -> GuestSummary {
    let up: Vec<&&BootRecord> = boots
        .iter()
        .filter(|boot| boot.accelerator.is_some())
        .collect();
    let times: Vec<f64> = up.iter().map(|boot| boot.boot_ns as f64).collect();
    let errors = || boots.iter().filter_map(|boot| boot.error.clone());
    GuestSummary {
        levels: boots[0].levels.clone(),
        accelerator: up.first().and_then(|boot| boot.accelerator.clone()),
        facts: up
            .first()
            .map_or_else(Default::default, |boot| boot.facts.clone()),
        boots: boots.len(),
        failed: errors().count(),
        first_error: errors().next(),
        boot_ns: (!times.is_empty()).then(|| toll_stats::median(&times)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn boot(kernel: &str, boot_ns: u64, error: Option<&str>) -> BootRecord {
        BootRecord {
            boot_ns,
            levels: BTreeMap::from([("kernel".into(), kernel.into())]),
            accelerator: error.is_none().then(|| "tcg".into()),
            error: error.map(Into::into),
            ..BootRecord::default()
        }
    }

    #[test]
    fn boots_of_one_kind_are_told_together() {
        let guests = summarise(&[
            boot("toll", 3, None),
            boot("stock", 9, Some("cannot boot")),
            boot("toll", 5, None),
            boot("toll", 7, Some("it hung")),
        ]);
        assert_eq!(guests.len(), 2);
        assert_eq!((guests[0].boots, guests[0].failed), (3, 1));
        assert_eq!(guests[0].boot_ns, Some(4.0));
        assert_eq!(guests[0].accelerator.as_deref(), Some("tcg"));
        assert_eq!(guests[1].accelerator, None);
        assert_eq!(guests[1].boot_ns, None);
        assert_eq!(guests[1].first_error.as_deref(), Some("cannot boot"));
    }
}
