//! Rows: treatments of one experiment with workloads of different kinds.
//!
//! A level of the factor `row` names a row, as a level of the factor `command`
//! names a command. The result of a row is a line of a price list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::level::Levels;
use super::reader::Reader;
use super::{Factor, Level, SpecError, WorkloadKind, WorkloadSpec};

/// The factor whose levels are names of rows.
pub const ROW: &str = "row";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Label for people, and the level that selects the row.
    pub name: String,
    pub kind: WorkloadKind,
    /// Parameters of the row's workload that are held fixed.
    pub parameters: BTreeMap<String, Level>,
    /// Factors that vary in this row. Each factor varies only in the rows that list it here.
    pub vary: Vec<String>,
    /// Heading of the price list under which the row is listed. A row without a heading is measured
    /// but not listed.
    pub group: Option<String>,
    /// Metric that is the row's price.
    pub metric: String,
    /// Factor by which the metric is multiplied to give the price.
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
    /// Reads one of the rows. Settings that neither the row nor its table gives
    /// come from the workload. So do parameters, if the row has the same kind of
    /// workload.
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

/// Makes the factor `row` of a file that does not define this factor. Its levels are all rows, or
/// the rows of a profile.
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

#[cfg(test)]
mod tests;
