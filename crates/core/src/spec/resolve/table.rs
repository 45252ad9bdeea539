//! Published tables.

use super::joined;
use crate::spec::raw::{RawTable, RawTableQuantity};
use crate::spec::{Selector, Table, TableGroup, TableRow};

pub(super) fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale > 0.0
}

pub(super) fn table_of(
    raw: &RawTable,
    metric: &str,
    report: Option<&str>,
) -> Result<Table, String> {
    let cannot = |why: &str| format!("cannot use table {:?}: {why}", raw.title);
    let is_matrix = !(raw.conditions.is_empty() && raw.quantities.is_empty());
    let groups = match (raw.rows.is_empty(), is_matrix) {
        (false, false) => vec![rows_of_one_quantity(raw, metric).map_err(|why| cannot(&why))?],
        (true, true) => {
            if raw.metric.is_some() || raw.unit.is_some() || raw.scale.is_some() {
                return Err(cannot(
                    "each of the quantities has its metric, unit and scale",
                ));
            }
            let groups = raw.quantities.iter().map(|one| conditions_of(raw, one));
            groups
                .collect::<Result<_, _>>()
                .map_err(|why| cannot(&why))?
        }
        _ => return Err(cannot("it has either rows, or conditions and quantities")),
    };
    let groups: Vec<TableGroup> = groups;
    let has = |label: &String| {
        groups
            .iter()
            .all(|group| group.rows.iter().any(|row| row.label == *label))
    };
    if let Some(label) = &raw.relative_to
        && !has(label)
    {
        return Err(format!(
            "cannot relate table to row {label:?}: there is no such row"
        ));
    }
    for group in &groups {
        check_group(group).map_err(|why| cannot(&why))?;
    }
    Ok(Table {
        title: raw.title.clone(),
        report: raw
            .report
            .as_deref()
            .or(report)
            .unwrap_or_default()
            .to_owned(),
        relative_to: raw.relative_to.clone(),
        mean: raw.mean,
        note: raw.note.clone(),
        groups,
    })
}

fn rows_of_one_quantity(raw: &RawTable, metric: &str) -> Result<TableGroup, String> {
    let rows = raw.rows.iter().map(|row| TableRow {
        label: row.label.clone(),
        at: row
            .at
            .as_ref()
            .map_or_else(Selector::new, |at| joined(at, &raw.at)),
        published: row.published,
        published_deviation: row.deviation,
        published_text: row.text.clone(),
    });
    Ok(TableGroup {
        label: None,
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        per: None,
        published_unit: raw
            .unit
            .clone()
            .ok_or("it needs the unit of what was published")?,
        scale: raw.scale,
        rows: rows.collect(),
    })
}

/// A quantity under each condition of the table. What is `nan` or an empty text
/// was not published, or cannot be read.
fn conditions_of(raw: &RawTable, quantity: &RawTableQuantity) -> Result<TableGroup, String> {
    let count = raw.conditions.len();
    let fits = |length: usize| length == 0 || length == count;
    if count == 0
        || quantity.published.len() != count
        || !fits(quantity.deviation.len())
        || !fits(quantity.text.len())
    {
        return Err(format!(
            "{:?} needs a published number for each of the {count} conditions, and as many \
             deviations and texts if there are any",
            quantity.label
        ));
    }
    let told =
        |values: &[f64], index: usize| values.get(index).copied().filter(|one| !one.is_nan());
    let rows = raw
        .conditions
        .iter()
        .enumerate()
        .map(|(index, condition)| TableRow {
            label: condition.label.clone(),
            at: joined(&condition.at, &raw.at),
            published: told(&quantity.published, index),
            published_deviation: told(&quantity.deviation, index),
            published_text: quantity
                .text
                .get(index)
                .filter(|text| !text.is_empty())
                .cloned(),
        });
    Ok(TableGroup {
        label: Some(quantity.label.clone()),
        metric: quantity.metric.clone(),
        per: quantity.per.clone(),
        published_unit: quantity.unit.clone(),
        scale: quantity.scale,
        rows: rows.collect(),
    })
}

fn check_group(group: &TableGroup) -> Result<(), String> {
    if group.scale.is_some_and(|scale| !is_scale(scale)) {
        return Err("scale is a number above 0".into());
    }
    let is_spread = |deviation: f64| deviation.is_finite() && deviation >= 0.0;
    let wrong = group.rows.iter().find(|row| {
        row.published_deviation
            .is_some_and(|deviation| row.published.is_none() || !is_spread(deviation))
    });
    match wrong {
        Some(row) => Err(format!(
            "the deviation of row {:?} is a number of 0 or more and goes with published",
            row.label
        )),
        None => Ok(()),
    }
}
