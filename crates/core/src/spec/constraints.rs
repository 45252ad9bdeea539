//! Finds the treatments that the constraints of an experiment leave out.

use std::collections::BTreeSet;

use super::expression::{Expression, Word};
use super::problem::{Problem, problem};
use super::{Experiment, Level, ROW, Row, Selector};

/// Constraints of an experiment, parsed once for all of its treatments.
pub(crate) struct Constraints<'a> {
    experiment: &'a Experiment,
    /// Each constraint with its text.
    all: Vec<(&'a str, Expression)>,
    /// Names of factors and fixed parameters, including those of rows.
    names: BTreeSet<&'a str>,
}

impl<'a> Constraints<'a> {
    pub fn new(experiment: &'a Experiment, texts: &'a [String]) -> Result<Self, String> {
        let read = |text: &'a String| Ok((text.as_str(), Expression::parse(text)?));
        let guest = experiment.guest.iter();
        let fixed = experiment.rows.iter().map(|row| &row.parameters);
        let fixed = fixed.chain([&experiment.workload.parameters]);
        let fixed = fixed.chain(guest.map(|guest| &guest.parameters));
        let factors = experiment.factors.iter().map(|factor| &factor.name);
        Ok(Self {
            experiment,
            all: texts.iter().map(read).collect::<Result<_, String>>()?,
            names: factors
                .chain(fixed.flat_map(|parameters| parameters.keys()))
                .map(String::as_str)
                .collect(),
        })
    }

    /// Whether a word is a name, not a value.
    pub fn is_name(&self, word: &str) -> bool {
        self.names.contains(word)
    }

    /// Returns the first constraint that leaves out all treatments with these levels. A constraint
    /// leaves out none if it depends on a level that is not given, or that the treatments' row does
    /// not have.
    pub fn against(&self, levels: &Selector) -> Result<Option<&'a str>, String> {
        let lookup = |word: &str| match levels.get(word) {
            Some(level) => Word::Level(level),
            None if !self.is_name(word) => Word::Value,
            None => self.fixed(word, levels).map_or(Word::Open, Word::Level),
        };
        for (text, constraint) in &self.all {
            if constraint.holds(&lookup)? == Some(false) {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Refuses a row that a constraint leaves without any treatment.
    pub fn check_rows(&self) -> Result<(), Problem> {
        for Row { name, .. } in &self.experiment.rows {
            let row = Selector::from([(ROW.to_owned(), Level::new(name))]);
            if let Some(text) = self.against(&row)? {
                let why = format!(
                    "the constraint {text:?} excludes it; change the row or the constraint"
                );
                return Err(problem(name, format!("cannot use row {name:?}: {why}")));
            }
        }
        Ok(())
    }

    /// Returns the value at which treatments with these levels hold a parameter fixed.
    fn fixed(&self, name: &str, levels: &Selector) -> Option<&Level> {
        let experiment = self.experiment;
        let of_work = match experiment.rows.as_slice() {
            [] => experiment.workload.parameters.get(name),
            _ => experiment.row(levels)?.parameters.get(name),
        };
        of_work.or_else(|| experiment.guest.as_ref()?.parameters.get(name))
    }

    /// Returns why no treatment can have these levels, as far as the levels alone show it.
    pub fn why_none(&self, levels: &Selector) -> Result<Option<String>, String> {
        let row = self.experiment.row(levels);
        let why = row.and_then(|row| self.why_not_of_row(row, levels));
        let against = |text| format!("the constraint {text:?} excludes them");
        Ok(match why {
            Some(why) => Some(why),
            None => self.against(levels)?.map(against),
        })
    }

    fn why_not_of_row(&self, row: &Row, levels: &Selector) -> Option<String> {
        let varies = |name: &str| {
            let mut factors = self.experiment.factors_of(row);
            factors.any(|factor| factor.name == name) || name == ROW
        };
        let name = &row.name;
        let mut others = levels.iter().filter(|(factor, _)| !varies(factor));
        others.find_map(|(factor, level)| match row.parameters.get(factor) {
            Some(fixed) if fixed.same(level) => None,
            Some(fixed) => Some(format!("row {name:?} has {factor}={}", fixed.text)),
            None if self.experiment.is_of_guest(factor) => None,
            None => Some(format!("row {name:?} has no {factor}")),
        })
    }
}

#[cfg(test)]
mod tests;
