//! Published tables with the measured values beside them.

use std::collections::BTreeMap;
use std::iter::once;

use toll_stats::hodges_lehmann;

use super::CONFIDENCE;
use super::context::{AnalysisContext, column_log_ratios};
use super::model::{Estimate, MeasuredMean, PublishedGroup, PublishedRow, PublishedTable};
use super::summary::without_extremes;
use crate::reason::Reason;
use crate::spec::{Table, TableMean, TableQuantity, TableRow};

/// Fills all published tables of an experiment.
pub(super) fn fill_all(context: &AnalysisContext) -> Vec<PublishedTable> {
    let fill = |table: &Table| {
        let groups = table.quantities.iter().map(|group| {
            let filled = Group { context, group };
            filled.fill(table)
        });
        PublishedTable {
            title: table.title.clone(),
            report: table.report.clone(),
            relative_to: table.relative_to.clone(),
            groups: groups.collect(),
            note: table.note.clone(),
        }
    };
    context.experiment.tables.iter().map(fill).collect()
}

/// Source of the measured values of a group.
struct Group<'a> {
    context: &'a AnalysisContext<'a>,
    group: &'a TableQuantity,
}

impl Group<'_> {
    fn fill(&self, table: &Table) -> PublishedGroup {
        let group = self.group;
        let rows = group.rows.iter();
        let mut is_reference = rows.filter(|row| Some(&row.label) == table.relative_to.as_ref());
        let reference = is_reference.next();
        let (metric, unit) = match &group.per {
            Some(per) => (format!("{} / {per}", group.metric), String::new()),
            None => {
                let unit = self.context.metric(&group.metric).unit;
                (group.metric.clone(), unit)
            }
        };
        PublishedGroup {
            label: group.label.clone(),
            metric,
            unit,
            published_unit: group.unit.clone(),
            rows: group
                .rows
                .iter()
                .map(|row| self.row(row, reference, table.mean))
                .collect(),
        }
    }

    fn row(
        &self,
        row: &TableRow,
        reference: Option<&TableRow>,
        mean: Option<TableMean>,
    ) -> PublishedRow {
        let column = self.column(row);
        let values: Vec<f64> = column
            .iter()
            .flat_map(|column| column.values().copied())
            .collect();
        let is_measured = !values.is_empty();
        let ratio = |to: &TableRow| ratio(column.as_ref().ok()?, self.column(to).as_ref().ok()?);
        PublishedRow {
            printed: row.clone(),
            published_converted: row
                .published
                .and_then(|value| Some(value * self.group.scale?)),
            published_ratio: reference
                .and_then(|reference| Some(row.published? / reference.published?))
                .filter(|ratio| ratio.is_finite()),
            measured: is_measured
                .then(|| Estimate::from(&toll_stats::median_interval(&values, CONFIDENCE))),
            measured_mean: mean
                .filter(|_| is_measured)
                .map(|mean| mean_of(&values, mean)),
            measured_ratio: reference.and_then(ratio),
            missing: match &column {
                Ok(_) if is_measured => None,
                Ok(_) => Some(self.why_absent(row).to_string()),
                Err(reason) => Some(reason.to_string()),
            },
        }
    }

    fn why_absent(&self, row: &TableRow) -> Reason {
        let treatment = self.context.pick(&row.at).ok();
        let mut metrics = once(&self.group.metric).chain(&self.group.per);
        metrics
            .find_map(|metric| self.context.why_absent(metric, treatment.as_slice()))
            .unwrap_or_else(|| "no trial completed".into())
    }

    /// Returns the values of a row by block, or why no treatment corresponds to it.
    fn column(&self, row: &TableRow) -> Result<BTreeMap<u32, f64>, Reason> {
        if row.at.is_empty() {
            return Err("no treatment here corresponds to this row".into());
        }
        let treatment = self.context.pick(&row.at)?;
        let column = self.context.column(&self.group.metric, treatment);
        let Some(per) = &self.group.per else {
            return Ok(column.clone());
        };
        let per = self.context.column(per, treatment);
        let quotients = column.iter().filter_map(|(block, value)| {
            let quotient = value / per.get(block)?;
            quotient.is_finite().then_some((*block, quotient))
        });
        Ok(quotients.collect())
    }
}

fn ratio(of: &BTreeMap<u32, f64>, to: &BTreeMap<u32, f64>) -> Option<Estimate> {
    let logs = column_log_ratios(of, to).ok()?;
    let ratio = hodges_lehmann(&logs, CONFIDENCE).map(f64::exp);
    Some(Estimate::from(&ratio))
}

fn mean_of(values: &[f64], mean: TableMean) -> MeasuredMean {
    let kept = match mean {
        TableMean::All => values.to_vec(),
        TableMean::WithoutExtremes => without_extremes(values),
    };
    let dropped = values.len() - kept.len();
    MeasuredMean {
        mean: toll_stats::mean(&kept),
        standard_deviation: (kept.len() > 1).then(|| toll_stats::standard_deviation(&kept)),
        low: kept.iter().copied().fold(f64::INFINITY, f64::min),
        high: kept.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        kept: kept.len(),
        dropped: (mean == TableMean::WithoutExtremes).then_some(dropped),
    }
}
