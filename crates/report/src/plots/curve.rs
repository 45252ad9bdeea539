//! A metric against a numeric factor.

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::{LinePlot, MarkerShape, ScatterPlot};
use kuva::prelude::{Plot, ReferenceLine, ShadedRegion};

use super::chart::{Axis, Chart, NamedPlot, Scale, Vertical, entry, shorten};
use super::palette::{LIGHT, Palette};
use crate::claim::metric_words;
use crate::claim::model::{Curve, CurveMark, CurveSeries, Estimate};
use crate::format;

const HEIGHT: f64 = 340.0;
const BAND_OPACITY: f64 = 0.18;

/// Draws the curve; `None` if no point can be placed.
pub fn draw(curve: &Curve, name: String) -> Option<NamedPlot> {
    let (x, y) = axes(curve)?;
    let data = series(curve, &x, &y);
    let mut chart = Chart {
        height: HEIGHT,
        legend: legend(curve),
        ..Chart::new(&curve.title, x, Vertical::Axis(y))
    };
    for (mark, color) in drawn_marks(curve) {
        let label = format!(
            "{} {}",
            mark.label,
            format::derived(&mark.at, &curve.factor_unit)
        );
        let label = shorten(&label, 70);
        chart.legend.push(entry(&label, color, LegendShape::Rect));
    }
    let mut layout = chart.layout();
    for (mark, color) in drawn_marks(curve) {
        let (left, right) = chart.x.ends;
        let place = |value: Option<f64>| chart.x.clamped(value?);
        let low = place(mark.at.low.or(mark.at.value)).unwrap_or(left);
        let high = place(mark.at.high).unwrap_or(right);
        let span = ShadedRegion::vertical(low, high).with_color(color);
        layout = layout.with_shaded_region(span.with_opacity(0.12));
        if let Some(x) = place(mark.at.value) {
            let line = ReferenceLine::vertical(x).with_color(color);
            layout = layout.with_reference_line(line.with_stroke_width(1.3));
        }
    }
    Some(chart.finish(name, &alt_text(curve), layout, data, Default::default()))
}

/// Axes that hold every point with its band.
pub fn axes(curve: &Curve) -> Option<(Axis, Axis)> {
    let points = || curve.series.iter().flat_map(|series| &series.points);
    let mut levels: Vec<f64> = points().map(|point| point.x).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let is_whole = levels.iter().all(|level| level.fract() == 0.0);
    let (x_scale, x_unit) = match curve.factor_unit.as_str() {
        "bytes" => (Scale::Binary, "bytes"),
        "" if is_even(&levels) && is_whole => (Scale::Linear, "count"),
        unit if is_even(&levels) => (Scale::Linear, unit),
        unit => (Scale::Log, unit),
    };
    let x_title = axis_title(&curve.factor, &curve.factor_unit, x_scale != Scale::Linear);
    let x = Axis::over(levels.into_iter(), x_scale, x_unit, &x_title)?;
    let y_scale = if curve.log_y {
        Scale::Log
    } else {
        Scale::Linear
    };
    let y_values = points().flat_map(|point| [point.y.low, point.y.value, point.y.high]);
    let y_title = axis_title(&metric_words(&curve.metric), &curve.unit, curve.log_y);
    let y = Axis::over(y_values, y_scale, &curve.unit, &y_title)?;
    Some((x, y.starting_at_zero()))
}

/// Whether ascending levels are about evenly spaced, as the levels of a scan are.
fn is_even(levels: &[f64]) -> bool {
    let steps = || levels.windows(2).map(|pair| pair[1] - pair[0]);
    let (smallest, largest) = steps().fold((f64::INFINITY, 0.0_f64), |ends, step| {
        (ends.0.min(step), ends.1.max(step))
    });
    levels.len() > 2 && largest < 1.5 * smallest
}

fn axis_title(name: &str, unit: &str, is_log: bool) -> String {
    // Do not repeat units that the tick labels carry.
    let unit = match unit {
        "bytes" | "bytes/s" | "ns" | "ns/byte" | "count" | "" => String::new(),
        unit => format!(", {unit}"),
    };
    let scale = if is_log { " (logarithmic)" } else { "" };
    format!("{name}{unit}{scale}")
}

/// Assigns colours to the series in turn. A published line has the colour of the
/// line before it if both have the same label.
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

fn legend(curve: &Curve) -> Vec<LegendEntry> {
    let series = series_colors(curve, &LIGHT);
    let entries = series.map(|(series, color)| {
        if series.published {
            let shape = LegendShape::Marker(MarkerShape::Diamond);
            entry(&format!("{} (published)", series.label), color, shape)
        } else {
            entry(&series.label, color, LegendShape::Line)
        }
    });
    entries.collect()
}

fn series(curve: &Curve, x: &Axis, y: &Axis) -> Vec<Plot> {
    let mut plots: Vec<Plot> = Vec::new();
    for (series, color) in series_colors(curve, &LIGHT) {
        let places = series.points.iter();
        let places = places.filter_map(|point| coordinates(point.x, &point.y, x, y));
        let places: Vec<(f64, [f64; 3])> = places.collect();
        let end = |which: usize| places.iter().map(move |(_, ends)| ends[which]);
        let points: Vec<(f64, f64)> = places.iter().map(|(x, ends)| (*x, ends[1])).collect();
        let line = LinePlot::new()
            .with_data(points.iter().copied())
            .with_color(color);
        let dots = ScatterPlot::new().with_data(points).with_color(color);
        if series.published {
            plots.push(line.with_stroke_width(1.8).with_dashed().into());
            plots.push(dots.with_marker(MarkerShape::Diamond).with_size(5.0).into());
            continue;
        }
        let mut line = line.with_stroke_width(2.4).with_band(end(0), end(2));
        if let Some(band) = &mut line.band {
            band.opacity = BAND_OPACITY;
        }
        plots.push(line.into());
        plots.push(dots.with_size(3.4).into());
        plots.extend(plateaus(series, color, x, y));
    }
    plots
}

/// A point's place and its band, cut off at the axis.
fn coordinates(x: f64, estimate: &Estimate, along: &Axis, y: &Axis) -> Option<(f64, [f64; 3])> {
    let x = along.scale.coordinate(x)?;
    let middle = y.scale.coordinate(estimate.value)?;
    let low = y.clamped(estimate.low).unwrap_or(y.ends.0);
    let high = y.clamped(estimate.high).unwrap_or(y.ends.1);
    Some((x, [low, middle, high]))
}

/// The fitted plateaus, each from its first level to its last.
fn plateaus(series: &CurveSeries, color: &str, x: &Axis, y: &Axis) -> Vec<Plot> {
    let lines = series.plateaus.iter().filter_map(|plateau| {
        let (from, ends) = coordinates(plateau.from, &plateau.value, x, y)?;
        let to = x.scale.coordinate(plateau.to)?;
        let line = LinePlot::new().with_data([(from, ends[1]), (to, ends[1])]);
        Some(
            line.with_color(color)
                .with_stroke_width(1.6)
                .with_dashed()
                .into(),
        )
    });
    lines.collect()
}

/// Marks that have a position, from left to right, each in the colour of its line.
fn drawn_marks(curve: &Curve) -> Vec<(&CurveMark, &'static str)> {
    let colors: Vec<&'static str> = series_colors(curve, &LIGHT).map(|(_, one)| one).collect();
    let place = |mark: &CurveMark| mark.at.value.or(mark.at.low);
    let mut marks: Vec<&CurveMark> = curve.marks.iter().filter(|m| place(m).is_some()).collect();
    marks.sort_by(|a, b| f64::total_cmp(&place(a).unwrap_or(0.0), &place(b).unwrap_or(0.0)));
    let color = |mark: &CurveMark| colors.get(mark.series?).copied();
    let marks = marks.into_iter();
    marks
        .map(|mark| (mark, color(mark).unwrap_or(LIGHT.muted)))
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
    use crate::sample;

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
        let marks = drawn_marks(&curve);
        let marks: Vec<_> = marks
            .iter()
            .map(|(mark, color)| (mark.label.as_str(), *color))
            .collect();
        assert_eq!(
            marks,
            [("left", LIGHT.series[1]), ("knee, zero", LIGHT.muted)]
        );
        let svg = draw(&curve, "x".into()).unwrap().svg;
        let places = [">left ", ">knee, zero "].map(|label| svg.find(label).expect(label));
        assert!(places.is_sorted());
    }

    #[test]
    fn a_scan_of_even_steps_gets_a_linear_axis() {
        for (levels, is_linear) in [
            (&[1.0, 2.0, 3.0][..], true),
            (&[0.5, 1.0, 1.5, 2.0], true),
            (&[1.0, 2.0, 4.0, 8.0], false),
            (&[1.0, 10.0, 100.0], false),
            (&[1.0, 100.0], false),
        ] {
            assert_eq!(is_even(levels), is_linear, "{levels:?}");
        }
    }

    #[test]
    fn plateaus_are_drawn_as_dashed_lines() {
        let sample = sample::copying();
        let Figure::Curve(mut curve) = sample.analysis.figures[0].clone() else {
            panic!("the first figure is a curve");
        };
        let dashes = |curve: &Curve| {
            let svg = draw(curve, "x".into()).unwrap().svg;
            svg.matches("stroke-dasharray").count()
        };
        let before = dashes(&curve);
        let mut plateaus = sample.analysis.staircases[0].plateaus.clone();
        for plateau in &mut plateaus {
            plateau.value.value = 9e9;
        }
        curve.series[0].plateaus = plateaus;
        assert_eq!(dashes(&curve), before + 3);
    }
}
