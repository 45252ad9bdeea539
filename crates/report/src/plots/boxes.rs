//! Quartiles and whiskers of treatments, published and measured here. kuva computes
//! boxes from values, but of published boxes only the five numbers are known.

use kuva::plot::MarkerShape;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::color::Color;
use kuva::render::layout::ComputedLayout;
use kuva::render::render::Primitive;
use toll_document::plural;

use super::chart::{
    Axis, Chart, NamedPlot, Vertical, area, diamond, entry, line, row_label, shape,
};
use super::palette::LIGHT;
use crate::claim::model::{BoxGroup, BoxPlot, FiveNumbers, MeasuredBox};
use crate::format;

const ROW_HEIGHT: f64 = 58.0;
/// Half of a box's height in pixels.
const HALF_BOX: f64 = 8.0;
/// Distance of the two boxes from the middle of their row, in pixels.
const LANE: f64 = 12.0;

/// Draws the groups, first on top; `None` if there is no value to draw.
pub fn draw(plot: &BoxPlot, name: String) -> Option<NamedPlot> {
    let rows: Vec<&BoxGroup> = plot.groups.iter().rev().collect();
    let labels = rows.iter().map(|group| row_label(&group.label)).collect();
    let values = plot.groups.iter().flat_map(values_of);
    let x = Axis::of_trials(values, &plot.metric, &plot.unit)?;
    let chart = Chart {
        legend: legend(plot),
        ..Chart::new(&plot.title, x, Vertical::Rows(labels, ROW_HEIGHT))
    };
    let layout = chart.layout();
    let places = ComputedLayout::from_layout(&layout);
    let mut over = Vec::new();
    for (row, group) in rows.into_iter().enumerate() {
        let y = places.map_y(row as f64 + 1.0);
        let at = |value: f64| Some(places.map_x(chart.x.scale.coordinate(value)?));
        if let Some(published) = &group.published {
            let y = y + LANE;
            over.extend(five(published, LIGHT.published, None, at, y));
            over.extend(at(published.median).map(|x| diamond(x, y)));
        }
        if let Some(measured) = &group.measured {
            over.extend(measured_box(measured, at, y - LANE));
        }
    }
    let marks = [Vec::new(), over];
    Some(chart.finish(name, &alt_text(plot), layout, Vec::new(), marks))
}

fn legend(plot: &BoxPlot) -> Vec<LegendEntry> {
    let measured = "measured here: quartiles, whiskers to 1.5 interquartile ranges, outliers";
    let mut legend = vec![entry(measured, LIGHT.series[0], LegendShape::Rect)];
    if plot.groups.iter().any(|group| group.published.is_some()) {
        let label = format!("{}: quartiles and whiskers", plot.report);
        let shape = LegendShape::Marker(MarkerShape::Diamond);
        legend.push(entry(&label, LIGHT.published, shape));
    }
    legend
}

fn values_of(group: &BoxGroup) -> Vec<f64> {
    let mut values = Vec::new();
    if let Some(published) = &group.published {
        values.extend([published.low, published.high]);
    }
    if let Some(measured) = &group.measured {
        values.extend([measured.numbers.low, measured.numbers.high]);
        values.extend(&measured.outliers);
    }
    values
}

/// A box with its whiskers, filled if there is an opacity; empty if one of its
/// numbers has no place on the axis.
fn five(
    numbers: &FiveNumbers,
    color: &str,
    opacity: Option<f64>,
    at: impl Fn(f64) -> Option<f64>,
    y: f64,
) -> Vec<Primitive> {
    let places = <[f64; 5]>::from(*numbers).map(at);
    let [
        Some(low),
        Some(lower),
        Some(median),
        Some(upper),
        Some(high),
    ] = places
    else {
        return Vec::new();
    };
    let upright =
        |x: f64, half: f64, color: &str, width| line((x, y - half), (x, y + half), color, width);
    let mut drawn = vec![
        line((low, y), (lower, y), color, 1.4),
        line((upper, y), (high, y), color, 1.4),
        upright(low, 4.0, color, 1.4),
        upright(high, 4.0, color, 1.4),
    ];
    let (top, bottom) = (y - HALF_BOX, y + HALF_BOX);
    drawn.extend(opacity.map(|opacity| area((lower, top), (upper, bottom), color, opacity)));
    let corners = [(lower, top), (upper, top), (upper, bottom), (lower, bottom)];
    drawn.push(shape(&corners, None, color));
    drawn.push(upright(median, HALF_BOX, LIGHT.ink, 2.4));
    drawn
}

fn measured_box(measured: &MeasuredBox, at: impl Fn(f64) -> Option<f64>, y: f64) -> Vec<Primitive> {
    let color = LIGHT.series[0];
    let mut drawn = five(&measured.numbers, color, Some(0.25), &at, y);
    if drawn.is_empty() {
        return drawn;
    }
    let outliers = measured.outliers.iter().filter_map(|value| at(*value));
    drawn.extend(outliers.map(|cx| Primitive::Circle {
        cx,
        cy: y,
        r: 2.6,
        fill: Color::from(color),
        fill_opacity: Some(0.6),
        stroke: None,
        stroke_width: None,
    }));
    drawn
}

fn alt_text(plot: &BoxPlot) -> String {
    let groups = plot.groups.iter().map(|group| {
        let words = |numbers: &FiveNumbers| {
            format!(
                "{} ({} to {})",
                format::value(numbers.median, &plot.unit),
                format::value(numbers.lower, &plot.unit),
                format::value(numbers.upper, &plot.unit)
            )
        };
        let measured = group.measured.as_ref().map(|measured| {
            let trials = plural(measured.trials, "trial");
            format!("{} over {trials}", words(&measured.numbers))
        });
        let published = group.published.as_ref().map(words);
        format!(
            "{}: measured {}, published {}",
            group.label,
            measured.as_deref().unwrap_or("nothing"),
            published.as_deref().unwrap_or("nothing")
        )
    });
    let groups: Vec<String> = groups.collect();
    format!(
        "{}. Medians and quartiles. {}.",
        plot.title,
        groups.join("; ")
    )
}
