//! Figures and advice.

use super::table::is_scale;
use super::{joined, number, selector};
use crate::spec::level::Scalar;
use crate::spec::raw::{PublishedNumbers, RawAdvice, RawAdviceKind, RawFigure};
use crate::spec::{AdviceKind, AdviceSpec, FigureKind, FigureSpec, GroupSpec, LineSpec};

/// The groups of a box plot, or bars, with published values in base units.
fn groups_of(raw: &RawFigure) -> Result<Vec<GroupSpec>, String> {
    let cannot = |why: &str| format!("cannot draw {:?}: {why}", raw.title);
    let has_groups = matches!(raw.kind, FigureKind::Box | FigureKind::Bar);
    match (has_groups, raw.groups.is_empty(), raw.factor.is_empty()) {
        (true, false, true) => {}
        (true, ..) => return Err(cannot("boxes and bars have groups, and no factor")),
        (false, true, false) if raw.scale.is_none() => return Ok(Vec::new()),
        (false, ..) => {
            return Err(cannot(
                "it needs a factor; groups and scale go with kinds box and bar",
            ));
        }
    }
    let scale = raw.scale.unwrap_or(1.0);
    if !is_scale(scale) {
        return Err(cannot("scale is a number above 0"));
    }
    let groups = raw.groups.iter().map(|group| {
        let published: &[f64] = match (&group.published, raw.kind) {
            (None, _) => &[],
            (Some(PublishedNumbers::One(value)), FigureKind::Bar) => std::slice::from_ref(value),
            (Some(PublishedNumbers::Five(five)), FigureKind::Box) => five,
            (Some(_), _) => {
                return Err(cannot(
                    "published is one number of a bar, and of a box lower whisker, lower \
                     quartile, median, upper quartile and upper whisker",
                ));
            }
        };
        if !(published.iter().all(|value| value.is_finite()) && published.is_sorted()) {
            return Err(cannot(
                "published numbers are finite, and those of a box ascend",
            ));
        }
        Ok(GroupSpec {
            label: group.label.clone(),
            at: joined(&group.at, &raw.at),
            published: published.iter().map(|value| value * scale).collect(),
        })
    });
    groups.collect()
}

/// Checks what only one kind of figure has.
fn check_figure(raw: &RawFigure) -> Result<(), String> {
    let cannot = |why: &str| Err(format!("cannot draw {:?}: {why}", raw.title));
    if !raw.lines.is_empty() && (raw.kind != FigureKind::Curve || raw.series.is_some()) {
        return cannot("lines go with kind curve and take the place of series");
    }
    match &raw.relative_to {
        Some(_) if raw.kind != FigureKind::Bar => cannot("relative_to goes with kind bar"),
        Some(label) if !raw.groups.iter().any(|group| group.label == *label) => {
            cannot(&format!("there is no bar {label:?} to relate to"))
        }
        _ => Ok(()),
    }
}

pub(super) fn figure_of(raw: &RawFigure, metric: &str) -> Result<FigureSpec, String> {
    check_figure(raw)?;
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
    let lines = raw.lines.iter().map(|line| {
        Ok::<_, String>(LineSpec {
            label: line.label.clone(),
            at: joined(&line.at, &raw.at),
            published: line.published.iter().map(point).collect::<Result<_, _>>()?,
        })
    });
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
        lines: lines.collect::<Result<_, _>>()?,
        groups: groups_of(raw)?,
        relative_to: raw.relative_to.clone(),
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
