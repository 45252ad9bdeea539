//! Medians of treatments as bars, published values beside them.

use kuva::render::render::Primitive;

use super::axis::{Axis, Scale};
use super::frame::{self, Frame, LegendEntry, Swatch};
use super::ink::{self, LABEL_SIZE, TICK_SIZE, Text, shorten, text_width};
use super::{NamedPlot, Theme};
use crate::claim::model::{Bar, BarChart};
use crate::format;

const WIDTH: f64 = 960.0;
const ROW_HEIGHT: f64 = 38.0;
const LABEL_CHARACTERS_MAX: usize = 44;
/// Half of a bar's height in pixels.
const HALF_BAR: f64 = 11.0;
const TICKS_MAX: usize = 7;

/// Draws the bars, first on top; `None` if there is no value to draw.
#[must_use]
pub fn draw(chart: &BarChart, name: String, theme: Theme) -> Option<NamedPlot> {
    let palette = theme.palette();
    let rows: Vec<&Bar> = chart.bars.iter().rev().collect();
    let legend = legend(chart, palette);
    let top = frame::heading_height(&legend, WIDTH, false) + 4.0;
    let bottom = 52.0;
    let widest = |texts: &mut dyn Iterator<Item = String>, size| {
        texts
            .map(|text| text_width(&text, size))
            .fold(0.0, f64::max)
    };
    let frame = Frame {
        width: WIDTH,
        height: top + bottom + ROW_HEIGHT * rows.len() as f64,
        left: widest(&mut rows.iter().map(|bar| label(bar)), LABEL_SIZE) + 34.0,
        right: widest(&mut rows.iter().map(|bar| value(bar, chart)), TICK_SIZE) + 34.0,
        top,
        bottom,
        above: 0.0,
        palette,
        median: palette.ink,
        title: chart.title.clone(),
        legend,
        x: axis(chart)?,
        y: Axis::of_rows(rows.len()),
    };
    let mut over = Vec::new();
    for (row, bar) in rows.into_iter().enumerate() {
        over.extend(draw_bar(bar, chart, &frame, frame.at_y(row as f64 + 1.0)));
    }
    let scene = frame.draw(Vec::new(), Vec::new(), over);
    let alt_text = alt_text(chart);
    Some(frame::finish(scene, name, &chart.title, &alt_text, theme))
}

/// Unit of the bars' lengths.
fn unit(chart: &BarChart) -> &str {
    match chart.relative_to {
        Some(_) => "",
        None => &chart.unit,
    }
}

fn axis(chart: &BarChart) -> Option<Axis> {
    let lengths = chart.bars.iter().flat_map(|bar| {
        let measured = bar.length.map(|length| length.high);
        measured.into_iter().chain(bar.published)
    });
    let title = match &chart.relative_to {
        Some(reference) => format!("{}, ratio to {reference}", chart.metric),
        None => chart.metric.clone(),
    };
    let axis = Axis::over(lengths, Scale::Linear, unit(chart), &title, TICKS_MAX)?;
    Some(axis.from_zero(unit(chart), TICKS_MAX))
}

fn label(bar: &Bar) -> String {
    shorten(&bar.label, LABEL_CHARACTERS_MAX)
}

/// What stands at the end of a bar: its length, and the median if that is
/// another number.
fn value(bar: &Bar, chart: &BarChart) -> String {
    let median = bar
        .median
        .map(|median| format::value(median.value, &chart.unit));
    let length = bar.length.map(|length| format::ratio(length.value));
    match (&chart.relative_to, length, median) {
        (Some(_), Some(length), Some(median)) => format!("{length} ({median})"),
        (_, _, Some(median)) => median,
        _ => "not measured".to_owned(),
    }
}

fn legend(chart: &BarChart, palette: &'static super::palette::Palette) -> Vec<LegendEntry> {
    let mut legend = vec![LegendEntry {
        label: "measured here: median, 95 % interval".into(),
        color: palette.series[0],
        swatch: Swatch::Area,
    }];
    if chart.bars.iter().any(|bar| bar.published.is_some()) {
        legend.push(LegendEntry {
            label: chart.report.clone(),
            color: palette.published,
            swatch: Swatch::Diamond,
        });
    }
    legend
}

fn draw_bar(bar: &Bar, chart: &BarChart, frame: &Frame, y: f64) -> Vec<Primitive> {
    let palette = frame.palette;
    let pixel = |value: f64| {
        let coordinate = Scale::Linear.coordinate(value)?;
        Some(frame.at_x(coordinate.clamp(frame.x.low, frame.x.high)))
    };
    let name = Text::new(&label(bar), frame.left - 14.0, y + 4.5).end();
    let number = Text::new(&value(bar, chart), frame.edge() + 12.0, y + 4.5);
    let mut drawn = vec![name.size(LABEL_SIZE).draw(), number.draw()];
    if let Some(length) = &bar.length
        && let (Some(low), Some(end), Some(high)) =
            (pixel(length.low), pixel(length.value), pixel(length.high))
    {
        let (from, to) = ((frame.left, y - HALF_BAR), (end, y + HALF_BAR));
        drawn.push(ink::area(from, to, palette.series[0], 0.55));
        drawn.push(ink::line((low, y), (high, y), palette.ink, 1.6));
        for x in [low, high] {
            drawn.push(ink::line((x, y - 4.0), (x, y + 4.0), palette.ink, 1.6));
        }
    }
    if let Some(x) = bar.published.and_then(pixel) {
        drawn.push(ink::diamond(x, y, palette.published, palette));
    }
    drawn
}

fn alt_text(chart: &BarChart) -> String {
    let bars = chart.bars.iter().map(|bar| {
        let published = bar.published.map_or("nothing".to_owned(), |published| {
            format::value(published, unit(chart))
        });
        let measured = value(bar, chart);
        format!("{}: {measured}, published {published}", bar.label)
    });
    let bars: Vec<String> = bars.collect();
    let of = match &chart.relative_to {
        Some(reference) => format!("Ratios of medians to {reference}"),
        None => "Medians".to_owned(),
    };
    format!("{}. {of}. {}.", chart.title, bars.join("; "))
}
