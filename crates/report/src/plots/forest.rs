//! Forest plot of the claims about ratios.

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::{ForestPlot, ForestRow, MarkerShape};
use kuva::render::layout::ComputedLayout;
use kuva::render::render::{Primitive, TextAnchor};

use super::chart::{
    Axis, Chart, NamedPlot, Scale, Vertical, area, diamond, entry, line, row_label, shape, text,
};
use super::palette::LIGHT;
use crate::claim::model::{Analysis, Verdict};
use crate::format;
use crate::words;

const ROW_HEIGHT: f64 = 25.0;
/// Room for the numbers beside the axis.
const RIGHT_COLUMN: f64 = 252.0;
/// Ratios beyond this factor of 1 become arrows at the edge: a single ratio of 3,800
/// would otherwise squeeze all others together.
const NEAR_FACTOR: f64 = 4.0;

/// Draws the claims that have a ratio; `None` if there are none.
pub fn draw(analysis: &Analysis, name: String) -> Option<NamedPlot> {
    let mut rows = rows(analysis);
    let x = ratio_axis(&rows)?;
    rows.reverse();
    let labels = rows.iter().map(|verdict| row_label(&label(verdict)));
    let chart = Chart {
        legend: legend(&rows),
        right: Some(RIGHT_COLUMN),
        ..Chart::new(
            "Claims: measured and published ratios",
            x,
            Vertical::Rows(labels.collect(), ROW_HEIGHT),
        )
    };
    let layout = chart.layout();
    let places = Places {
        axis: &chart.x,
        on: ComputedLayout::from_layout(&layout),
    };
    let mut behind = places.behind(&rows);
    let one = places.on.map_x(1.0);
    let (top, floor) = (places.on.margin_top, places.on.map_y(0.5));
    behind.push(line((one, top), (one, floor), LIGHT.reference, 1.2));
    let data = vec![intervals(&rows, &chart.x).into()];
    let marks = [behind, places.over(&rows)];
    rows.reverse();
    let alt_text = alt_text(&rows);
    Some(chart.finish(name, &alt_text, layout, data, marks))
}

/// The claims about ratios that were measured.
pub fn rows(analysis: &Analysis) -> Vec<&Verdict> {
    let is_drawn = |verdict: &&Verdict| verdict.unit.is_empty() && verdict.measured.is_some();
    analysis.verdicts.iter().filter(is_drawn).collect()
}

fn label(verdict: &Verdict) -> String {
    format!("{} {}", words::sign(verdict), verdict.id)
}

/// An axis that holds 1 and every ratio near it; `None` without rows.
pub fn ratio_axis(rows: &[&Verdict]) -> Option<Axis> {
    if rows.is_empty() {
        return None;
    }
    let of_interest = rows.iter().flat_map(|verdict| {
        let ends = verdict.measured.map(|m| [m.low, m.value, m.high]);
        ends.into_iter().flatten().chain(verdict.published)
    });
    let values: Vec<f64> = of_interest
        .filter(|value| *value > 0.0 && value.is_finite())
        .collect();
    let is_near = |value: &f64| value.log10().abs() <= NEAR_FACTOR.log10();
    let near: Vec<f64> = values.iter().copied().filter(is_near).collect();
    // If most ratios are large, the axis must show the large ones.
    let shown = if near.len() * 2 >= values.len() {
        near
    } else {
        values
    };
    let shown = shown.into_iter().chain([1.0]);
    Axis::over(shown, Scale::Log, "", "ratio (logarithmic)")
}

fn legend(rows: &[&Verdict]) -> Vec<LegendEntry> {
    let occurs = |outcome| rows.iter().any(|verdict| verdict.outcome == outcome);
    let outcomes = words::OUTCOMES.into_iter().filter(|one| occurs(*one));
    let mut legend: Vec<LegendEntry> = outcomes
        .map(|outcome| {
            let label = format!("{} {}", words::symbol(outcome), words::outcome(outcome));
            entry(&label, LIGHT.outcome(outcome), LegendShape::Rect)
        })
        .collect();
    if rows.iter().any(|verdict| verdict.published.is_some()) {
        let shape = LegendShape::Marker(MarkerShape::Diamond);
        legend.push(entry("published", LIGHT.published, shape));
    }
    legend
}

/// The measured intervals, cut off at the axis's ends.
fn intervals(rows: &[&Verdict], x: &Axis) -> ForestPlot {
    let mut forest = ForestPlot::new()
        .with_marker_size(4.5)
        .with_whisker_width(2.5)
        .with_show_null_line(false);
    forest.null_value = None;
    // kuva puts the first row on top.
    for verdict in rows.iter().rev() {
        let coordinate = |value: f64| {
            // On a logarithmic axis, a ratio of zero or less has no place except the left end.
            let end = if value > 0.0 { x.ends.1 } else { x.ends.0 };
            x.clamped(value).unwrap_or(end)
        };
        let Some(measured) = verdict.measured else {
            continue;
        };
        let [value, low, high] = [measured.value, measured.low, measured.high].map(coordinate);
        // An arrow head marks a ratio past the edge, and the square of such a ratio shrinks.
        let inside = value > x.ends.0 && value < x.ends.1;
        forest.rows.push(ForestRow {
            color: Some(LIGHT.outcome(verdict.outcome).to_owned()),
            weight: Some(if inside { 1.0 } else { 0.0 }),
            ..ForestRow::new(row_label(&label(verdict)), value, low, high)
        });
    }
    forest
}

/// Length of an arrow head.
const ARROW: f64 = 11.0;

struct Places<'a> {
    axis: &'a Axis,
    on: ComputedLayout,
}

impl Places<'_> {
    fn edge(&self) -> f64 {
        self.on.width - self.on.margin_right
    }

    /// Stripes that guide the eye, each claim's margin, and the published values. Measured values
    /// may cover published ones.
    fn behind(&self, rows: &[&Verdict]) -> Vec<Primitive> {
        let half = ROW_HEIGHT / 2.0;
        let mut marks = Vec::new();
        for (index, verdict) in rows.iter().enumerate() {
            let y = self.on.map_y(index as f64 + 1.0);
            if index % 2 == 1 {
                let (from, to) = ((8.0, y - half), (self.on.width - 8.0, y + half));
                marks.push(area(from, to, LIGHT.grid, 0.4));
            }
            let (left, right) = self.axis.ends;
            let [low, high] = [1.0 - verdict.margin, 1.0 + verdict.margin]
                .map(|side| (verdict.threshold * side).clamp(left, right));
            if low < high {
                let from = (self.on.map_x(low), y - half);
                let to = (self.on.map_x(high), y + half);
                marks.push(area(from, to, LIGHT.reference, 0.28));
            }
        }
        for (index, verdict) in rows.iter().enumerate() {
            let y = self.on.map_y(index as f64 + 1.0);
            marks.extend(verdict.published.and_then(|value| {
                let is_inside = self.axis.clamped(value)? == value;
                if is_inside {
                    Some(diamond(self.on.map_x(value), y))
                } else {
                    self.arrow(value, y, ARROW, LIGHT.published)
                }
            }));
        }
        marks
    }

    /// The numbers, and arrows for ratios past the edge.
    fn over(&self, rows: &[&Verdict]) -> Vec<Primitive> {
        let (number, published) = (self.on.width - 94.0, self.on.width - 16.0);
        let put =
            |content: &str, x: f64, y: f64, color| text(content, (x, y), TextAnchor::End, color);
        let heading = self.on.margin_top - 4.0;
        let mut marks = vec![
            put("measured", number, heading, LIGHT.muted),
            put("published", published, heading, LIGHT.muted),
        ];
        for (index, verdict) in rows.iter().enumerate() {
            let y = self.on.map_y(index as f64 + 1.0);
            if let Some(measured) = &verdict.measured {
                let numbers = format::ratio_interval(measured);
                marks.push(put(&numbers, number, y + 4.5, LIGHT.ink));
                let color = LIGHT.outcome(verdict.outcome);
                marks.extend(self.arrow(measured.value, y, 0.0, color));
            }
            if let Some(value) = verdict.published {
                marks.push(put(
                    &format::ratio(value),
                    published,
                    y + 4.5,
                    LIGHT.published,
                ));
            }
        }
        marks
    }

    /// An arrow head at `offset` from the edge, for a ratio beyond it.
    fn arrow(&self, value: f64, y: f64, offset: f64, color: &str) -> Option<Primitive> {
        let coordinate = self.axis.scale.coordinate(value)?;
        let (edge, left) = (
            self.edge() + 2.0 + offset,
            self.on.margin_left + 2.0 + offset,
        );
        // On the left, the labels leave no room, so the arrow there is inside the edge.
        let (base, tip) = match () {
            () if coordinate > self.axis.ends.1 => (edge, edge + ARROW - 3.0),
            () if coordinate < self.axis.ends.0 => (left + ARROW - 3.0, left),
            () => return None,
        };
        let fill = if offset > 0.0 { LIGHT.surface } else { color };
        let points = [(base, y - 5.0), (tip, y), (base, y + 5.0)];
        Some(shape(&points, Some(fill), color))
    }
}

fn alt_text(rows: &[&Verdict]) -> String {
    let claims: Vec<String> = rows
        .iter()
        .filter_map(|verdict| {
            let measured = format::ratio_interval(verdict.measured.as_ref()?);
            let published = verdict.published.map_or_else(String::new, |value| {
                format!(", published {}", format::ratio(value))
            });
            Some(format!("{} {measured}{published}", verdict.id))
        })
        .collect();
    format!(
        "Forest plot of {} ratios. {}.",
        rows.len(),
        claims.join("; ")
    )
}
