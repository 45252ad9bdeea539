//! Refuses selectors that pick several treatments where one is meant.

use super::find::left_open;
use super::{Plan, Treatment, describe, pairs};
use crate::spec::{self, Derived, Experiment, Problem, Selector, SpecError, Test};

/// Reads an experiment file that is to be run unchanged. Also refuses errors that only its
/// plan shows.
pub fn read(text: &str, origin: &str, profile: &str) -> Result<Experiment, SpecError> {
    let experiment = spec::parse(text, origin, profile)?;
    let planned = Plan::new(&experiment, 0).map_err(Problem::from);
    let checked = planned.and_then(|plan| check(&experiment, &plan.treatments));
    match checked {
        Ok(()) => Ok(experiment),
        Err(problem) => Err(spec::located(text, origin, problem)),
    }
}

fn check(experiment: &Experiment, treatments: &[Treatment]) -> Result<(), Problem> {
    let check = |what: &str, name: &str, selector: &Selector| {
        let Some(open) = left_open(treatments, selector) else {
            return Ok(());
        };
        let selector = describe(selector);
        Err(Problem {
            message: format!(
                "cannot use {what} {name}: {selector} picks several treatments; name a level of {open}"
            ),
            mention: Some(name.to_owned()),
        })
    };
    if let Some(reference) = &experiment.reference
        && treatments.len() > 1
        && pairs(experiment, treatments).is_empty()
        && treatments.iter().any(|one| one.matches(reference))
    {
        let reference = describe(reference);
        return Err(Problem {
            message: format!(
                "cannot use the reference {reference}: nothing can be compared with it; name a \
                 level of a factor that has other levels"
            ),
            mention: Some("reference".into()),
        });
    }
    for claim in &experiment.claims {
        if let Test::Ratio(contrast) = claim.test() {
            let mut sides = contrast.sides();
            sides.try_for_each(|side| check("claim", &claim.id, side))?;
        }
    }
    for derived in &experiment.derived {
        let mut selectors = selectors_of(derived, experiment).into_iter();
        selectors.try_for_each(|at| check("derived quantity", &derived.id, &at))?;
    }
    for table in &experiment.tables {
        let mut rows = table.quantities.iter().flat_map(|one| &one.rows);
        rows.try_for_each(|row| {
            if row.at.is_empty() {
                Ok(())
            } else {
                check("table", &table.title, &row.at)
            }
        })?;
    }
    for figure in &experiment.figures {
        let mut groups = figure.groups.iter();
        groups.try_for_each(|group| check("figure", &figure.title, &group.at))?;
    }
    Ok(())
}

/// Returns selectors of the treatments along a quantity's factor.
fn selectors_of(derived: &Derived, experiment: &Experiment) -> Vec<Selector> {
    let factor = [derived.factor.clone()];
    let along = |side: &Selector| experiment.combinations(&factor, side);
    derived.selectors().into_iter().flat_map(along).collect()
}
