//! The values of trials, group by group.

use kuva::plot::{BoxPlot, RaincloudPlot, StripPlot};
use kuva::prelude::Plot;
use toll_document::plural;

use super::chart::{Axis, Chart, NamedPlot, Scale, Vertical, row_label};
use super::palette::LIGHT;
use crate::claim::model::Distribution;
use crate::format;

/// Maximum number of groups that each have room for their shape. With more groups, boxes are
/// clearer.
const RAINCLOUD_GROUPS_MAX: usize = 8;
/// Fewer values than this have no shape that a density could show.
const CLOUD_VALUES_MIN: usize = 5;

/// A row's label and its values.
type Row = (String, Vec<f64>);

/// Draws the groups, first on top; `None` if there is no value to draw.
pub fn draw(distribution: &Distribution, name: String) -> Option<NamedPlot> {
    let groups = || distribution.groups.iter();
    let values = groups().flat_map(|group| group.values.iter().copied());
    let is_raincloud = distribution.groups.len() <= RAINCLOUD_GROUPS_MAX;
    let mut x = Axis::of_trials(values.clone(), &distribution.metric, &distribution.unit)?;
    if is_raincloud && x.scale == Scale::Log {
        x = Axis::over(values, Scale::Decades, &x.unit, &x.title)?;
    }
    // kuva counts rows from the bottom.
    let rows = groups().rev().map(|group| {
        let values = group.values.iter();
        let places = values.filter_map(|value| x.scale.coordinate(*value));
        (row_label(&group.label), places.collect())
    });
    let rows: Vec<Row> = rows.collect();
    let labels = rows.iter().map(|(label, _)| label.clone()).collect();
    let (data, row_height, median) = if is_raincloud {
        (raincloud(&rows), 66.0, LIGHT.surface)
    } else {
        (boxes(&rows), 30.0, LIGHT.ink)
    };
    let chart = Chart {
        median,
        ..Chart::new(&distribution.title, x, Vertical::Rows(labels, row_height))
    };
    let (layout, marks) = (chart.layout(), Default::default());
    Some(chart.finish(name, &alt_text(distribution), layout, data, marks))
}

fn raincloud(rows: &[Row]) -> Vec<Plot> {
    let has_shape = |(_, values): &Row| values.len() >= CLOUD_VALUES_MIN;
    let mut plot = RaincloudPlot::new()
        .with_horizontal(true)
        .with_cloud(rows.iter().all(has_shape))
        .with_cloud_width(24.0)
        .with_cloud_alpha(0.35)
        .with_cloud_offset(0.10)
        .with_rain_offset(0.24)
        .with_rain_size(2.6)
        .with_rain_alpha(0.75)
        .with_rain_jitter(0.06)
        .with_box_width(0.13)
        .with_group_colors(vec![LIGHT.series[0].to_owned(); rows.len()]);
    for (label, values) in rows {
        plot = plot.with_group(label.clone(), values.clone());
    }
    vec![plot.into()]
}

fn boxes(rows: &[Row]) -> Vec<Plot> {
    let color = LIGHT.series[0];
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
                "{}: {} to {} over {}",
                group.label,
                format::value(low, &distribution.unit),
                format::value(high, &distribution.unit),
                plural(group.values.len(), "trial")
            )
        })
        .collect();
    format!("{}. {}.", distribution.title, groups.join("; "))
}
