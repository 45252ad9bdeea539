//! Shared parts of all plots: kuva's axes with readable ticks, the legend, and marks that kuva
//! lacks.

use std::sync::Arc;

use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::prelude::{Layout, Plot, SvgBackend, Theme, TickFormat};
use kuva::render::color::Color;
use kuva::render::layout::ComputedLayout;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor, build_path, render_multiple};
use kuva::render::render_utils::compute_tick_step;
use toll_document::sanitize;

use super::palette::{LIGHT, PLOT_CLASS, Palette};
use crate::claim::metric_words;
use crate::format;

/// A finished plot.
#[derive(Debug)]
pub struct NamedPlot {
    /// Name that is safe for a file, without extension.
    pub name: String,
    /// Describes the plot for those who cannot see it.
    pub alt_text: String,
    /// The plot as a standalone SVG document.
    pub svg: String,
}

const WIDTH: f64 = 960.0;
/// Every system has one of these fonts; the reader's own comes first.
const FONT: &str =
    "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, DejaVu Sans, sans-serif";
const TITLE_SIZE: u32 = 17;
const LABEL_SIZE: u32 = 13;
const TICK_SIZE: u32 = 12;
const LABEL_CHARACTERS_MAX: usize = 44;
/// Longest label of a tick. A unit may be longer, since experiment files name units.
const TICK_CHARACTERS_MAX: usize = 24;
/// Room for the title of a vertical axis, in pixels.
const TITLE_ROOM: f64 = 16.0;
/// Maximum number of ticks on a vertical axis.
pub const VERTICAL_TICKS_MAX: usize = 7;
/// Width of a character of a tick's label in pixels, estimated generously since
/// the reader's font is unknown.
const CHARACTER_WIDTH: f64 = TICK_SIZE as f64 * 0.56;
/// Room beside the outermost value, as a share of the axis.
const PADDING: f64 = 0.03;
/// Values that span more than this factor need a logarithmic axis.
const LOG_SPAN: f64 = 20.0;
/// On a logarithmic axis that spans less, kuva's steps of 1, 2 and 5 per decade are too few.
const STEPS_SPAN: f64 = 8.0;

/// Maps values to coordinates on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
    /// Logarithmic with ticks at powers of two, for sizes.
    Binary,
    /// Logarithms as coordinates, for shapes that kuva computes from them.
    Decades,
}

/// One axis of a plot.
#[derive(Debug, Clone)]
pub struct Axis {
    pub scale: Scale,
    /// Both ends as coordinates.
    pub ends: (f64, f64),
    pub unit: String,
    pub title: String,
}

impl Axis {
    /// An axis that spans all `values` with a coordinate on its scale; `None` without values.
    pub fn over(
        values: impl Iterator<Item = f64>,
        scale: Scale,
        unit: &str,
        title: &str,
    ) -> Option<Self> {
        let coordinates = values.filter_map(|value| scale.coordinate(value));
        let (low, high) = coordinates.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, one| {
            (ends.0.min(one), ends.1.max(one))
        });
        if low > high {
            return None;
        }
        let ends = match scale {
            Scale::Log => {
                let factor = (high / low).powf(PADDING).max(1.005);
                (low / factor, high * factor)
            }
            // A single value still needs an axis of some length.
            _ if low == high => {
                let room = (low.abs() * 0.1).max(0.1);
                (low - room, high + room)
            }
            _ => {
                let room = (high - low) * PADDING;
                (low - room, high + room)
            }
        };
        Some(Self {
            scale,
            ends,
            unit: unit.to_owned(),
            title: title.to_owned(),
        })
    }

    /// An axis for values of trials. The axis is logarithmic, and its title says so, if the values
    /// span more than a factor of 20.
    pub fn of_trials(
        values: impl Iterator<Item = f64> + Clone,
        metric: &str,
        unit: &str,
    ) -> Option<Self> {
        let smallest = values.clone().fold(f64::INFINITY, f64::min);
        let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
        if smallest > 0.0 && largest / smallest > LOG_SPAN {
            let title = format!("{} (logarithmic)", metric_words(metric));
            Self::over(values, Scale::Log, unit, &title)
        } else {
            Self::over(values, Scale::Linear, unit, &metric_words(metric))
        }
    }

    /// Starts a linear axis at zero.
    pub fn starting_at_zero(mut self) -> Self {
        if self.scale == Scale::Linear && self.ends.0 > 0.0 {
            self.ends.0 = 0.0;
        }
        self
    }

    /// The coordinate of a value, clamped to the axis.
    pub fn clamped(&self, value: f64) -> Option<f64> {
        let coordinate = self.scale.coordinate(value)?;
        Some(coordinate.clamp(self.ends.0, self.ends.1))
    }

    fn format(&self) -> TickFormat {
        let Self { scale, unit, .. } = self.clone();
        TickFormat::Custom(Arc::new(move |coordinate| match scale {
            Scale::Binary => tick_label(coordinate.exp2(), &unit),
            Scale::Decades => tick_label(10_f64.powf(coordinate), &unit),
            _ => tick_label(coordinate, &unit),
        }))
    }

    /// Characters of the longest tick label. kuva leaves room for plain numbers,
    /// but not for units.
    pub fn label_characters(&self, ticks_max: usize) -> usize {
        let (low, high) = self.ends;
        let ticks: Vec<f64> = match self.step(ticks_max) {
            Some(step) => {
                let numbers = (low / step).ceil() as i64..=(high / step).floor() as i64;
                numbers.map(|number| number as f64 * step).collect()
            }
            None => {
                let decades = low.log10().floor() as i32..=high.log10().floor() as i32;
                decades.map(|decade| 10_f64.powi(decade)).collect()
            }
        };
        let TickFormat::Custom(label) = self.format() else {
            return 0;
        };
        let labels = ticks.into_iter().map(|tick| label(tick).chars().count());
        labels.max().unwrap_or(0)
    }

    /// The distance between ticks; `None` leaves the choice to kuva.
    fn step(&self, ticks_max: usize) -> Option<f64> {
        let (low, high) = self.ends;
        match self.scale {
            Scale::Log if high / low > STEPS_SPAN => None,
            Scale::Decades => Some(1.0),
            Scale::Binary => {
                let steps = [1.0, 2.0, 4.0, 8.0];
                let fits = |step: &f64| (high - low) / step < ticks_max as f64;
                Some(steps.into_iter().find(fits).unwrap_or(16.0))
            }
            _ => {
                let step = compute_tick_step(low, high, ticks_max);
                let is_whole = self.unit == "count";
                Some(if is_whole { step.max(1.0) } else { step })
            }
        }
    }
}

impl Scale {
    /// kuva's coordinate of a value; `None` if this scale has no place for it.
    pub fn coordinate(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => value.is_finite().then_some(value),
            Self::Log => (value.is_finite() && value > 0.0).then_some(value),
            Self::Binary => (value.is_finite() && value > 0.0).then(|| value.log2()),
            Self::Decades => (value.is_finite() && value > 0.0).then(|| value.log10()),
        }
    }
}

/// A tick's label: the value without trailing zeros, which only a table needs.
fn tick_label(value: f64, unit: &str) -> String {
    let text = format::value(value, unit);
    let (number, unit) = text.split_once('\u{a0}').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    let label = if unit.is_empty() || number == "0" {
        number.to_owned()
    } else {
        format!("{number}\u{a0}{unit}")
    };
    plain(&label, TICK_CHARACTERS_MAX)
}

/// The vertical axis of a plot.
pub enum Vertical {
    Axis(Axis),
    /// Labels of rows from the bottom, and the height of each row. The first row has the coordinate
    /// 1.
    Rows(Vec<String>, f64),
}

/// A plot without its data.
pub struct Chart {
    pub title: String,
    pub x: Axis,
    pub y: Vertical,
    /// Height of the drawing area, if there are no rows.
    pub height: f64,
    pub legend: Vec<LegendEntry>,
    /// Margin right of the axes, if more than the last tick's label needs it.
    pub right: Option<f64>,
    /// Colour of the median inside a box.
    pub median: &'static str,
}

impl Chart {
    pub fn new(title: &str, x: Axis, y: Vertical) -> Self {
        Self {
            title: title.to_owned(),
            x,
            y,
            height: 0.0,
            legend: Vec::new(),
            right: None,
            median: LIGHT.ink,
        }
    }

    /// The layout, high enough for all parts of the chart.
    pub fn layout(&self) -> Layout {
        let mut layout = self
            .axes(&LIGHT, 10)
            .with_width(WIDTH)
            .with_title(plain(&self.title, 90))
            .with_x_label(plain(&self.x.title, 110))
            .with_legend_entries(self.legend.clone())
            .with_legend_position(LegendPosition::OutsideBottomColumns)
            .with_legend_box(false)
            .with_legend_col_limit(self.legend.len().clamp(1, 3))
            .with_title_size(TITLE_SIZE)
            .with_label_size(LABEL_SIZE)
            .with_tick_size(TICK_SIZE)
            .with_body_size(LABEL_SIZE);
        layout.show_legend = !self.legend.is_empty();
        layout.force_margin_right = self.right;
        let area = match &self.y {
            Vertical::Axis(axis) => {
                layout = layout.with_y_label(plain(&axis.title, 60));
                self.height
            }
            Vertical::Rows(labels, height) => {
                layout = layout.with_y_categories(labels.clone());
                height * labels.len() as f64
            }
        };
        let margins = ComputedLayout::from_layout(&layout);
        if let Vertical::Axis(axis) = &self.y {
            // kuva makes room for plain numbers, and puts the title beside them.
            let characters = axis.label_characters(VERTICAL_TICKS_MAX);
            let labels = characters as f64 * CHARACTER_WIDTH;
            let margin = (labels + 3.0 * TITLE_ROOM).max(margins.margin_left);
            let title = margin - margins.y_tick_label_px - 1.5 * f64::from(LABEL_SIZE);
            layout.force_margin_left = Some(margin);
            layout.y_label_offset = (TITLE_ROOM - title, 0.0);
        }
        layout.with_height(margins.margin_top + area + margins.margin_bottom)
    }

    /// The layout with only ranges, ticks and colours.
    pub fn axes(&self, palette: &Palette, ticks_max: usize) -> Layout {
        let (y_ends, y_axis) = match &self.y {
            Vertical::Axis(axis) => (axis.ends, Some(axis)),
            Vertical::Rows(labels, _) => ((0.5, labels.len() as f64 + 0.5), None),
        };
        let theme = Theme {
            background: palette.surface.to_owned(),
            axis_color: palette.reference.to_owned(),
            tick_color: palette.reference.to_owned(),
            grid_color: palette.grid.to_owned(),
            text_color: palette.ink.to_owned(),
            box_median: self.median.to_owned(),
            ..Theme::light()
        };
        let mut layout = Layout::new(self.x.ends, y_ends)
            .with_theme(theme)
            .with_font_family(FONT)
            .with_x_axis_min(self.x.ends.0)
            .with_x_axis_max(self.x.ends.1)
            .with_y_axis_min(y_ends.0)
            .with_y_axis_max(y_ends.1)
            .with_x_tick_format(self.x.format());
        layout.log_x = self.x.scale == Scale::Log;
        layout.x_tick_step = self.x.step(ticks_max);
        if let Some(axis) = y_axis {
            layout.log_y = axis.scale == Scale::Log;
            layout.y_tick_step = axis.step(VERTICAL_TICKS_MAX);
            layout.y_tick_format = axis.format();
        }
        layout
    }

    /// Draws everything: `behind`, the data, then `over`.
    pub fn finish(
        &self,
        name: String,
        alt_text: &str,
        layout: Layout,
        data: Vec<Plot>,
        [behind, over]: [Vec<Primitive>; 2],
    ) -> NamedPlot {
        let mut scene = draw(data, layout);
        scene.elements.splice(0..0, behind);
        scene.elements.extend(over);
        let alt_text = sanitize(alt_text);
        NamedPlot {
            svg: with_root(&SvgBackend.render_scene(&scene), &scene, &alt_text),
            name,
            alt_text,
        }
    }
}

/// Draws with kuva and removes the clip paths, so that the same plot is always the same text: kuva
/// numbers them over the life of the process. Nothing drawn here leaves the axes, so clip paths are
/// not needed.
pub fn draw(mut data: Vec<Plot>, layout: Layout) -> Scene {
    if data.is_empty() {
        // kuva draws no axes without data.
        data.push(kuva::plot::ScatterPlot::new().into());
    }
    let mut scene = render_multiple(data, layout);
    let is_clip = |one: &Primitive| matches!(one, Primitive::ClipStart { .. } | Primitive::ClipEnd);
    scene.elements.retain(|one| !is_clip(one));
    scene.defs.clear();
    scene
}

/// Adds to the root element what kuva leaves out: a `viewBox`, so that the plot can shrink, a
/// class, and a text for screen readers.
fn with_root(drawn: &str, scene: &Scene, alt_text: &str) -> String {
    let rest = drawn.strip_prefix("<svg ").unwrap_or(drawn);
    let label = minijinja::HtmlEscape(alt_text);
    format!(
        "<svg class=\"{PLOT_CLASS}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{label}\" {rest}",
        scene.width, scene.height
    )
}

pub fn entry(label: &str, color: &str, shape: LegendShape) -> LegendEntry {
    LegendEntry {
        label: plain(label, 90),
        color: color.to_owned(),
        shape,
        dasharray: None,
    }
}

/// The label of a row.
pub fn row_label(text: &str) -> String {
    plain(text, LABEL_CHARACTERS_MAX)
}

/// Shortens a text to `max` characters and escapes dollar signs, between which kuva
/// reads mathematics.
pub fn plain(text: &str, max: usize) -> String {
    shorten(text, max).replace('$', "\\$")
}

pub fn shorten(text: &str, max: usize) -> String {
    let text = sanitize(text);
    if text.chars().count() <= max {
        return text;
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Width of a text in pixels.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER_WIDTH
}

pub fn line(from: (f64, f64), to: (f64, f64), color: &str, width: f64) -> Primitive {
    Primitive::Line {
        x1: from.0,
        y1: from.1,
        x2: to.0,
        y2: to.1,
        stroke: Color::from(color),
        stroke_width: width,
        stroke_dasharray: None,
    }
}

/// A closed shape through `points`.
pub fn shape(points: &[(f64, f64)], fill: Option<&str>, stroke: &str) -> Primitive {
    Primitive::Path(Box::new(PathData {
        d: build_path(points) + "Z",
        fill: fill.map(Color::from),
        stroke: Color::from(stroke),
        stroke_width: 1.6,
        opacity: None,
        stroke_dasharray: None,
    }))
}

/// A hollow diamond, the mark of a published value.
pub fn diamond(x: f64, y: f64) -> Primitive {
    let points = [(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)];
    shape(&points, Some(LIGHT.surface), LIGHT.published)
}

/// A translucent rectangle between two corners.
pub fn area(from: (f64, f64), to: (f64, f64), color: &str, opacity: f64) -> Primitive {
    Primitive::Rect {
        x: from.0.min(to.0),
        y: from.1.min(to.1),
        width: (to.0 - from.0).abs(),
        height: (to.1 - from.1).abs(),
        fill: Color::from(color),
        stroke: None,
        stroke_width: None,
        opacity: Some(opacity),
    }
}

pub fn text(content: &str, (x, y): (f64, f64), anchor: TextAnchor, color: &str) -> Primitive {
    Primitive::Text {
        x,
        y,
        content: plain(content, 200),
        size: TICK_SIZE,
        anchor,
        rotate: None,
        bold: false,
        color: Some(Color::from(color)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_units_and_digits_that_people_read() {
        let axis = |values: [f64; 2], scale, unit| {
            Axis::over(values.into_iter(), scale, unit, "").unwrap()
        };
        let shown = |axis: &Axis, coordinate| match axis.format() {
            TickFormat::Custom(label) => label(coordinate).replace('\u{a0}', " "),
            _ => String::new(),
        };
        let sizes = axis([4096.0, 4_194_304.0], Scale::Binary, "bytes");
        assert_eq!(sizes.step(11), Some(1.0));
        assert_eq!(sizes.step(7), Some(2.0));
        assert_eq!(shown(&sizes, 14.0), "16 KiB");
        let ratios = axis([0.95, 1.05], Scale::Log, "");
        assert_eq!(ratios.step(6), Some(0.02));
        assert_eq!(shown(&ratios, 1.02), "1.02");
        assert_eq!(axis([1e6, 2e9], Scale::Log, "ns").step(6), None);
        let speeds = axis([3e9, 26.3e9], Scale::Linear, "bytes/s").starting_at_zero();
        assert_eq!((speeds.ends.0, speeds.step(6)), (0.0, Some(5e9)));
        assert_eq!(shown(&speeds, 5e9), "5 GB/s");
        assert_eq!(shown(&speeds, 0.0), "0");
    }

    #[test]
    fn an_axis_survives_odd_values() {
        for odd in [&[][..], &[f64::NAN, -1.0]] {
            assert!(Axis::over(odd.iter().copied(), Scale::Log, "", "").is_none());
        }
        for scale in [Scale::Linear, Scale::Log, Scale::Binary, Scale::Decades] {
            let single = Axis::over([5.0].into_iter(), scale, "", "").unwrap();
            let place = scale.coordinate(5.0).unwrap();
            assert!(single.ends.0 < place && place < single.ends.1);
        }
    }
}
