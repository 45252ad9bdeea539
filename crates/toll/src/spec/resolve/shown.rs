//! Tables, figures and advice.

use super::{joined, number, selector};
use crate::spec::level::Scalar;
use crate::spec::raw::{RawAdvice, RawAdviceKind, RawFigure, RawTable};
use crate::spec::{
    AdviceKind, AdviceSpec, BoxGroupSpec, FigureKind, FigureSpec, Selector, Table, TableRow,
};

pub(super) fn table_of(
    raw: &RawTable,
    metric: &str,
    report: Option<&str>,
) -> Result<Table, String> {
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
    if let Some(label) = &raw.relative_to
        && !raw.rows.iter().any(|row| row.label == *label)
    {
        return Err(format!(
            "cannot relate table to row {label:?}: there is no such row"
        ));
    }
    if raw.scale.is_some_and(|scale| !is_scale(scale)) {
        return Err(format!(
            "cannot convert table {:?}: scale is a number above 0",
            raw.title
        ));
    }
    let is_spread = |deviation: f64| deviation.is_finite() && deviation >= 0.0;
    if let Some(row) = raw.rows.iter().find(|row| {
        row.deviation
            .is_some_and(|deviation| row.published.is_none() || !is_spread(deviation))
    }) {
        return Err(format!(
            "cannot use the deviation of row {:?}: it is a number of 0 or more and goes with published",
            row.label
        ));
    }
    Ok(Table {
        title: raw.title.clone(),
        report: raw
            .report
            .as_deref()
            .or(report)
            .unwrap_or_default()
            .to_owned(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        published_unit: raw.unit.clone(),
        scale: raw.scale,
        relative_to: raw.relative_to.clone(),
        note: raw.note.clone(),
        rows: rows.collect(),
    })
}

fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale > 0.0
}

/// The groups of a box plot, published values in base units.
fn groups_of(raw: &RawFigure) -> Result<Vec<BoxGroupSpec>, String> {
    let cannot = |why: &str| format!("cannot draw {:?}: {why}", raw.title);
    match (raw.kind, raw.groups.is_empty(), raw.factor.is_empty()) {
        (FigureKind::Box, false, true) => {}
        (FigureKind::Box, ..) => return Err(cannot("boxes have groups, and no factor")),
        (_, true, false) if raw.scale.is_none() => return Ok(Vec::new()),
        _ => {
            return Err(cannot(
                "it needs a factor; groups and scale go with kind box",
            ));
        }
    }
    let scale = raw.scale.unwrap_or(1.0);
    if !is_scale(scale) {
        return Err(cannot("scale is a number above 0"));
    }
    let groups = raw.groups.iter().map(|group| {
        if let Some([median, lower, upper]) = group.published
            && !(lower.is_finite() && lower <= median && median <= upper && upper.is_finite())
        {
            return Err(cannot("published is median, lower and upper quartile"));
        }
        Ok(BoxGroupSpec {
            label: group.label.clone(),
            at: joined(&group.at, &raw.at),
            published: group
                .published
                .map(|three| three.map(|value| value * scale)),
        })
    });
    groups.collect()
}

pub(super) fn figure_of(raw: &RawFigure, metric: &str) -> Result<FigureSpec, String> {
    let acceleration = match (&raw.acceleration_of, &raw.acceleration_to) {
        (None, None) => None,
        (Some(of), Some(to)) => Some((joined(of, &raw.at), joined(to, &raw.at))),
        _ => {
            return Err(format!(
                "cannot draw {:?}: acceleration_of and acceleration_to come together",
                raw.title
            ));
        }
    };
    let point = |(x, y): &(Scalar, f64)| Ok::<_, String>((number(x)?, *y));
    Ok(FigureSpec {
        title: raw.title.clone(),
        kind: raw.kind,
        factor: raw.factor.clone(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        series: raw.series.clone(),
        at: selector(&raw.at),
        except: raw.except.iter().map(Scalar::level).collect(),
        acceleration,
        log_y: raw.log_y,
        marks: raw.marks.clone(),
        published: raw.published.iter().map(point).collect::<Result<_, _>>()?,
        groups: groups_of(raw)?,
    })
}

pub(super) fn advice_of(raw: &RawAdvice, metric: &str) -> Result<AdviceSpec, String> {
    let kind = match (raw.kind, &raw.over) {
        (RawAdviceKind::Best, None) => AdviceKind::Best,
        (RawAdviceKind::Saturation, None) => AdviceKind::Saturation,
        (RawAdviceKind::Cost, Some(over)) => AdviceKind::Cost { over: over.clone() },
        (RawAdviceKind::Cost, None) => {
            return Err(
                "cannot advise on cost: over names the factor that varies the calls".into(),
            );
        }
        (_, Some(_)) => return Err("cannot advise: over goes with kind cost".into()),
    };
    Ok(AdviceSpec {
        topic: raw.topic.clone(),
        kind,
        factor: raw.factor.clone(),
        metric: raw.metric.clone().unwrap_or_else(|| metric.to_owned()),
        each: raw.each.clone(),
        at: selector(&raw.at),
        except: raw.except.iter().map(Scalar::level).collect(),
    })
}
