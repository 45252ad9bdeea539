//! A plot of characters for a terminal.

use kuva::TerminalBackend;
use kuva::plot::LinePlot;
use kuva::prelude::{Layout, Plot};
use kuva::render::layout::ComputedLayout;
use kuva::render::render::{Primitive, Scene, TextAnchor};
use toll_document::{Document, figure};

use super::chart::{self, Axis, Chart, Vertical, line, shorten, text};
use super::palette::TERMINAL;
use super::{curve, forest};
use crate::claim::model::{Analysis, Curve, Figure, Verdict};

/// Pixels of a character cell. kuva scales a drawing to the cells, so any two
/// numbers work as long as text and margins are based on them.
const CELL: (f64, f64) = (8.0, 16.0);
const COLUMNS_MIN: usize = 44;
const COLUMNS_MAX: usize = 110;
const CURVE_ROWS: usize = 18;
/// Rows of a plot that are not claims: ticks, title of the axis.
const FOREST_EXTRA_ROWS: usize = 4;
const FOREST_CLAIMS_MAX: usize = 40;

/// The first curve, or the claims if there is none. Nothing is shown without room, or if the
/// terminal is limited to ASCII.
pub fn of_run(analysis: &Analysis) -> Document {
    let mut curves = analysis.figures.iter().filter_map(|one| match one {
        Figure::Curve(curve) => Some(curve.clone()),
        Figure::Distribution(_) | Figure::Box(_) | Figure::Bar(_) => None,
    });
    if let Some(curve) = curves.next() {
        return plot(move |columns| draw_curve(&curve, columns));
    }
    let claims = forest::rows(analysis).into_iter().take(FOREST_CLAIMS_MAX);
    let claims: Vec<Verdict> = claims.cloned().collect();
    plot(move |columns| draw_claims(&claims, columns))
}

/// What `draw` draws for a number of columns.
fn plot(draw: impl Fn(usize) -> Option<String> + 'static) -> Document {
    figure(move |style| {
        if !style.unicode || style.width < COLUMNS_MIN {
            return None;
        }
        let text = draw(style.width.min(COLUMNS_MAX))?;
        Some(if style.color {
            text
        } else {
            without_color(&text)
        })
    })
}

fn layout(chart: &Chart, [columns, rows, ticks]: [usize; 3], left_columns: usize) -> Layout {
    let mut layout = chart
        .axes(&TERMINAL, ticks)
        .with_show_grid(false)
        .with_width(columns as f64 * CELL.0)
        .with_height(rows as f64 * CELL.1)
        .with_force_margins((left_columns as f64 + 2.0) * CELL.0, 3.0 * CELL.0)
        .with_force_margins_y(1.1 * CELL.1, 2.9 * CELL.1)
        .with_x_label(shorten(&chart.x.title, columns));
    layout.show_legend = false;
    layout
}

/// Draws with kuva and moves text below the axis down by half a row: tick labels
/// would otherwise share a row with the axis line.
fn draw_plain(data: Vec<Plot>, layout: Layout, places: &ComputedLayout) -> Scene {
    let floor = places.height - places.margin_bottom;
    let mut scene = chart::draw(data, layout);
    for element in &mut scene.elements {
        if let Primitive::Text { y, .. } = element
            && *y > floor
        {
            *y += CELL.1 / 2.0;
        }
    }
    scene
}

fn draw_curve(curve: &Curve, columns: usize) -> Option<String> {
    let (x, y) = curve::axes(curve)?;
    let y_title = y.title.clone();
    let mut lines: Vec<Plot> = Vec::new();
    let mut letters = Vec::new();
    let mut legend = String::new();
    let colors = curve::series_colors(curve, &TERMINAL);
    for ((series, color), letter) in colors.zip('a'..='z') {
        let points = series.points.iter().filter_map(|point| {
            let place = (
                x.scale.coordinate(point.x)?,
                y.scale.coordinate(point.y.value)?,
            );
            Some(place)
        });
        let points: Vec<(f64, f64)> = points.collect();
        // Letters distinguish the series without colour.
        letters.extend(points.iter().map(|place| (letter.to_string(), *place)));
        lines.push(LinePlot::new().with_data(points).with_color(color).into());
        let published = if series.published { " (published)" } else { "" };
        let label = shorten(&series.label, columns - 16);
        legend.push_str(&format!("  {letter} {label}{published}\n"));
    }
    let label_columns = y.label_characters(chart::VERTICAL_TICKS_MAX);
    let chart = Chart::new("", x, Vertical::Axis(y));
    let size = [columns, CURVE_ROWS, (columns / 10).max(2)];
    let layout = layout(&chart, size, label_columns);
    let places = ComputedLayout::from_layout(&layout);
    let mut scene = draw_plain(lines, layout, &places);
    scene
        .elements
        .extend(letters.iter().map(|(letter, (x, y))| {
            let at = (places.map_x(*x), places.map_y(*y) + 4.0);
            text(letter, at, TextAnchor::Start, TERMINAL.ink)
        }));
    let plot = TerminalBackend::new(columns, CURVE_ROWS).render_scene(&scene);
    let title = shorten(&curve.title, columns);
    Some(format!(
        "{title}\n{legend}{}\n{plot}\n",
        shorten(&y_title, columns)
    ))
}

fn draw_claims(claims: &[Verdict], columns: usize) -> Option<String> {
    let mut claims: Vec<&Verdict> = claims.iter().collect();
    let x = forest::ratio_axis(&claims)?;
    let longest = claims.iter().map(|claim| claim.id.chars().count()).max();
    let label_columns = longest.unwrap_or(0).min(columns / 3);
    claims.reverse();
    let labels = claims.iter().map(|claim| shorten(&claim.id, label_columns));
    let chart = Chart::new("", x, Vertical::Rows(labels.collect(), 1.0));
    let rows = claims.len() + FOREST_EXTRA_ROWS;
    let size = [columns, rows, (columns / 12).max(2)];
    let mut layout = layout(&chart, size, label_columns);
    if let Vertical::Rows(labels, _) = &chart.y {
        layout = layout.with_y_categories(labels.clone());
    }
    let places = ComputedLayout::from_layout(&layout);
    let mut scene = draw_plain(Vec::new(), layout, &places);
    let one = places.map_x(1.0);
    let ends = [0.5, claims.len() as f64 + 0.5].map(|end| (one, places.map_y(end)));
    scene
        .elements
        .push(line(ends[0], ends[1], TERMINAL.reference, 1.0));
    for (index, claim) in claims.iter().enumerate() {
        let y = places.map_y(index as f64 + 1.0);
        scene
            .elements
            .extend(claim_marks(claim, y, &chart.x, &places));
    }
    let plot = TerminalBackend::new(columns, rows).render_scene(&scene);
    Some(format!("Claims: measured ratio ●, published ◇\n{plot}\n"))
}

fn claim_marks(claim: &Verdict, y: f64, axis: &Axis, places: &ComputedLayout) -> Vec<Primitive> {
    let place = |value: f64| places.map_x(axis.clamped(value).unwrap_or(axis.ends.0));
    let mark = |sign: &str, value: f64| {
        text(
            sign,
            (place(value), y + 4.0),
            TextAnchor::Start,
            TERMINAL.ink,
        )
    };
    let mut marks = Vec::new();
    if let Some(measured) = &claim.measured {
        let color = TERMINAL.outcome(claim.outcome);
        let (low, high) = (place(measured.low), place(measured.high));
        if high - low > CELL.0 {
            marks.push(line((low, y), (high, y), color, 1.0));
        }
    }
    marks.extend(claim.published.map(|value| mark("◇", value)));
    marks.extend(claim.measured.map(|measured| mark("●", measured.value)));
    marks
}

/// Removes the colour codes (`ESC [ … m`).
pub fn without_color(text: &str) -> String {
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
