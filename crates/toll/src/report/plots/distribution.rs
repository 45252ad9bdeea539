//! The values of trials, group by group.

use kuva::plot::{BoxPlot, RaincloudPlot, StripPlot};
use kuva::prelude::Plot;
use kuva::render::render::Primitive;

use super::axis::Axis;
use super::frame::{self, Frame};
use super::ink::{LABEL_SIZE, Text, shorten, text_width};
use super::{NamedPlot, Theme};
use crate::claim::model::Distribution;
use crate::format;

const WIDTH: f64 = 960.0;
/// Up to here each group has room for its shape; above, boxes say more.
const RAINCLOUD_GROUPS_MAX: usize = 8;
const LABEL_CHARACTERS_MAX: usize = 44;
/// Fewer values than this have no shape that a density could show.
const CLOUD_VALUES_MIN: usize = 5;

/// Draws the groups, first on top; `None` if there is no value to draw.
#[must_use]
pub fn draw(distribution: &Distribution, name: String, theme: Theme) -> Option<NamedPlot> {
    let groups = coordinates_by_group(distribution)?;
    let palette = theme.palette();
    let clouds = groups.rows.len() <= RAINCLOUD_GROUPS_MAX;
    let row_height = if clouds { 66.0 } else { 30.0 };
    let count = groups.rows.len();
    let top = frame::heading_height(&[], WIDTH, false) + 4.0;
    let bottom = 52.0;
    let widest = groups
        .rows
        .iter()
        .map(|(label, _)| text_width(label, LABEL_SIZE))
        .fold(0.0, f64::max);
    let frame = Frame {
        width: WIDTH,
        height: top + bottom + row_height * count as f64,
        left: widest + 34.0,
        right: 30.0,
        top,
        bottom,
        above: 0.0,
        palette,
        median: if clouds { palette.surface } else { palette.ink },
        title: distribution.title.clone(),
        legend: Vec::new(),
        x: groups.axis,
        y: Axis::of_rows(count),
    };
    let color = palette.series[0];
    let data = if clouds {
        rainclouds(&groups.rows, color)
    } else {
        boxes(&groups.rows, color)
    };
    let scene = frame.draw(
        frame::rules(&frame, groups.rows.len()),
        data,
        labels(&frame, &groups.rows),
    );
    let alt_text = alt_text(distribution);
    Some(frame::finish(
        scene,
        name,
        &distribution.title,
        &alt_text,
        theme,
    ))
}

/// A row's label and its values as coordinates.
type Row = (String, Vec<f64>);

struct Rows {
    axis: Axis,
    /// Bottom row first, as kuva counts.
    rows: Vec<Row>,
}

fn coordinates_by_group(distribution: &Distribution) -> Option<Rows> {
    let values = || {
        distribution
            .groups
            .iter()
            .flat_map(|group| group.values.iter().copied())
    };
    let axis = Axis::of_trials(values(), &distribution.metric, &distribution.unit)?;
    let scale = axis.scale;
    let rows = distribution.groups.iter().rev().map(|group| {
        let values = group
            .values
            .iter()
            .filter_map(|value| scale.coordinate(*value));
        (
            shorten(&group.label, LABEL_CHARACTERS_MAX),
            values.collect(),
        )
    });
    Some(Rows {
        rows: rows.collect(),
        axis,
    })
}

fn rainclouds(rows: &[Row], color: &str) -> Vec<Plot> {
    let enough = rows
        .iter()
        .all(|(_, values)| values.len() >= CLOUD_VALUES_MIN);
    let mut plot = RaincloudPlot::new()
        .with_horizontal(true)
        .with_cloud(enough)
        .with_cloud_width(24.0)
        .with_cloud_alpha(0.35)
        .with_cloud_offset(0.10)
        .with_rain_offset(0.24)
        .with_rain_size(2.6)
        .with_rain_alpha(0.75)
        .with_rain_jitter(0.06)
        .with_box_width(0.13)
        .with_group_colors(vec![color.to_owned(); rows.len()]);
    for (label, values) in rows {
        plot = plot.with_group(label.clone(), values.clone());
    }
    vec![plot.into()]
}

fn boxes(rows: &[Row], color: &str) -> Vec<Plot> {
    let mut boxes = BoxPlot::new()
        .with_horizontal(true)
        .with_color(color)
        .with_width(0.42);
    let mut dots = StripPlot::new()
        .with_horizontal(true)
        .with_color(color)
        .with_point_size(2.2)
        .with_marker_opacity(0.35)
        .with_jitter(0.3);
    for (label, values) in rows {
        boxes = boxes.with_group(label.clone(), values.iter().copied());
        dots = dots.with_group(label.clone(), values.iter().copied());
    }
    vec![dots.into(), boxes.into()]
}

fn labels(frame: &Frame, rows: &[Row]) -> Vec<Primitive> {
    rows.iter()
        .enumerate()
        .map(|(row, (label, _))| {
            let y = frame.at_y(row as f64 + 1.0) + 4.5;
            let text = Text::new(label, frame.left - 14.0, y).end();
            text.size(LABEL_SIZE).draw()
        })
        .collect()
}

fn alt_text(distribution: &Distribution) -> String {
    let groups: Vec<String> = distribution
        .groups
        .iter()
        .map(|group| {
            let low = group.values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = group
                .values
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max);
            format!(
                "{}: {} to {} over {} trials",
                group.label,
                format::value(low, &distribution.unit),
                format::value(high, &distribution.unit),
                group.values.len()
            )
        })
        .collect();
    format!("{}. {}.", distribution.title, groups.join("; "))
}
