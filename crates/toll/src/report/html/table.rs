//! Published tables, as the page's template is given them.

use minijinja::{Value, context};

use super::view::or_nothing;
use crate::claim::model::{
    Analysis, Figure, FiveNumbers, MeasuredMean, PublishedGroup, PublishedRow, PublishedTable,
};
use crate::format;

/// A published table, a group a quantity.
pub fn published(table: &PublishedTable) -> Value {
    let rows = || table.groups.iter().flat_map(|group| &group.rows);
    let means: Vec<&MeasuredMean> = rows()
        .filter_map(|row| row.measured_mean.as_ref())
        .collect();
    context! {
        title => table.title.clone(),
        report => table.report.clone(),
        relative_to => table.relative_to.clone(),
        has_mean => !means.is_empty(),
        drops_extremes => means.iter().any(|mean| mean.dropped.is_some()),
        groups => table.groups.iter().map(group).collect::<Vec<_>>(),
        note => table.note.clone(),
    }
}

fn group(group: &PublishedGroup) -> Value {
    let missing = why_unmeasured(group);
    let rows = group
        .rows
        .iter()
        .map(|one| row(one, group, missing.is_none()));
    context! {
        label => group.label.clone(),
        metric => group.metric.clone(),
        rows => rows.collect::<Vec<_>>(),
        missing,
    }
}

/// Why no row of a group was measured, if one reason holds for all.
fn why_unmeasured(group: &PublishedGroup) -> Option<String> {
    let mut reasons = group.rows.iter().map(|row| row.missing.as_deref());
    let first = reasons.next()??;
    reasons
        .all(|reason| reason == Some(first))
        .then(|| first.to_owned())
}

fn row(row: &PublishedRow, group: &PublishedGroup, tells_missing: bool) -> Value {
    let published_value = |value| format::value(value, &group.published_unit);
    let number = row.published.map(published_value);
    let converted = row
        .published_converted
        .map(|value| format::value(value, &group.unit))
        .filter(|converted| number.as_ref() != Some(converted));
    let deviation = row.published_deviation.map(published_value);
    let with_deviation = number.map(|number| match deviation {
        Some(deviation) => format!("{number} ± {deviation}"),
        None => number,
    });
    let published: Vec<String> = with_deviation
        .into_iter()
        .chain(row.published_text.clone())
        .collect();
    context! {
        label => row.label.clone(),
        published => or_nothing((!published.is_empty()).then_some(published), |parts| {
            parts.join(", ")
        }),
        converted,
        published_ratio => or_nothing(row.published_ratio, format::ratio),
        measured => or_nothing(row.measured, |one| format::interval(&one, &group.unit)),
        measured_mean => or_nothing(row.measured_mean, |one| mean(&one, &group.unit)),
        range => row.measured_mean.map(|one| range(&one, &group.unit)),
        measured_ratio => or_nothing(row.measured_ratio, |one| format::ratio_interval(&one)),
        missing => row.missing.clone().filter(|_| tells_missing),
    }
}

/// `6.2 ms ± 0.4 ms`
fn mean(mean: &MeasuredMean, unit: &str) -> String {
    let value = format::value(mean.mean, unit);
    match mean.standard_deviation {
        Some(deviation) => format!("{value} ± {}", format::value(deviation, unit)),
        None => value,
    }
}

/// `5.8 ms to 7.1 ms, 2 of 24 dropped`
fn range(mean: &MeasuredMean, unit: &str) -> String {
    let (low, high) = (
        format::value(mean.low, unit),
        format::value(mean.high, unit),
    );
    match mean.dropped {
        None => format!("{low} to {high}"),
        Some(dropped) => {
            format!(
                "{low} to {high}, {dropped} of {} dropped",
                mean.kept + dropped
            )
        }
    }
}

/// The numbers behind the box plots.
pub fn boxes(analysis: &Analysis) -> Vec<Value> {
    let plots = analysis.figures.iter().filter_map(|figure| match figure {
        Figure::Box(plot) => Some(plot),
        _ => None,
    });
    let table = |plot: &crate::claim::model::BoxPlot| {
        let groups = plot.groups.iter().map(|group| {
            let cells = |numbers: &FiveNumbers| {
                <[f64; 5]>::from(*numbers)
                    .map(|value| format::value(value, &plot.unit))
                    .to_vec()
            };
            context! {
                label => group.label.clone(),
                measured => group.measured.as_ref().map(|measured| cells(&measured.numbers)),
                trials => group.measured.as_ref().map(|measured| measured.trials),
                published => group.published.as_ref().map(cells),
            }
        });
        context! {
            title => plot.title.clone(),
            report => plot.report.clone(),
            metric => plot.metric.clone(),
            groups => groups.collect::<Vec<_>>(),
        }
    };
    plots.map(table).collect()
}
