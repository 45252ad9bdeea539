//! The ratio of an A/A pair, block by block.

use kuva::plot::{LinePlot, ScatterPlot};
use kuva::prelude::Plot;
use kuva::render::render::Primitive;

use super::axis::{Axis, Scale};
use super::frame::{self, Frame, LegendEntry, Swatch};
use super::ink::{self, line};
use super::{NamedPlot, Theme};
use crate::claim::model::TwinSummary;
use crate::format;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;

/// Draws the pair; `None` without blocks.
#[must_use]
pub fn draw(twin: &TwinSummary, name: String, theme: Theme) -> Option<NamedPlot> {
    let palette = theme.palette();
    let ends = [
        1.0 - twin.band,
        1.0 + twin.band,
        twin.ratio.low,
        twin.ratio.high,
    ];
    let ratios = twin.block_ratios.iter().copied();
    let blocks = twin.block_ratios.len();
    let y = Axis::over(
        ratios.chain(ends),
        Scale::Linear,
        "",
        "twin over original",
        6,
    )?;
    let block_numbers = (1..=blocks).map(|block| block as f64);
    let x = Axis::over(
        block_numbers,
        Scale::Linear,
        "",
        "block, in the order run",
        blocks.min(12),
    )?;
    let legend = vec![
        LegendEntry {
            label: "one block".to_owned(),
            color: palette.series[0],
            swatch: Swatch::Dot,
        },
        LegendEntry {
            label: format!("ratio {}", format::ratio_interval(&twin.ratio)),
            color: palette.series[0],
            swatch: Swatch::Area,
        },
        LegendEntry {
            label: format!("no difference: within ±{}", format::percent(twin.band)),
            color: palette.muted,
            swatch: Swatch::Dashed,
        },
    ];
    let title = format!("A/A twin: {}", twin.label);
    let frame = Frame {
        width: WIDTH,
        height: HEIGHT,
        left: 76.0,
        right: 30.0,
        top: frame::heading_height(&legend, WIDTH, true),
        bottom: 52.0,
        above: 0.0,
        palette,
        median: palette.surface,
        title: ink::shorten(&title, 90),
        legend,
        x,
        y,
    };
    let scene = frame.draw(bands(twin, &frame), points(twin, &frame), Vec::new());
    let alt_text = format!(
        "Ratio of two identical treatments ({}) in {blocks} blocks: {}, noise band ±{}.",
        twin.label,
        format::ratio_interval(&twin.ratio),
        format::percent(twin.band)
    );
    Some(frame::finish(scene, name, &title, &alt_text, theme))
}

fn bands(twin: &TwinSummary, frame: &Frame) -> Vec<Primitive> {
    let across = |value: f64| {
        let y = frame.at_y(value.clamp(frame.y.low, frame.y.high));
        ((frame.left, y), (frame.edge(), y))
    };
    let (low, _) = across(twin.ratio.low);
    let (_, high) = across(twin.ratio.high);
    let mut bands = vec![ink::area(low, high, frame.palette.series[0], 0.16)];
    let (from, to) = across(1.0);
    bands.push(line(from, to, frame.palette.reference, 1.5));
    for edge in [1.0 - twin.band, 1.0 + twin.band] {
        let (from, to) = across(edge);
        bands.push(ink::dashed(from, to, frame.palette.muted, 1.2));
    }
    bands
}

fn points(twin: &TwinSummary, frame: &Frame) -> Vec<Plot> {
    let color = frame.palette.series[0];
    let points: Vec<(f64, f64)> = twin
        .block_ratios
        .iter()
        .enumerate()
        .filter(|(_, ratio)| ratio.is_finite())
        .map(|(block, ratio)| (block as f64 + 1.0, *ratio))
        .collect();
    let path = LinePlot::new()
        .with_data(points.iter().copied())
        .with_color(frame.palette.reference)
        .with_stroke_width(0.8);
    let dots = ScatterPlot::new()
        .with_data(points)
        .with_color(color)
        .with_size(4.0);
    vec![path.into(), dots.into()]
}
