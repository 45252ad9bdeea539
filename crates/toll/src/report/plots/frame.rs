//! The page a plot is drawn on: title, legend, axes and grid.
//!
//! kuva draws the data. It places its own ticks at 1-2-5 steps of ten, which
//! suits neither buffer sizes nor ratios, so its axes are left out and drawn
//! here, in coordinates that are already on the axis's scale.

use kuva::prelude::{Layout, Plot, SvgBackend};
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, render_multiple};
use kuva::render::theme::Theme as KuvaTheme;

use super::axis::Axis;
use super::ink::{LABEL_SIZE, TICK_SIZE, Text, area, dashed, line, shape, text_width};
use super::palette::{PLOT_CLASS, Palette, dark_rules};
use super::{NamedPlot, Theme};
use crate::report::sanitize::sanitize;

/// Size of the title in pixels.
const TITLE_SIZE: u32 = 17;

/// What a legend entry looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swatch {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// A filled circle.
    Dot,
    /// A filled square.
    Square,
    /// A hollow diamond.
    Diamond,
    /// A translucent block.
    Area,
}

/// One entry of a legend.
#[derive(Debug, Clone)]
pub struct LegendEntry {
    /// What is shown beside the swatch.
    pub label: String,
    /// Colour of the swatch.
    pub color: &'static str,
    /// Shape of the swatch.
    pub swatch: Swatch,
}

/// A plot without its data.
#[derive(Debug)]
pub struct Frame {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Room left of the axes.
    pub left: f64,
    /// Room right of the axes.
    pub right: f64,
    /// Room above the axes.
    pub top: f64,
    /// Room below the axes.
    pub bottom: f64,
    /// Part of `top` between the vertical axis's title and the axes.
    pub above: f64,
    /// Colours.
    pub palette: &'static Palette,
    /// Heading, drawn top left.
    pub title: String,
    /// Entries of the legend, drawn in a row below the heading.
    pub legend: Vec<LegendEntry>,
    /// Colour of the median inside a box.
    pub median: &'static str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; without ticks where rows are labelled instead.
    pub y: Axis,
}

impl Frame {
    /// Pixel of a horizontal coordinate.
    #[must_use]
    pub fn at_x(&self, coordinate: f64) -> f64 {
        let share = (coordinate - self.x.low) / (self.x.high - self.x.low);
        self.left + share * (self.width - self.left - self.right)
    }

    /// Pixel of a vertical coordinate.
    #[must_use]
    pub fn at_y(&self, coordinate: f64) -> f64 {
        let share = (coordinate - self.y.low) / (self.y.high - self.y.low);
        self.height - self.bottom - share * (self.height - self.top - self.bottom)
    }

    /// Lower edge of the drawing area.
    #[must_use]
    pub fn floor(&self) -> f64 {
        self.height - self.bottom
    }

    /// Right edge of the drawing area.
    #[must_use]
    pub fn edge(&self) -> f64 {
        self.width - self.right
    }

    /// Draws everything: `behind`, the data, then `over`.
    #[must_use]
    pub fn draw(&self, behind: Vec<Primitive>, data: Vec<Plot>, over: Vec<Primitive>) -> Scene {
        let mut scene = self.draw_data(data);
        let mut elements = self.grid();
        elements.extend(behind);
        elements.append(&mut scene.elements);
        elements.extend(self.labels());
        elements.extend(over);
        elements.extend(self.heading());
        scene.elements = elements;
        scene.text_color = Some(self.palette.ink.to_owned());
        scene.background_color = Some(self.palette.surface.to_owned());
        scene.font_family = Some(FONT.to_owned());
        scene
    }

    /// Draws data and axes only, for a terminal: a grid and a heading would
    /// hide behind or under its few characters.
    #[must_use]
    pub fn draw_plain(&self, data: Vec<Plot>, over: Vec<Primitive>) -> Scene {
        let mut scene = self.draw_data(data);
        scene.elements.extend(self.labels());
        scene.elements.extend(over);
        scene.text_color = Some(self.palette.ink.to_owned());
        scene
    }

    fn draw_data(&self, data: Vec<Plot>) -> Scene {
        if data.is_empty() {
            return Scene::new(self.width, self.height);
        }
        let theme = KuvaTheme {
            background: self.palette.surface.to_owned(),
            axis_color: "none".to_owned(),
            tick_color: "none".to_owned(),
            text_color: self.palette.ink.to_owned(),
            box_median: self.median.to_owned(),
            show_grid: false,
            ..KuvaTheme::light()
        };
        let mut layout = Layout::new((self.x.low, self.x.high), (self.y.low, self.y.high))
            .with_theme(theme)
            .with_show_grid(false)
            .with_width(self.width)
            .with_height(self.height)
            .with_force_margins(self.left, self.right)
            .with_force_margins_y(self.top, self.bottom)
            .with_x_axis_min(self.x.low)
            .with_x_axis_max(self.x.high)
            .with_y_axis_min(self.y.low)
            .with_y_axis_max(self.y.high);
        layout.suppress_x_ticks = true;
        layout.suppress_y_ticks = true;
        layout.show_legend = false;
        let mut scene = render_multiple(data, layout);
        // kuva numbers its clip paths over the life of the process, so that the
        // same run would never give the same file twice; nothing drawn here
        // leaves the axes.
        scene
            .elements
            .retain(|one| !matches!(one, Primitive::ClipStart { .. } | Primitive::ClipEnd));
        scene.defs.clear();
        scene
    }

    fn grid(&self) -> Vec<Primitive> {
        let mut lines = Vec::new();
        for (coordinate, _) in &self.x.ticks {
            let x = self.at_x(*coordinate);
            lines.push(line(
                (x, self.top),
                (x, self.floor()),
                self.palette.grid,
                1.0,
            ));
        }
        for (coordinate, _) in &self.y.ticks {
            let y = self.at_y(*coordinate);
            lines.push(line(
                (self.left, y),
                (self.edge(), y),
                self.palette.grid,
                1.0,
            ));
        }
        lines
    }

    fn labels(&self) -> Vec<Primitive> {
        let mut labels = Vec::new();
        let baseline = self.floor() + f64::from(TICK_SIZE) + 7.0;
        labels.push(line(
            (self.left, self.floor()),
            (self.edge(), self.floor()),
            self.palette.reference,
            1.0,
        ));
        for (coordinate, label) in &self.x.ticks {
            let x = self.at_x(*coordinate);
            labels.push(
                Text::new(label, x, baseline)
                    .middle()
                    .color(self.palette.muted)
                    .draw(),
            );
        }
        for (coordinate, label) in &self.y.ticks {
            let y = self.at_y(*coordinate) + 4.0;
            let text = Text::new(label, self.left - 9.0, y).end();
            labels.push(text.color(self.palette.muted).draw());
        }
        let title = Text::new(&self.x.title, self.edge(), baseline + 21.0).end();
        labels.push(title.size(LABEL_SIZE).draw());
        if !self.y.title.is_empty() {
            let title = Text::new(&self.y.title, 16.0, self.top - self.above - 14.0);
            labels.push(title.size(LABEL_SIZE).draw());
        }
        labels
    }

    fn heading(&self) -> Vec<Primitive> {
        let title = Text::new(&self.title, 16.0, 30.0).size(TITLE_SIZE).bold();
        let mut heading = vec![title.draw()];
        let mut x = 16.0;
        let mut y = 56.0;
        for entry in &self.legend {
            let width = 38.0 + text_width(&entry.label, LABEL_SIZE) + 20.0;
            if x > 16.0 && x + width > self.width {
                x = 16.0;
                y += LEGEND_ROW;
            }
            heading.extend(swatch(entry, x, y - 4.5));
            heading.push(Text::new(&entry.label, x + 32.0, y).size(LABEL_SIZE).draw());
            x += width;
        }
        heading
    }
}

/// Height of one row of the legend.
const LEGEND_ROW: f64 = 20.0;

/// Room that the heading and a legend need above the axes.
#[must_use]
pub fn heading_height(legend: &[LegendEntry], width: f64, has_y_title: bool) -> f64 {
    let mut rows = usize::from(!legend.is_empty());
    let mut x = 16.0;
    for entry in legend {
        let step = 58.0 + text_width(&entry.label, LABEL_SIZE);
        if x > 16.0 && x + step > width {
            rows += 1;
            x = 16.0;
        }
        x += step;
    }
    let y_title = if has_y_title { 24.0 } else { 0.0 };
    50.0 + LEGEND_ROW * rows as f64 + y_title
}

/// Thin rules between rows that lie at 1, 2, 3 and so on.
#[must_use]
pub fn rules(frame: &Frame, rows: usize) -> Vec<Primitive> {
    (1..rows)
        .map(|row| {
            let y = frame.at_y(row as f64 + 0.5);
            line((16.0, y), (frame.edge(), y), frame.palette.grid, 1.0)
        })
        .collect()
}

/// Fonts that every system has one of; the reader's own comes first.
const FONT: &str =
    "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, DejaVu Sans, sans-serif";

fn swatch(entry: &LegendEntry, x: f64, y: f64) -> Vec<Primitive> {
    let (from, to) = ((x, y), (x + 24.0, y));
    let middle = x + 12.0;
    match entry.swatch {
        Swatch::Line => vec![line(from, to, entry.color, 2.5)],
        Swatch::Dashed => vec![dashed(from, to, entry.color, 2.0)],
        Swatch::Area => vec![area((x, y - 5.0), (x + 24.0, y + 5.0), entry.color, 0.25)],
        Swatch::Dot => vec![Primitive::Circle {
            cx: middle,
            cy: y,
            r: 4.0,
            fill: Color::from(entry.color),
            fill_opacity: None,
            stroke: None,
            stroke_width: None,
        }],
        Swatch::Square => vec![
            line(from, to, entry.color, 2.0),
            area(
                (middle - 4.0, y - 4.0),
                (middle + 4.0, y + 4.0),
                entry.color,
                1.0,
            ),
        ],
        Swatch::Diamond => {
            let points = [
                (middle, y - 5.5),
                (middle + 5.5, y),
                (middle, y + 5.5),
                (middle - 5.5, y),
            ];
            vec![shape(&points, None, entry.color)]
        }
    }
}

/// Makes a plot of a scene: names it and writes its SVG.
#[must_use]
pub fn finish(scene: Scene, name: String, title: &str, alt_text: &str, theme: Theme) -> NamedPlot {
    let drawn = SvgBackend.render_scene(&scene);
    let title = sanitize(title);
    let alt_text = sanitize(alt_text);
    NamedPlot {
        svg: with_root(&drawn, &scene, &alt_text, theme),
        name,
        title,
        alt_text,
        scene,
    }
}

/// Gives the root what kuva leaves out: a `viewBox`, so that the plot can
/// shrink, a class, and words for who cannot see it.
fn with_root(drawn: &str, scene: &Scene, alt_text: &str, theme: Theme) -> String {
    let rest = drawn.strip_prefix("<svg ").unwrap_or(drawn);
    let label = escape(alt_text);
    let style = match theme {
        Theme::Adaptive => format!("<style>{}</style>", dark_rules()),
        Theme::Light | Theme::Dark => String::new(),
    };
    let (attributes, body) = rest.split_once('>').unwrap_or((rest, ""));
    format!(
        "<svg class=\"{PLOT_CLASS}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{label}\" {attributes}>{style}{body}",
        scene.width, scene.height
    )
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
