//! A price list as dots with intervals on one logarithmic axis.

use kuva::plot::{ForestPlot, ForestRow};
use kuva::render::layout::ComputedLayout;
use kuva::render::render::{Primitive, TextAnchor};

use super::chart::{Axis, Chart, NamedPlot, Scale, Vertical, area, row_label, text};
use super::palette::LIGHT;
use crate::claim::model::{DerivedValue, Estimate, Price};
use crate::format;

const ROW_HEIGHT: f64 = 19.0;
/// Room for the numbers beside the axis.
const RIGHT_COLUMN: f64 = 190.0;

/// Draws the listed prices that are times; `None` without any.
pub fn draw(prices: &[Price], name: String) -> Option<NamedPlot> {
    let mut rows: Vec<(&Price, Estimate)> = prices.iter().filter_map(drawn).collect();
    let ends = rows
        .iter()
        .flat_map(|(_, one)| [one.low, one.value, one.high]);
    let x = Axis::over(ends, Scale::Log, "ns", "time (logarithmic)")?;
    // Rows are numbered from the bottom.
    rows.reverse();
    let labels = rows.iter().map(|(price, _)| row_label(&price.name));
    let chart = Chart {
        right: Some(RIGHT_COLUMN),
        ..Chart::new("Prices", x, Vertical::Rows(labels.collect(), ROW_HEIGHT))
    };
    let layout = chart.layout();
    let on = ComputedLayout::from_layout(&layout);
    let marks = [stripes(&rows, &on), numbers(&rows, &on)];
    let data = vec![intervals(&rows, &chart.x).into()];
    let each = rows.iter().rev();
    let each = each.map(|(price, _)| format!("{} {}", price.name, price_text(price)));
    let alt_text = format!("Prices: {}.", each.collect::<Vec<_>>().join("; "));
    Some(chart.finish(name, &alt_text, layout, data, marks))
}

fn drawn(price: &Price) -> Option<(&Price, Estimate)> {
    let DerivedValue {
        value,
        low,
        high,
        confidence,
    } = price.value?;
    let one = Estimate {
        value: value?,
        low: low?,
        high: high?,
        confidence,
    };
    (price.group.is_some() && price.unit == "ns" && one.low > 0.0).then_some((price, one))
}

fn intervals(rows: &[(&Price, Estimate)], x: &Axis) -> ForestPlot {
    let mut forest = ForestPlot::new()
        .with_marker_size(4.5)
        .with_whisker_width(2.5)
        .with_show_null_line(false);
    forest.null_value = None;
    // kuva puts the first row on top.
    for (price, one) in rows.iter().rev() {
        let [value, low, high] =
            [one.value, one.low, one.high].map(|at| x.clamped(at).unwrap_or(at));
        forest.rows.push(ForestRow {
            color: Some(LIGHT.series[0].to_owned()),
            ..ForestRow::new(row_label(&price.name), value, low, high)
        });
    }
    forest
}

/// Shades every second group.
fn stripes(rows: &[(&Price, Estimate)], on: &ComputedLayout) -> Vec<Primitive> {
    let half = ROW_HEIGHT / 2.0;
    let mut marks = Vec::new();
    let (mut is_grey, mut before) = (false, None);
    for (index, (price, _)) in rows.iter().enumerate() {
        is_grey ^= before.is_some_and(|group| group != &price.group);
        before = Some(&price.group);
        if is_grey {
            let y = on.map_y(index as f64 + 1.0);
            let (from, to) = ((8.0, y - half), (on.width - 8.0, y + half));
            marks.push(area(from, to, LIGHT.grid, 0.4));
        }
    }
    marks
}

fn numbers(rows: &[(&Price, Estimate)], on: &ComputedLayout) -> Vec<Primitive> {
    let number = |(index, (price, _)): (usize, &(&Price, Estimate))| {
        let at = (on.width - 16.0, on.map_y(index as f64 + 1.0) + 4.5);
        text(&price_text(price), at, TextAnchor::End, LIGHT.ink)
    };
    rows.iter().enumerate().map(number).collect()
}

fn price_text(price: &Price) -> String {
    let parts = price
        .value
        .as_ref()
        .map(|value| format::price_parts(value, &price.unit));
    parts.map_or_else(String::new, |(value, ends)| format!("{value} {ends}"))
}
