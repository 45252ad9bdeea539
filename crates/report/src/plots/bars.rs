//! Medians of treatments as bars, with the published values.

use kuva::plot::MarkerShape;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::layout::ComputedLayout;
use kuva::render::render::{Primitive, TextAnchor};

use super::chart::{
    Axis, Chart, NamedPlot, Scale, Vertical, area, diamond, entry, line, row_label, text,
    text_width,
};
use super::palette::LIGHT;
use crate::claim::metric_words;
use crate::claim::model::{Bar, BarChart};
use crate::format;

const ROW_HEIGHT: f64 = 38.0;
/// Half of a bar's height in pixels.
const HALF_BAR: f64 = 11.0;

/// Draws the bars, first on top; `None` if there is no value to draw.
pub fn draw(chart: &BarChart, name: String) -> Option<NamedPlot> {
    let rows: Vec<&Bar> = chart.bars.iter().rev().collect();
    let labels = rows.iter().map(|bar| row_label(&bar.label)).collect();
    let numbers = rows.iter().map(|bar| text_width(&value(bar, chart)));
    let drawn = Chart {
        legend: legend(chart),
        right: Some(numbers.fold(0.0, f64::max) + 34.0),
        ..Chart::new(
            &chart.title,
            axis(chart)?,
            Vertical::Rows(labels, ROW_HEIGHT),
        )
    };
    let layout = drawn.layout();
    let places = ComputedLayout::from_layout(&layout);
    let mut over = Vec::new();
    for (row, bar) in rows.into_iter().enumerate() {
        let y = places.map_y(row as f64 + 1.0);
        over.extend(draw_bar(bar, &drawn.x, &places, y));
        let beside = (places.width - places.margin_right + 12.0, y + 4.5);
        over.push(text(
            &value(bar, chart),
            beside,
            TextAnchor::Start,
            LIGHT.ink,
        ));
    }
    let marks = [Vec::new(), over];
    Some(drawn.finish(name, &alt_text(chart), layout, Vec::new(), marks))
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
        Some(reference) => format!("{}, ratio to {reference}", metric_words(&chart.metric)),
        None => metric_words(&chart.metric),
    };
    Some(Axis::over(lengths, Scale::Linear, unit(chart), &title)?.starting_at_zero())
}

/// The text at the end of a bar: the bar's length and, if that is not the median, the median.
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

fn legend(chart: &BarChart) -> Vec<LegendEntry> {
    let measured = "measured here: median, 95 % interval";
    let mut legend = vec![entry(measured, LIGHT.series[0], LegendShape::Rect)];
    if chart.bars.iter().any(|bar| bar.published.is_some()) {
        let shape = LegendShape::Marker(MarkerShape::Diamond);
        legend.push(entry(&chart.report, LIGHT.published, shape));
    }
    legend
}

fn draw_bar(bar: &Bar, axis: &Axis, places: &ComputedLayout, y: f64) -> Vec<Primitive> {
    let pixel = |value: f64| Some(places.map_x(axis.clamped(value)?));
    let mut drawn = Vec::new();
    if let Some(length) = &bar.length
        && let (Some(low), Some(end), Some(high)) =
            (pixel(length.low), pixel(length.value), pixel(length.high))
    {
        let (from, to) = ((places.margin_left, y - HALF_BAR), (end, y + HALF_BAR));
        drawn.push(area(from, to, LIGHT.series[0], 0.55));
        drawn.push(line((low, y), (high, y), LIGHT.ink, 1.6));
        for x in [low, high] {
            drawn.push(line((x, y - 4.0), (x, y + 4.0), LIGHT.ink, 1.6));
        }
    }
    drawn.extend(bar.published.and_then(pixel).map(|x| diamond(x, y)));
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
