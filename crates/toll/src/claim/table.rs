//! Published tables with the measured values beside them.

use toll_stats::stopped_interval;

use super::CONFIDENCE;
use super::contrast::pick;
use super::data::Data;
use super::model::{Estimate, FencedMean, PublishedRow, PublishedTable};
use super::summary::estimate;
use crate::plan::Treatment;
use crate::spec::{Experiment, Table, TableRow};

/// Fills all published tables of an experiment.
pub(super) fn fill_all(
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> Vec<PublishedTable> {
    let tables = experiment.tables.iter();
    tables
        .map(|table| fill(table, experiment, treatments, data))
        .collect()
}

fn fill(
    table: &Table,
    experiment: &Experiment,
    treatments: &[Treatment],
    data: &Data,
) -> PublishedTable {
    let reference = table
        .rows
        .iter()
        .find(|row| Some(&row.label) == table.relative_to.as_ref());
    let treatment_of = |row: &TableRow| match row.at.is_empty() {
        true => Err("nothing here stands for it".to_owned()),
        false => pick(&row.at, &experiment.factors, treatments),
    };
    let rows = table.rows.iter().map(|row| {
        let treatment = treatment_of(row);
        let measured = treatment.as_ref().ok().and_then(|index| {
            let values = data.values(&table.metric, *index);
            (!values.is_empty())
                .then(|| estimate(&toll_stats::median_interval(&values, CONFIDENCE)))
        });
        let measured_ratio = reference.and_then(|reference| {
            let (of, to) = (*treatment.as_ref().ok()?, treatment_of(reference).ok()?);
            ratio(table, data, of, to)
        });
        PublishedRow {
            label: row.label.clone(),
            published: row.published,
            published_converted: row.published.and_then(|value| Some(value * table.scale?)),
            published_text: row.published_text.clone(),
            published_deviation: row.published_deviation,
            measured_mean: treatment
                .as_ref()
                .ok()
                .filter(|_| row.published_deviation.is_some())
                .and_then(|index| fenced_mean(&data.values(&table.metric, *index))),
            published_ratio: reference
                .and_then(|reference| Some(row.published? / reference.published?)),
            missing: match (&measured, treatment) {
                (Some(_), _) => None,
                (None, Err(reason)) => Some(reason),
                (None, Ok(_)) => Some(
                    data.why_absent(&table.metric)
                        .unwrap_or_else(|| "no trial completed".into()),
                ),
            },
            measured,
            measured_ratio,
        }
    });
    PublishedTable {
        title: table.title.clone(),
        report: table.report.clone(),
        metric: table.metric.clone(),
        published_unit: table.published_unit.clone(),
        relative_to: table.relative_to.clone(),
        rows: rows.collect(),
        note: table.note.clone(),
    }
}

fn fenced_mean(values: &[f64]) -> Option<FencedMean> {
    let mean = (!values.is_empty()).then(|| toll_stats::fenced_mean(values))?;
    Some(FencedMean {
        mean: mean.mean,
        standard_deviation: (mean.kept > 1).then_some(mean.standard_deviation),
        kept: mean.kept,
        dropped: mean.dropped,
    })
}

fn ratio(table: &Table, data: &Data, of: usize, to: usize) -> Option<Estimate> {
    let logs = data.log_ratios(&table.metric, of, to).ok()?;
    Some(estimate(&stopped_interval(&logs, CONFIDENCE).map(f64::exp)))
}
