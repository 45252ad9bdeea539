//! The ratio of an A/A pair, block by block.

use kuva::plot::legend::LegendShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::prelude::{Plot, ReferenceLine, ShadedRegion};
use toll_document::plural;

use super::chart::{Axis, Chart, NamedPlot, Scale, Vertical, entry};
use super::palette::LIGHT;
use crate::claim::model::TwinSummary;
use crate::format;

const HEIGHT: f64 = 180.0;

/// Draws the pair; `None` without blocks.
pub fn draw(twin: &TwinSummary, name: String) -> Option<NamedPlot> {
    let ratio = &twin.ratio;
    let blocks = twin.block_ratios.len();
    let values = twin.block_ratios.iter().copied();
    let values = values.chain([1.0, ratio.low, ratio.high]);
    let y = Axis::over(values, Scale::Linear, "", "twin over original")?;
    let numbers = (1..=blocks).map(|block| block as f64);
    let x = Axis::over(
        numbers,
        Scale::Linear,
        "count",
        "block, in the order of the run",
    )?;
    let interval = format::ratio_interval(ratio);
    let ratio_label = format!("ratio {interval}");
    let chart = Chart {
        height: HEIGHT,
        legend: vec![
            entry("one block", LIGHT.series[0], LegendShape::Circle),
            entry(&ratio_label, LIGHT.series[0], LegendShape::Rect),
        ],
        ..Chart::new(&format!("A/A twin: {}", twin.label), x, Vertical::Axis(y))
    };
    let span = ShadedRegion::horizontal(ratio.low, ratio.high).with_color(LIGHT.series[0]);
    let one = ReferenceLine::horizontal(1.0).with_color(LIGHT.reference);
    let layout = chart
        .layout()
        .with_shaded_region(span.with_opacity(0.16))
        .with_reference_line(one.with_dasharray("none").with_stroke_width(1.5));
    let alt_text = format!(
        "Ratio of two identical treatments ({}) in {}: {interval}.",
        twin.label,
        plural(blocks, "block")
    );
    Some(chart.finish(name, &alt_text, layout, points(twin), Default::default()))
}

fn points(twin: &TwinSummary) -> Vec<Plot> {
    let numbered = twin.block_ratios.iter().enumerate();
    let points: Vec<(f64, f64)> = numbered
        .filter(|(_, ratio)| ratio.is_finite())
        .map(|(block, ratio)| (block as f64 + 1.0, *ratio))
        .collect();
    let path = LinePlot::new()
        .with_data(points.iter().copied())
        .with_color(LIGHT.reference)
        .with_stroke_width(0.8);
    let dots = ScatterPlot::new()
        .with_data(points)
        .with_color(LIGHT.series[0])
        .with_size(4.0);
    vec![path.into(), dots.into()]
}
