//! Checks of an experiment's rows.

use crate::spec::problem::{Problem, problem};
use crate::spec::{Experiment, Level, ROW};

/// Checks rows together with factors.
pub(super) fn check(experiment: &Experiment) -> Result<(), Problem> {
    let rows = &experiment.rows;
    for row in rows {
        let wrong =
            |why: String| problem(&row.name, format!("cannot use row {:?}: {why}", row.name));
        if let Some(name) = row
            .vary
            .iter()
            .find(|name| experiment.factor(name).is_none())
        {
            return Err(wrong(format!(
                "it varies {name}, and there is no such factor"
            )));
        }
        for factor in experiment.factors_of(row) {
            if row.parameters.contains_key(&factor.name) {
                let name = &factor.name;
                return Err(wrong(format!("it holds the factor {name} fixed")));
            }
            if !experiment.is_of_guest(&factor.name) {
                for level in &factor.levels {
                    let checked = row.kind.check(&factor.name, &level.text);
                    checked.map_err(|message| problem(&level.text, message))?;
                }
            }
        }
    }
    let Some(factor) = experiment.factor(ROW).filter(|_| !rows.is_empty()) else {
        return Ok(());
    };
    let is_row = |level: &&Level| rows.iter().any(|row| row.name == level.text);
    match factor.levels.iter().find(|level| !is_row(level)) {
        None => Ok(()),
        Some(level) => {
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            Err(problem(
                &level.text,
                format!(
                    "cannot use row {:?}: there is no row of this name; there are {}",
                    level.text,
                    names.join(", ")
                ),
            ))
        }
    }
}
