//! A plot of characters for a terminal.

use kuva::TerminalBackend;
use kuva::plot::LinePlot;
use kuva::prelude::Plot;
use kuva::render::render::Primitive;

use super::axis::{Axis, Scale};
use super::frame::Frame;
use super::ink::{Text, line, shorten};
use super::palette::TERMINAL;
use super::{curve, forest};
use crate::claim::model::{Analysis, Curve, Figure, Verdict};

/// Pixels of a character cell. kuva scales a drawing to the cells, so that any
/// two numbers do, as long as text and margins keep to them.
const CELL: (f64, f64) = (8.0, 16.0);
const COLUMNS_MIN: usize = 44;
const COLUMNS_MAX: usize = 110;
const CURVE_ROWS: usize = 18;
/// Rows of a plot that are not claims: ticks, title of the axis.
const FOREST_EXTRA_ROWS: usize = 4;
const FOREST_CLAIMS_MAX: usize = 40;

/// The first curve, or the claims where there is none.
#[must_use]
pub fn draw(analysis: &Analysis, columns: usize, color: bool) -> Option<String> {
    if columns < COLUMNS_MIN {
        return None;
    }
    let columns = columns.min(COLUMNS_MAX);
    let first_curve = analysis.figures.iter().find_map(|figure| match figure {
        Figure::Curve(curve) => Some(curve),
        Figure::Distribution(_) | Figure::Box(_) | Figure::Bar(_) => None,
    });
    let text = match first_curve {
        Some(curve) => draw_curve(curve, columns)?,
        None => draw_claims(analysis, columns)?,
    };
    Some(if color { text } else { without_color(&text) })
}

fn frame(columns: usize, rows: usize, left_columns: usize, x: Axis, y: Axis) -> Frame {
    Frame {
        width: columns as f64 * CELL.0,
        height: rows as f64 * CELL.1,
        left: (left_columns as f64 + 2.0) * CELL.0,
        right: 3.0 * CELL.0,
        top: 1.5 * CELL.1,
        bottom: 3.5 * CELL.1,
        above: 0.0,
        palette: &TERMINAL,
        median: TERMINAL.surface,
        title: String::new(),
        legend: Vec::new(),
        x,
        y,
    }
}

fn draw_curve(curve: &Curve, columns: usize) -> Option<String> {
    let (x, y) = curve::axes(curve)?;
    let x = x.with_ticks(&curve.factor_unit, (columns / 10).max(2));
    let label_columns = y.ticks.iter().map(|(_, label)| label.chars().count()).max();
    let frame = frame(columns, CURVE_ROWS, label_columns.unwrap_or(0), x, y);
    let mut lines: Vec<Plot> = Vec::new();
    let mut letters = Vec::new();
    let mut legend = String::new();
    let colors = curve::series_colors(curve, &TERMINAL);
    for ((series, color), letter) in colors.zip('a'..='z') {
        let points: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter_map(|point| {
                let x = Scale::Log.coordinate(point.x)?;
                Some((x, frame.y.scale.coordinate(point.y.value)?))
            })
            .collect();
        for (x, y) in &points {
            // Letters tell the series apart without colour.
            let baseline = frame.at_y(*y) + 4.0;
            letters.push(Text::new(&letter.to_string(), frame.at_x(*x), baseline).draw());
        }
        lines.push(LinePlot::new().with_data(points).with_color(color).into());
        let published = if series.published { " (published)" } else { "" };
        legend.push_str(&format!(
            "  {letter} {}{published}\n",
            shorten(&series.label, columns - 16)
        ));
    }
    let scene = frame.draw_plain(lines, letters);
    let plot = TerminalBackend::new(columns, CURVE_ROWS).render_scene(&scene);
    Some(format!(
        "{}\n{legend}{plot}\n",
        shorten(&curve.title, columns)
    ))
}

fn draw_claims(analysis: &Analysis, columns: usize) -> Option<String> {
    let mut claims: Vec<&Verdict> = forest::rows(analysis);
    claims.truncate(FOREST_CLAIMS_MAX);
    let x = forest::ratio_axis(&claims)?.with_ticks("", (columns / 12).max(2));
    let y = Axis {
        scale: Scale::Linear,
        low: 0.5,
        high: claims.len() as f64 + 0.5,
        ticks: Vec::new(),
        title: String::new(),
    };
    let label_columns = claims
        .iter()
        .map(|claim| claim.id.chars().count())
        .max()
        .unwrap_or(0);
    let label_columns = label_columns.min(columns / 3);
    let rows = claims.len() + FOREST_EXTRA_ROWS;
    let mut frame = frame(columns, rows, label_columns, x, y);
    // Each claim in the middle of a row of its own, and the tick labels in the
    // row below the axis.
    (frame.top, frame.bottom) = (1.1 * CELL.1, 2.9 * CELL.1);
    let mut over: Vec<Primitive> = Vec::new();
    let one = frame.at_x(0.0);
    over.push(line(
        (one, frame.top),
        (one, frame.floor()),
        TERMINAL.reference,
        1.0,
    ));
    for (index, claim) in claims.iter().enumerate() {
        let y = frame.at_y((claims.len() - index) as f64);
        let label = shorten(&claim.id, label_columns);
        over.push(Text::new(&label, frame.left - CELL.0, y + 4.0).end().draw());
        over.extend(claim_marks(claim, y, &frame));
    }
    let scene = frame.draw_plain(Vec::new(), over);
    let plot = TerminalBackend::new(columns, rows).render_scene(&scene);
    Some(format!("Claims: measured ratio ●, published ◇\n{plot}\n"))
}

fn claim_marks(claim: &Verdict, y: f64, frame: &Frame) -> Vec<Primitive> {
    let place = |value: f64| {
        let coordinate = Scale::Log.coordinate(value).unwrap_or(frame.x.low);
        frame.at_x(coordinate.clamp(frame.x.low, frame.x.high))
    };
    let mut marks = Vec::new();
    if let Some(measured) = &claim.measured {
        let color = TERMINAL.outcome(claim.outcome);
        let (low, high) = (place(measured.low), place(measured.high));
        if high - low > CELL.0 {
            marks.push(line((low, y), (high, y), color, 1.0));
        }
    }
    if let Some(published) = claim.published {
        marks.push(Text::new("◇", place(published), y + 4.0).draw());
    }
    if let Some(measured) = &claim.measured {
        marks.push(Text::new("●", place(measured.value), y + 4.0).draw());
    }
    marks
}

/// Takes the colour codes (`ESC [ … m`) out again.
fn without_color(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            for code in characters.by_ref() {
                if code == 'm' {
                    break;
                }
            }
        } else {
            plain.push(character);
        }
    }
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    lines.join("\n")
}
