//! Forest plot of the claims about ratios.

use kuva::plot::{ForestPlot, ForestRow};
use kuva::render::render::Primitive;

use super::axis::{Axis, Scale};
use super::frame::{self, Frame, LegendEntry, Swatch};
use super::ink::{self, LABEL_SIZE, Text, diamond, line, shape, shorten, text_width};
use super::palette::Palette;
use super::{NamedPlot, Theme};
use crate::claim::model::{Analysis, ClaimDirection, Outcome, Verdict};
use crate::format;
use crate::report::words;

const WIDTH: f64 = 960.0;
const ROW_HEIGHT: f64 = 25.0;
/// Room for the numbers beside the axis.
const RIGHT_COLUMN: f64 = 252.0;
const LABEL_CHARACTERS_MAX: usize = 36;
/// Ratios beyond this factor of 1 become arrows at the edge: one claim of 3,800
/// would otherwise press all others together.
const NEAR_FACTOR: f64 = 4.0;

/// Draws the claims that have a ratio; `None` if there are none.
#[must_use]
pub fn draw(analysis: &Analysis, name: String, theme: Theme) -> Option<NamedPlot> {
    let rows = rows(analysis);
    let x = ratio_axis(&rows)?;
    let palette = theme.palette();
    let legend = legend(&rows, palette);
    let frame = Frame {
        width: WIDTH,
        height: 0.0,
        left: label_column(&rows),
        right: RIGHT_COLUMN,
        top: frame::heading_height(&legend, WIDTH, false) + 24.0,
        bottom: 50.0,
        above: 0.0,
        palette,
        median: palette.surface,
        title: "Claims: measured and published ratios".to_owned(),
        legend,
        x,
        y: Axis {
            scale: Scale::Linear,
            low: 0.5,
            high: rows.len() as f64 + 0.5,
            ticks: Vec::new(),
            title: String::new(),
        },
    };
    let height = frame.top + frame.bottom + ROW_HEIGHT * rows.len() as f64;
    let frame = Frame { height, ..frame };
    let scene = frame.draw(
        behind(&rows, &frame),
        vec![intervals(&rows, &frame.x, palette).into()],
        marks_and_labels(&rows, &frame),
    );
    let title = frame.title.clone();
    Some(frame::finish(scene, name, &title, &alt_text(&rows), theme))
}

/// The claims about ratios that were measured.
#[must_use]
pub fn rows(analysis: &Analysis) -> Vec<&Verdict> {
    let is_drawn = |verdict: &&Verdict| verdict.unit.is_empty() && verdict.measured.is_some();
    analysis.verdicts.iter().filter(is_drawn).collect()
}

fn label_column(rows: &[&Verdict]) -> f64 {
    let widest = rows
        .iter()
        .map(|verdict| text_width(&shorten(&verdict.id, LABEL_CHARACTERS_MAX), LABEL_SIZE))
        .fold(0.0, f64::max);
    widest + 58.0
}

/// An axis that holds 1 and every ratio near it; `None` without rows.
#[must_use]
pub fn ratio_axis(rows: &[&Verdict]) -> Option<Axis> {
    if rows.is_empty() {
        return None;
    }
    let of_interest = rows.iter().flat_map(|verdict| {
        let ends = verdict.measured.map(|m| [m.low, m.value, m.high]);
        ends.into_iter().flatten().chain(verdict.published)
    });
    let values: Vec<f64> = of_interest
        .filter(|value| *value > 0.0 && value.is_finite())
        .collect();
    let is_near = |value: &f64| value.log10().abs() <= NEAR_FACTOR.log10();
    let near: Vec<f64> = values.iter().copied().filter(is_near).collect();
    // Where most ratios are large, large is what the plot is about.
    let shown = if near.len() * 2 >= values.len() {
        near
    } else {
        values
    };
    Axis::over(
        shown.into_iter().chain([1.0]),
        Scale::Log,
        "",
        "ratio (logarithmic)",
        9,
    )
}

fn legend(rows: &[&Verdict], palette: &Palette) -> Vec<LegendEntry> {
    let outcomes = [
        (Outcome::Supported, "✔ supported"),
        (Outcome::Refuted, "✘ refuted"),
        (Outcome::Inconclusive, "? inconclusive"),
        (Outcome::NotTestable, "– not testable here"),
    ];
    let mut legend: Vec<LegendEntry> = outcomes
        .into_iter()
        .filter(|(outcome, _)| rows.iter().any(|verdict| verdict.outcome == *outcome))
        .map(|(outcome, label)| LegendEntry {
            label: label.to_owned(),
            color: palette.outcome(outcome),
            swatch: Swatch::Square,
        })
        .collect();
    if rows.iter().any(|verdict| verdict.published.is_some()) {
        legend.push(LegendEntry {
            label: "published".to_owned(),
            color: palette.published,
            swatch: Swatch::Diamond,
        });
    }
    legend
}

fn row_y(rows: usize, index: usize) -> f64 {
    (rows - index) as f64
}

/// Stripes to read along, each claim's margin, the line at 1 and the published
/// values, which the measured ones may cover.
fn behind(rows: &[&Verdict], frame: &Frame) -> Vec<Primitive> {
    let palette = frame.palette;
    let half = ROW_HEIGHT / 2.0;
    let mut marks = Vec::new();
    for (index, verdict) in rows.iter().enumerate() {
        let y = frame.at_y(row_y(rows.len(), index));
        if index % 2 == 1 {
            let (from, to) = ((8.0, y - half), (frame.width - 8.0, y + half));
            marks.push(ink::area(from, to, palette.grid, 0.4));
        }
        let band = match verdict.direction {
            ClaimDirection::Equal => verdict.margin,
            _ => verdict.noise_margin,
        };
        let margin =
            [1.0 - band, 1.0 + band].map(|side| Scale::Log.coordinate(verdict.threshold * side));
        if let [Some(low), Some(high)] = margin
            && low >= frame.x.low
            && high <= frame.x.high
        {
            let (from, to) = ((frame.at_x(low), y - half), (frame.at_x(high), y + half));
            marks.push(ink::area(from, to, palette.reference, 0.28));
        }
    }
    let one = frame.at_x(0.0);
    let (from, to) = ((one, frame.top), (one, frame.floor()));
    marks.push(line(from, to, palette.reference, 1.2));
    for (index, verdict) in rows.iter().enumerate() {
        let y = frame.at_y(row_y(rows.len(), index));
        marks.extend(
            verdict
                .published
                .and_then(|value| published_mark(value, y, frame)),
        );
    }
    marks
}

/// The measured intervals, cut off at the axis's ends.
fn intervals(rows: &[&Verdict], x: &Axis, palette: &Palette) -> ForestPlot {
    let mut forest = ForestPlot::new()
        .with_marker_size(4.5)
        .with_whisker_width(2.5)
        .with_show_null_line(false);
    forest.null_value = None;
    for verdict in rows {
        let coordinate = |value: f64| {
            let coordinate = Scale::Log.coordinate(value);
            // A ratio of zero or less has no place but the left end.
            let end = if value > 0.0 { x.high } else { x.low };
            coordinate.unwrap_or(end).clamp(x.low, x.high)
        };
        let Some(measured) = verdict.measured else {
            continue;
        };
        let [value, low, high] = [measured.value, measured.low, measured.high].map(coordinate);
        // An arrow head stands for a ratio past the edge; its square shrinks.
        let inside = value > x.low && value < x.high;
        let color = palette.outcome(verdict.outcome).to_owned();
        forest.rows.push(ForestRow {
            color: Some(color),
            weight: Some(if inside { 1.0 } else { 0.0 }),
            ..ForestRow::new("", value, low, high)
        });
    }
    forest
}

fn marks_and_labels(rows: &[&Verdict], frame: &Frame) -> Vec<Primitive> {
    let palette = frame.palette;
    let heading = frame.top - 10.0;
    let number = frame.width - 94.0;
    let published = frame.width - 16.0;
    let mut marks = vec![
        Text::new("measured", number, heading)
            .end()
            .color(palette.muted)
            .draw(),
        Text::new("published", published, heading)
            .end()
            .color(palette.muted)
            .draw(),
    ];
    for (index, verdict) in rows.iter().enumerate() {
        let y = frame.at_y(row_y(rows.len(), index));
        let baseline = y + 4.5;
        let color = palette.outcome(verdict.outcome);
        let symbol = words::symbol(verdict.outcome);
        marks.push(
            Text::new(symbol, 24.0, baseline)
                .middle()
                .size(LABEL_SIZE)
                .color(color)
                .draw(),
        );
        let id = shorten(&verdict.id, LABEL_CHARACTERS_MAX);
        marks.push(Text::new(&id, 40.0, baseline).size(LABEL_SIZE).draw());
        if let Some(measured) = &verdict.measured {
            let text = format::ratio_interval(measured);
            marks.push(Text::new(&text, number, baseline).end().draw());
            marks.extend(arrow(measured.value, y, 0.0, frame, color));
        }
        if let Some(value) = verdict.published {
            let text = Text::new(&format::ratio(value), published, baseline).end();
            marks.push(text.color(palette.published).draw());
        }
    }
    marks
}

fn published_mark(value: f64, y: f64, frame: &Frame) -> Option<Primitive> {
    let coordinate = Scale::Log.coordinate(value)?;
    if coordinate < frame.x.low || coordinate > frame.x.high {
        return arrow(value, y, ARROW, frame, frame.palette.published);
    }
    Some(diamond(
        frame.at_x(coordinate),
        y,
        frame.palette.published,
        frame.palette,
    ))
}

/// Length of an arrow head.
const ARROW: f64 = 11.0;

/// An arrow head `offset` past the edge for a ratio that lies beyond it.
fn arrow(value: f64, y: f64, offset: f64, frame: &Frame, color: &str) -> Option<Primitive> {
    let coordinate = Scale::Log.coordinate(value)?;
    let (edge, direction) = if coordinate > frame.x.high {
        (frame.edge(), 1.0)
    } else if coordinate < frame.x.low {
        (frame.left, -1.0)
    } else {
        return None;
    };
    let base = edge + direction * (2.0 + offset);
    let tip = base + direction * (ARROW - 3.0);
    let fill = if offset > 0.0 {
        frame.palette.surface
    } else {
        color
    };
    Some(shape(
        &[(base, y - 5.0), (tip, y), (base, y + 5.0)],
        Some(fill),
        color,
    ))
}

fn alt_text(rows: &[&Verdict]) -> String {
    let claims: Vec<String> = rows
        .iter()
        .filter_map(|verdict| {
            let measured = format::ratio_interval(verdict.measured.as_ref()?);
            let published = verdict.published.map_or_else(String::new, |value| {
                format!(", published {}", format::ratio(value))
            });
            Some(format!("{} {measured}{published}", verdict.id))
        })
        .collect();
    format!(
        "Forest plot of {} ratios. {}.",
        rows.len(),
        claims.join("; ")
    )
}
