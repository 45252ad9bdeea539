//! The rows of an experiment, and what its treatments vary in them.

use std::collections::{BTreeMap, BTreeSet};

use super::Experiment;
use crate::spec::{Factor, Level, ROW, Row, WorkloadKind};

impl Experiment {
    /// Returns the row of a treatment by its levels; `None` in an experiment without rows.
    pub fn row(&self, levels: &BTreeMap<String, Level>) -> Option<&Row> {
        let name = levels.get(ROW)?;
        self.rows.iter().find(|row| row.name == name.text)
    }

    /// Returns the names of all levels that a treatment with these levels has.
    ///
    /// # Errors
    /// If the experiment has rows, and the levels belong to none.
    pub fn level_names(&self, levels: &BTreeMap<String, Level>) -> Result<BTreeSet<&str>, String> {
        let mut names: BTreeSet<&str> = match (self.rows.as_slice(), self.row(levels)) {
            ([], _) => {
                let factors = self.factors.iter().map(|factor| factor.name.as_str());
                let fixed = self.workload.parameters.keys().map(String::as_str);
                factors.chain(fixed).collect()
            }
            (_, Some(row)) => {
                let factors = self.factors_of(row).map(|factor| factor.name.as_str());
                let fixed = row.parameters.keys().map(String::as_str);
                factors.chain(fixed).chain([ROW]).collect()
            }
            (_, None) => return Err("it belongs to no row of the experiment".into()),
        };
        let guest = self.guest.iter().flat_map(|guest| guest.parameters.keys());
        names.extend(guest.map(String::as_str));
        Ok(names)
    }

    /// Returns the kind of workload of a treatment, by its levels.
    pub fn kind(&self, levels: &BTreeMap<String, Level>) -> WorkloadKind {
        self.row(levels).map_or(self.workload.kind, |row| row.kind)
    }

    /// Returns the factors that vary at some levels, including the factor `row`.
    pub(crate) fn factors_at(&self, levels: &BTreeMap<String, Level>) -> Vec<&Factor> {
        match self.row(levels) {
            Some(row) => self
                .factor(ROW)
                .into_iter()
                .chain(self.factors_of(row))
                .collect(),
            None => self.factors.iter().collect(),
        }
    }

    /// Returns the factors that vary within a row. A factor that rows list in `vary`
    /// varies in those rows alone; any other varies in all.
    pub(crate) fn factors_of<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Factor> {
        let is_picked = |name: &String| self.rows.iter().any(|other| other.vary.contains(name));
        self.factors.iter().filter(move |factor| {
            factor.name != ROW && (row.vary.contains(&factor.name) || !is_picked(&factor.name))
        })
    }
}
