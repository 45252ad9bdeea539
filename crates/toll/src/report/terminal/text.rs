//! Lines for a terminal: wrapping, columns, colour.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Style;
use crate::report::sanitize::sanitize;

/// A colour of the terminal's own palette, so that it suits its ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The terminal's text colour.
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
        }
    }

    /// Wraps text in the codes of this colour, where colour is wanted.
    pub fn on(self, text: &str, style: Style) -> String {
        if !style.color || self == Self::Plain || text.trim().is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{}m{text}\u{1b}[0m", self.code())
    }
}

/// Columns that a text takes. Characters of double width (East Asian scripts,
/// emoji) count as two; combining marks as none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks text into lines of at most `width` columns, within words only where
/// a word is longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let text = sanitize(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    // Spaces that do not break keep a number with its unit.
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if columns(&line) + gap + columns(word) <= width {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            if !line.is_empty() && columns(&line) + character.width().unwrap_or(0) > width {
                let kept = break_within(&line);
                let rest = line.split_off(kept);
                lines.push(std::mem::replace(&mut line, rest));
            }
            line.push(character);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Where to break a word that is longer than a line: behind the last sign that
/// joins parts of a name, if that fills half of the line.
fn break_within(line: &str) -> usize {
    let joint = line.rfind(['-', '.', '/', '_', '=', ',', ':']);
    match joint {
        Some(joint) if joint + 1 >= line.len() / 2 => joint + 1,
        _ => line.len(),
    }
}

/// Pads to a width in columns, on the right.
pub fn left(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(padding))
}

/// Pads to a width in columns, on the left.
pub fn right(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(columns(text));
    format!("{}{text}", " ".repeat(padding))
}

/// Wrapped text with an indent, each line painted, each ended.
pub fn paragraph(text: &str, indent: usize, paint: Paint, style: Style) -> String {
    let width = style.width.saturating_sub(indent).max(MIN_TEXT_COLUMNS);
    wrap(text, width)
        .into_iter()
        .map(|line| format!("{}{}\n", " ".repeat(indent), paint.on(&line, style)))
        .collect()
}

/// Lines as they are where they fit; longer ones wrapped, what follows indented
/// a little deeper than they begin.
pub fn fold(text: &str, style: Style) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        if columns(line) <= style.width {
            folded.push_str(line);
            folded.push('\n');
            continue;
        }
        let indent = columns(line) - columns(line.trim_start());
        let indent = indent.min(style.width / 4);
        let width = style.width.saturating_sub(indent + HANG);
        for (number, part) in wrap(line.trim_start(), width).into_iter().enumerate() {
            let indent = indent + if number > 0 { HANG } else { 0 };
            folded.push_str(&" ".repeat(indent));
            folded.push_str(&part);
            folded.push('\n');
        }
    }
    folded
}

const HANG: usize = 2;

/// Narrower than this nothing is readable, so lines run over instead.
const MIN_TEXT_COLUMNS: usize = 16;

/// A heading with a rule below.
pub fn heading(text: &str, style: Style) -> String {
    let mut block = paragraph(text, 0, Paint::Bold, style);
    let longest = wrap(text, style.width)
        .iter()
        .map(|line| columns(line))
        .max();
    let rule = "─".repeat(longest.unwrap_or(0).min(style.width));
    block.push_str(&Paint::Dim.on(&rule, style));
    block.push('\n');
    block
}

/// The style to lay out for: `inf` is longer than the sign it replaces, and a
/// line may hold two of them.
pub fn layout(style: Style) -> Style {
    let reserve = if style.unicode { 0 } else { 4 };
    Style {
        width: style.width.saturating_sub(reserve),
        ..style
    }
}

/// Replaces what an ASCII terminal cannot show.
pub fn fit(text: String, style: Style) -> String {
    if style.unicode {
        return text.replace('\u{a0}', " ");
    }
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{a0}' => ascii.push(' '),
            '✔' => ascii.push('+'),
            '✘' => ascii.push('x'),
            '–' | '−' | '─' => ascii.push('-'),
            '│' => ascii.push('|'),
            '·' => ascii.push('.'),
            '×' => ascii.push('x'),
            'µ' => ascii.push('u'),
            '±' => ascii.push('~'),
            '∞' => ascii.push_str("inf"),
            '…' => ascii.push('~'),
            '→' => ascii.push('>'),
            '“' | '”' => ascii.push('"'),
            '’' => ascii.push('\''),
            other if other.is_ascii() => ascii.push(other),
            _ => ascii.push('?'),
        }
    }
    ascii
}

/// One column of a [`table`].
pub struct Column {
    pub title: String,
    /// Whether numbers line up at the right.
    pub is_number: bool,
}

impl Column {
    pub fn words(title: &str) -> Self {
        Self {
            title: sanitize(title),
            is_number: false,
        }
    }

    pub fn numbers(title: &str) -> Self {
        Self {
            title: sanitize(title),
            is_number: true,
        }
    }
}

/// A row of a [`table`]: its cells and the lines that explain it below.
pub struct Row {
    /// One text a column.
    pub cells: Vec<String>,
    /// Paint of the first cell.
    pub paint: Paint,
    /// What the row is about, below it.
    pub text: Option<String>,
    /// What explains it, indented below that.
    pub below: Vec<String>,
}

impl Row {
    pub fn new(cells: Vec<String>) -> Self {
        Self {
            cells: cells.iter().map(|cell| sanitize(cell)).collect(),
            paint: Paint::Plain,
            text: None,
            below: Vec::new(),
        }
    }
}

const GAP: usize = 2;
/// The first column may take this share of the line before its text wraps.
const FIRST_COLUMN_MIN: usize = 14;

/// Columns where the line is wide enough, otherwise a block a row.
pub fn table(columns_of: &[Column], rows: &[Row], style: Style) -> String {
    let width_of = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(index));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
        widest.max(columns(&columns_of[index].title))
    };
    let widths: Vec<usize> = (0..columns_of.len()).map(width_of).collect();
    let rest: usize = widths.iter().skip(1).map(|width| width + GAP).sum();
    let room = style.width.saturating_sub(rest);
    if room < FIRST_COLUMN_MIN.min(widths.first().copied().unwrap_or(0)) {
        return blocks(columns_of, rows, style);
    }
    let mut widths = widths;
    if let Some(first) = widths.first_mut() {
        *first = (*first).min(room);
    }
    let titles: Vec<String> = columns_of
        .iter()
        .map(|column| column.title.clone())
        .collect();
    let mut text = line(columns_of, &titles, &widths, Paint::Dim, true, style);
    for row in rows {
        text.push_str(&line(
            columns_of, &row.cells, &widths, row.paint, false, style,
        ));
        text.push_str(&explained(row, style));
    }
    text
}

/// What stands below a row.
fn explained(row: &Row, style: Style) -> String {
    let indent = GAP * (1 + usize::from(row.text.is_some()));
    let text = row
        .text
        .iter()
        .map(|text| paragraph(text, GAP, Paint::Plain, style));
    let below = row
        .below
        .iter()
        .map(|below| paragraph(below, indent, Paint::Dim, style));
    text.chain(below).collect()
}

/// One row; the first cell wraps, the others stand on its first line.
fn line(
    columns_of: &[Column],
    cells: &[String],
    widths: &[usize],
    paint: Paint,
    paint_all: bool,
    style: Style,
) -> String {
    let first_lines = wrap(cells.first().map_or("", String::as_str), widths[0]);
    let mut text = String::new();
    for (number, first) in first_lines.iter().enumerate() {
        let padding = widths[0].saturating_sub(columns(first));
        text.push_str(&paint.on(first, style));
        if number > 0 {
            text.push('\n');
            continue;
        }
        let mut rest = " ".repeat(padding);
        for (index, cell) in cells.iter().enumerate().skip(1) {
            let width = widths[index];
            let padded = if columns_of[index].is_number {
                right(cell, width)
            } else {
                left(cell, width)
            };
            rest.push_str(&" ".repeat(GAP));
            rest.push_str(&padded);
        }
        let rest = rest.trim_end();
        let rest_paint = if paint_all { paint } else { Paint::Plain };
        text.push_str(&rest_paint.on(rest, style));
        text.push('\n');
    }
    text
}

fn blocks(columns_of: &[Column], rows: &[Row], style: Style) -> String {
    let mut text = String::new();
    for row in rows {
        let first = row.cells.first().map_or("", String::as_str);
        text.push_str(&paragraph(first, 0, row.paint, style));
        for (column, cell) in columns_of.iter().zip(&row.cells).skip(1) {
            if !cell.is_empty() {
                let entry = format!("{}: {cell}", column.title);
                text.push_str(&paragraph(&entry, GAP, Paint::Plain, style));
            }
        }
        text.push_str(&explained(row, style));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_inside_only_where_they_must() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("cat.cold-cache", 12), ["cat.cold-", "cache"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrap("3\u{a0}ms is long", 6), ["3\u{a0}ms", "is", "long"]);
    }

    #[test]
    fn only_lines_that_are_too_long_are_folded() {
        let style = Style {
            color: false,
            width: 20,
            unicode: true,
        };
        assert_eq!(
            fold("short  line\n\n  CPU         2 x Some Processor\n", style),
            "short  line\n\n  CPU 2 x Some\n    Processor\n"
        );
    }

    #[test]
    fn no_color_means_no_escape() {
        let style = Style {
            color: false,
            width: 80,
            unicode: true,
        };
        assert_eq!(Paint::Red.on("x", style), "x");
        let style = Style {
            color: true,
            ..style
        };
        assert_eq!(Paint::Red.on("x", style), "\u{1b}[31mx\u{1b}[0m");
    }

    #[test]
    fn a_narrow_line_turns_columns_into_blocks() {
        let style = Style {
            color: false,
            width: 24,
            unicode: true,
        };
        let columns = [
            Column::words("Method"),
            Column::numbers("Median"),
            Column::numbers("Trials"),
        ];
        let rows = [Row::new(vec![
            "a long name".into(),
            "3.21 ms [3.18, 3.25]".into(),
            "24".into(),
        ])];
        assert_eq!(
            table(&columns, &rows, style),
            "a long name\n  Median: 3.21 ms [3.18,\n  3.25]\n  Trials: 24\n"
        );
    }
}
