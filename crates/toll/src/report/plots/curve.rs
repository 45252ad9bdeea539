//! A metric against a numeric factor.

use kuva::plot::{LinePlot, ScatterPlot};
use kuva::prelude::Plot;
use kuva::render::render::Primitive;

use super::axis::{Axis, Scale};
use super::frame::{self, Frame, LegendEntry, Swatch};
use super::ink::{self, TICK_SIZE, Text, dashed, diamond, text_width};
use super::palette::Palette;
use super::{NamedPlot, Theme};
use crate::claim::model::{Curve, CurveMark, CurveSeries, Estimate};
use crate::format;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 470.0;
const X_TICKS_MAX: usize = 11;
const Y_TICKS_MAX: usize = 7;
const BAND_OPACITY: f64 = 0.18;

/// Draws the curve; `None` if no point can be placed.
#[must_use]
pub fn draw(curve: &Curve, name: String, theme: Theme) -> Option<NamedPlot> {
    let palette = theme.palette();
    let (x, y) = axes(curve)?;
    let legend = legend(curve, palette);
    let left = y
        .ticks
        .iter()
        .map(|(_, label)| text_width(label, TICK_SIZE))
        .fold(30.0, f64::max);
    let frame = Frame {
        width: WIDTH,
        height: HEIGHT + (mark_rows(curve) - FEW_MARKS).max(0.0) * MARK_ROW,
        left: left + 22.0,
        right: 30.0,
        top: frame::heading_height(&legend, WIDTH, true) + mark_rows(curve) * MARK_ROW,
        bottom: 52.0,
        above: mark_rows(curve) * MARK_ROW,
        palette,
        median: palette.surface,
        title: curve.title.clone(),
        legend,
        x,
        y,
    };
    let (behind, over) = marks(curve, &frame);
    let mut over = over;
    over.extend(published_points(curve, &frame));
    over.extend(treads(curve, &frame));
    let scene = frame.draw(behind, series(curve, &frame), over);
    Some(frame::finish(
        scene,
        name,
        &curve.title,
        &alt_text(curve),
        theme,
    ))
}

/// Axes that hold every point with its band.
#[must_use]
pub fn axes(curve: &Curve) -> Option<(Axis, Axis)> {
    let points = || curve.series.iter().flat_map(|series| &series.points);
    let x_title = axis_title(&curve.factor, &curve.factor_unit, Scale::Log);
    let x_values = points().map(|point| point.x);
    let x = Axis::over(
        x_values,
        Scale::Log,
        &curve.factor_unit,
        &x_title,
        X_TICKS_MAX,
    )?;
    let y_scale = if curve.log_y {
        Scale::Log
    } else {
        Scale::Linear
    };
    let y_values = points().flat_map(|point| [point.y.low, point.y.value, point.y.high]);
    let y_title = axis_title(&curve.metric, &curve.unit, y_scale);
    let y = Axis::over(y_values, y_scale, &curve.unit, &y_title, Y_TICKS_MAX)?;
    Some((x, y.from_zero(&curve.unit, Y_TICKS_MAX)))
}

fn axis_title(name: &str, unit: &str, scale: Scale) -> String {
    // Units that the tick labels carry need no repeating.
    let in_ticks = ["bytes", "bytes/s", "ns", "ns/byte", "count", ""];
    let unit = if in_ticks.contains(&unit) {
        String::new()
    } else {
        format!(", {unit}")
    };
    let scale = match scale {
        Scale::Log => " (logarithmic)",
        Scale::Linear => "",
    };
    format!("{name}{unit}{scale}")
}

/// Colours of the series, in turn. A published line has the colour of the
/// measured one before it if both are of the same.
pub(super) fn series_colors<'c>(
    curve: &'c Curve,
    palette: &'c Palette,
) -> impl Iterator<Item = (&'c CurveSeries, &'static str)> {
    let mut lines = 0;
    let mut before: Option<&str> = None;
    curve.series.iter().map(move |series| {
        if !(series.published && before == Some(&series.label)) {
            lines += 1;
        }
        before = Some(&series.label);
        (series, palette.series[(lines - 1) % palette.series.len()])
    })
}

fn legend(curve: &Curve, palette: &Palette) -> Vec<LegendEntry> {
    let entry = |(series, color): (&CurveSeries, _)| {
        let (label, swatch) = if series.published {
            (format!("{} (published)", series.label), Swatch::Dashed)
        } else {
            (series.label.clone(), Swatch::Line)
        };
        LegendEntry {
            label: ink::shorten(&label, 48),
            color,
            swatch,
        }
    };
    series_colors(curve, palette).map(entry).collect()
}

fn series(curve: &Curve, frame: &Frame) -> Vec<Plot> {
    let mut plots: Vec<Plot> = Vec::new();
    for (series, color) in series_colors(curve, frame.palette) {
        let mut line = Vec::new();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for point in &series.points {
            let Some((x, ends)) = coordinates(point.x, &point.y, &frame.y) else {
                continue;
            };
            line.push((x, ends[1]));
            low.push(ends[0]);
            high.push(ends[2]);
        }
        let mut plot = LinePlot::new()
            .with_data(line.iter().copied())
            .with_color(color)
            .with_stroke_width(if series.published { 1.8 } else { 2.4 });
        if series.published {
            plots.push(plot.with_dashed().into());
            continue;
        }
        plot = plot.with_band(low, high);
        if let Some(band) = &mut plot.band {
            band.opacity = BAND_OPACITY;
        }
        plots.push(plot.into());
        let dots = ScatterPlot::new().with_data(line).with_color(color);
        plots.push(dots.with_size(3.4).into());
    }
    plots
}

/// A point's place and its band, cut off at the axis.
fn coordinates(x: f64, y: &Estimate, axis: &Axis) -> Option<(f64, [f64; 3])> {
    let x = Scale::Log.coordinate(x)?;
    let middle = axis.scale.coordinate(y.value)?;
    let low = axis.scale.coordinate(y.low).unwrap_or(axis.low);
    let high = axis.scale.coordinate(y.high).unwrap_or(axis.high);
    Some((x, [low.max(axis.low), middle, high.min(axis.high)]))
}

fn published_points(curve: &Curve, frame: &Frame) -> Vec<Primitive> {
    let published = series_colors(curve, frame.palette).filter(|(series, _)| series.published);
    let points =
        published.flat_map(|(series, color)| series.points.iter().map(move |point| (point, color)));
    points
        .filter_map(|(point, color)| {
            let (x, ends) = coordinates(point.x, &point.y, &frame.y)?;
            let (x, y) = (frame.at_x(x), frame.at_y(ends[1]));
            Some(diamond(x, y, color, frame.palette))
        })
        .collect()
}

const MARK_ROW: f64 = 17.0;
/// Rows of marks that the plot's height allows for.
const FEW_MARKS: f64 = 2.0;

/// Marks that have a place, from left to right.
fn drawn_marks(curve: &Curve) -> Vec<&CurveMark> {
    let place = |mark: &CurveMark| mark.at.value.or(mark.at.low);
    let mut marks: Vec<&CurveMark> = curve.marks.iter().filter(|m| place(m).is_some()).collect();
    marks.sort_by(|a, b| f64::total_cmp(&place(a).unwrap_or(0.0), &place(b).unwrap_or(0.0)));
    marks
}

fn mark_rows(curve: &Curve) -> f64 {
    drawn_marks(curve).len() as f64
}

/// Marked intervals as shaded spans, each with its label in a row of its own
/// above the axes, so that neighbours never overlap, in the colour of the line
/// that it belongs to.
fn marks(curve: &Curve, frame: &Frame) -> (Vec<Primitive>, Vec<Primitive>) {
    let (mut behind, mut lines, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    let colors: Vec<&'static str> = series_colors(curve, frame.palette)
        .map(|(_, color)| color)
        .collect();
    let marks = drawn_marks(curve);
    for (row, mark) in marks.iter().enumerate() {
        let place = |value: Option<f64>, missing: f64| {
            let coordinate = value.and_then(|value| Scale::Log.coordinate(value));
            let coordinate = coordinate.unwrap_or(missing);
            frame.at_x(coordinate.clamp(frame.x.low, frame.x.high))
        };
        let left = place(mark.at.low.or(mark.at.value), frame.x.low);
        let right = place(mark.at.high, frame.x.high);
        let line = mark.series.and_then(|line| colors.get(line).copied());
        let color = line.unwrap_or(frame.palette.muted);
        let top = frame.top - MARK_ROW * (marks.len() - row) as f64;
        behind.push(ink::area((left, top), (right, frame.floor()), color, 0.12));
        if let Some(value) = mark.at.value {
            let x = place(Some(value), frame.x.high);
            lines.push(dashed((x, top), (x, frame.floor()), color, 1.3));
        }
        let text = format!(
            "{} {}",
            mark.label,
            format::derived(&mark.at, &curve.factor_unit)
        );
        labels.extend(label(&text, (left, right), top, color, frame));
    }
    lines.extend(labels);
    (behind, lines)
}

/// A mark's label beside its span, to the side with room, on a ground that
/// hides what runs behind it.
fn label(
    text: &str,
    (left, right): (f64, f64),
    top: f64,
    color: &'static str,
    frame: &Frame,
) -> [Primitive; 2] {
    let text = ink::shorten(text, 70);
    let width = text_width(&text, TICK_SIZE);
    let fits = right + 6.0 + width < frame.width;
    let (from, drawn) = if fits {
        (right + 6.0, Text::new(&text, right + 6.0, top + 11.0))
    } else {
        (
            left - 6.0 - width,
            Text::new(&text, left - 6.0, top + 11.0).end(),
        )
    };
    let ground = ink::area(
        (from - 2.0, top),
        (from + width + 2.0, top + MARK_ROW - 2.0),
        frame.palette.surface,
        0.85,
    );
    [ground, drawn.color(color).draw()]
}

/// The fitted treads, each from its first level to its last.
fn treads(curve: &Curve, frame: &Frame) -> Vec<Primitive> {
    let treads = series_colors(curve, frame.palette)
        .flat_map(|(series, color)| series.treads.iter().map(move |tread| (tread, color)));
    treads
        .filter_map(|(tread, color)| {
            let (from, ends) = coordinates(tread.from, &tread.value, &frame.y)?;
            let to = Scale::Log.coordinate(tread.to)?;
            let y = frame.at_y(ends[1]);
            let (left, right) = (frame.at_x(from), frame.at_x(to));
            Some(dashed((left, y), (right, y), color, 1.6))
        })
        .collect()
}

fn alt_text(curve: &Curve) -> String {
    let series: Vec<String> = curve
        .series
        .iter()
        .filter_map(|series| {
            let first = series.points.first()?;
            let last = series.points.last()?;
            Some(format!(
                "{}{}: from {} at {} to {} at {}",
                series.label,
                if series.published { " (published)" } else { "" },
                format::value(first.y.value, &curve.unit),
                format::value(first.x, &curve.factor_unit),
                format::value(last.y.value, &curve.unit),
                format::value(last.x, &curve.factor_unit),
            ))
        })
        .collect();
    let marks: Vec<String> = curve
        .marks
        .iter()
        .map(|mark| {
            format!(
                "{}: {}",
                mark.label,
                format::derived(&mark.at, &curve.factor_unit)
            )
        })
        .collect();
    let mut text = format!("{}. {}.", curve.title, series.join("; "));
    if !marks.is_empty() {
        text.push_str(&format!(" Marked: {}.", marks.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::model::Figure;
    use crate::report::sample;

    #[test]
    fn marks_stand_from_left_to_right_in_the_colours_of_their_lines() {
        let sample = sample::copying();
        let Figure::Curve(mut curve) = sample.analysis.figures[0].clone() else {
            panic!("the first figure is a curve");
        };
        let mut left = curve.marks[0].clone();
        (left.label, left.series) = ("left".into(), Some(1));
        left.at.value = Some(5_000.0);
        curve.marks.push(left);
        let labels: Vec<&str> = drawn_marks(&curve)
            .iter()
            .map(|m| m.label.as_str())
            .collect();
        assert_eq!(labels, ["left", "knee, zero"]);
        let palette = Theme::Light.palette();
        let svg = draw(&curve, "x".into(), Theme::Light).unwrap().svg;
        let text_of = |label: &str| {
            let end = svg.find(&format!(">{label} ")).expect(label);
            svg[..end].rsplit("<text").next().unwrap().to_owned()
        };
        assert!(
            text_of("left").contains(palette.series[1]),
            "{}",
            text_of("left")
        );
        assert!(text_of("knee, zero").contains(palette.muted));
    }

    #[test]
    fn treads_are_drawn_as_dashed_lines() {
        let sample = sample::copying();
        let Figure::Curve(mut curve) = sample.analysis.figures[0].clone() else {
            panic!("the first figure is a curve");
        };
        let dashes = |curve: &Curve| {
            let svg = draw(curve, "x".into(), Theme::Light).unwrap().svg;
            svg.matches("stroke-dasharray").count()
        };
        let before = dashes(&curve);
        let mut treads = sample::staircase().treads;
        for tread in &mut treads {
            tread.value.value = 9e9;
        }
        curve.series[0].treads = treads;
        assert_eq!(dashes(&curve), before + 3);
    }
}
