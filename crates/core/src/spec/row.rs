//! Rows: treatments of one experiment with workloads of different kinds.
//!
//! A level of the factor `row` names a row, as a level of the factor `command`
//! names a command. The result of a row is a line of a price list.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::file::Reader;
use super::level::Levels;
use super::validate::{Problem, problem};
use super::{Experiment, Factor, Level, SpecError, WorkloadKind, WorkloadSpec};

/// The factor whose levels are names of rows.
pub const ROW: &str = "row";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Label for people, and the level that selects the row.
    pub name: String,
    pub kind: WorkloadKind,
    /// Parameters of its workload that are held fixed.
    pub parameters: BTreeMap<String, Level>,
    /// Factors that vary in this row. Each varies only in the rows that list it here.
    pub vary: Vec<String>,
    /// Heading of the price list under which it is listed; a row without one is
    /// measured and not listed.
    pub group: Option<String>,
    /// Metric that is its price.
    pub metric: String,
    /// The price is the metric times this.
    pub times: f64,
    /// Unit of work that the price is for, such as `call`.
    pub per: String,
}

/// A table of rows in a file, with the settings that they share.
#[derive(Debug, Deserialize)]
pub(super) struct RowsTable {
    group: Option<String>,
    kind: Option<WorkloadKind>,
    pub list: Vec<Spanned<RowTable>>,
    #[serde(flatten)]
    shared: Shared,
}

#[derive(Debug, Deserialize)]
pub(super) struct RowTable {
    pub name: String,
    #[serde(default)]
    vary: Vec<String>,
    #[serde(flatten)]
    own: Shared,
}

/// Settings that a row may share with others of its table.
#[derive(Debug, Clone, Deserialize)]
struct Shared {
    metric: Option<String>,
    times: Option<f64>,
    per: Option<String>,
    #[serde(flatten)]
    parameters: BTreeMap<String, Level>,
}

impl RowsTable {
    /// Reads one of the rows. What neither it nor its table gives comes from the
    /// workload; so do parameters, if the row is of the same kind.
    pub fn row(
        &self,
        table: RowTable,
        workload: &WorkloadSpec,
        metric_of_file: &str,
    ) -> Result<Row, String> {
        let (name, own) = (table.name, table.own);
        let wrong = |why: &str| Err(format!("cannot use row {name:?}: {why}"));
        let kind = self.kind.unwrap_or(workload.kind);
        if kind == WorkloadKind::Command {
            return wrong("a command cannot be a row; put it under [workload.commands]");
        }
        let mut parameters = if kind == workload.kind {
            workload.parameters.clone()
        } else {
            BTreeMap::new()
        };
        parameters.extend(self.shared.parameters.clone());
        parameters.extend(own.parameters);
        for (parameter, level) in &parameters {
            kind.check(parameter, &level.text)?;
        }
        let times = own.times.or(self.shared.times).unwrap_or(1.0);
        if !(times.is_finite() && times > 0.0) {
            return wrong("times must be a number above 0");
        }
        if let Some(varied) = table
            .vary
            .iter()
            .find(|name| parameters.contains_key(*name))
        {
            return wrong(&format!("it varies {varied}, which it also holds fixed"));
        }
        let metric = own.metric.or_else(|| self.shared.metric.clone());
        let per = own.per.or_else(|| self.shared.per.clone());
        Ok(Row {
            name,
            kind,
            parameters,
            vary: table.vary,
            group: self.group.clone(),
            metric: metric
                .unwrap_or_else(|| kind.price_metric().unwrap_or(metric_of_file).to_owned()),
            times,
            per: per.unwrap_or_default(),
        })
    }
}

/// Makes the factor `row` of a file that does not define it: all rows, or those of a profile.
pub(super) fn factor_of_rows(rows: &[Row], chosen: Option<&Levels>) -> Result<Factor, String> {
    let all = Levels::List(rows.iter().map(|row| Level::new(&row.name)).collect());
    let (levels, is_size) = chosen.unwrap_or(&all).read()?;
    Factor::new(ROW, levels, is_size)
}

impl Reader<'_> {
    pub(super) fn rows(
        &self,
        tables: Vec<RowsTable>,
        workload: &WorkloadSpec,
        metric: &str,
    ) -> Result<Vec<Row>, SpecError> {
        let mut rows: Vec<Row> = Vec::new();
        for mut table in tables {
            for row in std::mem::take(&mut table.list) {
                let row = self.at(row, |row| {
                    let row = table.row(row, workload, metric)?;
                    if rows.iter().any(|other| other.name == row.name) {
                        Err(format!(
                            "cannot use row {:?}: its name is given twice",
                            row.name
                        ))
                    } else {
                        Ok(row)
                    }
                })?;
                rows.push(row);
            }
        }
        Ok(rows)
    }
}

impl Experiment {
    /// Returns the row of a treatment by its levels; `None` in an experiment without rows.
    pub fn row(&self, levels: &BTreeMap<String, Level>) -> Option<&Row> {
        let name = levels.get(ROW)?;
        self.rows.iter().find(|row| row.name == name.text)
    }

    /// Returns the names of all levels that a treatment with these levels has.
    ///
    /// # Errors
    /// If they belong to no row of an experiment with rows.
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
                return Err(wrong(format!("it holds {name} fixed, which is a factor")));
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

#[cfg(test)]
mod tests;
