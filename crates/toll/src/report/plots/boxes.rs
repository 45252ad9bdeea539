//! Quartiles and whiskers of treatments, published ones beside those measured
//! here.

use kuva::render::color::Color;
use kuva::render::render::Primitive;

use super::axis::Axis;
use super::frame::{self, Frame, LegendEntry, Swatch};
use super::ink::{self, LABEL_SIZE, Text, shorten, text_width};
use super::{NamedPlot, Theme};
use crate::claim::model::{BoxGroup, BoxPlot, FiveNumbers, MeasuredBox};
use crate::format;

const WIDTH: f64 = 960.0;
const ROW_HEIGHT: f64 = 58.0;
const LABEL_CHARACTERS_MAX: usize = 44;
/// Half of a box's height in pixels.
const HALF_BOX: f64 = 8.0;
/// Distance of the two boxes from the middle of their row, in pixels.
const LANE: f64 = 12.0;

/// Draws the groups, first on top; `None` if there is no value to draw.
#[must_use]
pub fn draw(plot: &BoxPlot, name: String, theme: Theme) -> Option<NamedPlot> {
    let palette = theme.palette();
    let rows: Vec<&BoxGroup> = plot.groups.iter().rev().collect();
    let count = rows.len();
    let legend = legend(plot, palette);
    let top = frame::heading_height(&legend, WIDTH, false) + 4.0;
    let bottom = 52.0;
    let labels = rows.iter().map(|group| label(group));
    let widest = labels
        .map(|label| text_width(&label, LABEL_SIZE))
        .fold(0.0, f64::max);
    let frame = Frame {
        width: WIDTH,
        height: top + bottom + ROW_HEIGHT * count as f64,
        left: widest + 34.0,
        right: 30.0,
        top,
        bottom,
        above: 0.0,
        palette,
        median: palette.ink,
        title: plot.title.clone(),
        legend,
        x: Axis::of_trials(
            plot.groups.iter().flat_map(values_of),
            &plot.metric,
            &plot.unit,
        )?,
        y: Axis::of_rows(count),
    };
    let mut over = Vec::new();
    for (row, group) in rows.into_iter().enumerate() {
        let y = frame.at_y(row as f64 + 1.0);
        let text = Text::new(&label(group), frame.left - 14.0, y + 4.5).end();
        over.push(text.size(LABEL_SIZE).draw());
        if let Some(published) = &group.published {
            let color = palette.published;
            over.extend(five(published, color, None, &frame, y + LANE));
            if let Some([median]) = pixels(&frame, [published.median]) {
                over.push(ink::diamond(median, y + LANE, palette.published, palette));
            }
        }
        if let Some(measured) = &group.measured {
            over.extend(measured_box(measured, &frame, y - LANE));
        }
    }
    let scene = frame.draw(frame::rules(&frame, plot.groups.len()), Vec::new(), over);
    let alt_text = alt_text(plot);
    Some(frame::finish(scene, name, &plot.title, &alt_text, theme))
}

fn label(group: &BoxGroup) -> String {
    shorten(&group.label, LABEL_CHARACTERS_MAX)
}

fn legend(plot: &BoxPlot, palette: &'static super::palette::Palette) -> Vec<LegendEntry> {
    let mut legend = vec![LegendEntry {
        label: "measured here: quartiles, values within 1.5 of their distance, those beyond".into(),
        color: palette.series[0],
        swatch: Swatch::Area,
    }];
    if plot.groups.iter().any(|group| group.published.is_some()) {
        legend.push(LegendEntry {
            label: format!("{}: quartiles and whiskers", plot.report),
            color: palette.published,
            swatch: Swatch::Diamond,
        });
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

/// Pixels of some values, if all of them lie on the axis.
fn pixels<const N: usize>(frame: &Frame, values: [f64; N]) -> Option<[f64; N]> {
    let mut pixels = [0.0; N];
    for (pixel, value) in pixels.iter_mut().zip(values) {
        *pixel = frame.at_x(frame.x.scale.coordinate(value)?);
    }
    Some(pixels)
}

fn corners(from: f64, to: f64, y: f64) -> [(f64, f64); 4] {
    let (top, bottom) = (y - HALF_BOX, y + HALF_BOX);
    [(from, top), (to, top), (to, bottom), (from, bottom)]
}

/// A box with its whiskers; filled if there is an opacity.
fn five(
    numbers: &FiveNumbers,
    color: &'static str,
    opacity: Option<f64>,
    frame: &Frame,
    y: f64,
) -> Vec<Primitive> {
    let Some([low, lower, median, upper, high]) = pixels(frame, (*numbers).into()) else {
        return Vec::new();
    };
    let upright =
        |x: f64, half: f64, color, width| ink::line((x, y - half), (x, y + half), color, width);
    let mut drawn = vec![
        ink::line((low, y), (lower, y), color, 1.4),
        ink::line((upper, y), (high, y), color, 1.4),
        upright(low, 4.0, color, 1.4),
        upright(high, 4.0, color, 1.4),
    ];
    drawn
        .extend(opacity.map(|opacity| {
            ink::area((lower, y - HALF_BOX), (upper, y + HALF_BOX), color, opacity)
        }));
    drawn.push(ink::shape(&corners(lower, upper, y), None, color));
    drawn.push(upright(median, HALF_BOX, frame.palette.ink, 2.4));
    drawn
}

fn measured_box(measured: &MeasuredBox, frame: &Frame, y: f64) -> Vec<Primitive> {
    let color = frame.palette.series[0];
    let mut drawn = five(&measured.numbers, color, Some(0.25), frame, y);
    if drawn.is_empty() {
        return drawn;
    }
    for outlier in &measured.outliers {
        let Some([x]) = pixels(frame, [*outlier]) else {
            continue;
        };
        drawn.push(Primitive::Circle {
            cx: x,
            cy: y,
            r: 2.6,
            fill: Color::from(color),
            fill_opacity: Some(0.6),
            stroke: None,
            stroke_width: None,
        });
    }
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
            let trials = measured.trials;
            format!("{} over {trials} trials", words(&measured.numbers))
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
