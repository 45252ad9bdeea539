//! Lines, shapes and text, as kuva's primitives.

use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, TextAnchor};

use super::palette::Palette;
use crate::report::sanitize::sanitize;

/// Size of axis titles and the legend.
pub const LABEL_SIZE: u32 = 13;
/// Size of tick labels and annotations.
pub const TICK_SIZE: u32 = 12;

/// Width of a text in pixels, on the generous side: the reader's font is not
/// known here.
#[must_use]
pub fn text_width(text: &str, size: u32) -> f64 {
    const WIDTH_EM: f64 = 0.56;
    text.chars().count() as f64 * f64::from(size) * WIDTH_EM
}

/// Shortens a label to `max` characters.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    let text = sanitize(text);
    if text.chars().count() <= max {
        return text;
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A line between two points.
#[must_use]
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

/// A dashed line between two points.
#[must_use]
pub fn dashed(from: (f64, f64), to: (f64, f64), color: &str, width: f64) -> Primitive {
    Primitive::Line {
        x1: from.0,
        y1: from.1,
        x2: to.0,
        y2: to.1,
        stroke: Color::from(color),
        stroke_width: width,
        stroke_dasharray: Some("5,4".to_owned()),
    }
}

/// A closed shape through `points`.
#[must_use]
pub fn shape(points: &[(f64, f64)], fill: Option<&str>, stroke: &str) -> Primitive {
    let mut path = kuva::render::render::build_path(points);
    path.push('Z');
    Primitive::Path(Box::new(PathData {
        d: path,
        fill: fill.map(Color::from),
        stroke: Color::from(stroke),
        stroke_width: 1.6,
        opacity: None,
        stroke_dasharray: None,
    }))
}

/// A hollow diamond, the mark of a published value.
#[must_use]
pub fn diamond(x: f64, y: f64, color: &str, palette: &Palette) -> Primitive {
    const RADIUS: f64 = 5.5;
    let points = [
        (x, y - RADIUS),
        (x + RADIUS, y),
        (x, y + RADIUS),
        (x - RADIUS, y),
    ];
    shape(&points, Some(palette.surface), color)
}

/// A translucent rectangle between two corners.
#[must_use]
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

/// A text being set.
pub struct Text {
    content: String,
    x: f64,
    y: f64,
    size: u32,
    anchor: TextAnchor,
    bold: bool,
    color: Option<&'static str>,
}

impl Text {
    /// A text that starts at a point on its baseline.
    #[must_use]
    pub fn new(content: &str, x: f64, y: f64) -> Self {
        Self {
            // kuva reads `$…$` as mathematics.
            content: sanitize(content).replace('$', "\\$"),
            x,
            y,
            size: TICK_SIZE,
            anchor: TextAnchor::Start,
            bold: false,
            color: None,
        }
    }

    /// Centres the text on its point.
    #[must_use]
    pub fn middle(mut self) -> Self {
        self.anchor = TextAnchor::Middle;
        self
    }

    /// Ends the text at its point.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.anchor = TextAnchor::End;
        self
    }

    /// Sets the size in pixels.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }

    /// Sets the text in bold.
    #[must_use]
    pub fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    /// Sets the colour.
    #[must_use]
    pub fn color(mut self, color: &'static str) -> Self {
        self.color = Some(color);
        self
    }

    /// The finished text.
    #[must_use]
    pub fn draw(self) -> Primitive {
        Primitive::Text {
            x: self.x,
            y: self.y,
            content: self.content,
            size: self.size,
            anchor: self.anchor,
            rotate: None,
            bold: self.bold,
            color: self.color.map(Color::from),
        }
    }
}
