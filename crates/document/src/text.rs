//! Lines for a terminal: wrapping, columns, colour.

use std::ops::{Add, AddAssign};

use unicode_width::UnicodeWidthStr;

use crate::sanitize::sanitize;
use crate::style::Style;

/// A colour of the terminal's own palette, so that it suits the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The terminal's text colour.
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
    /// The text has colours already, as a plot does.
    Drawn,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Plain | Self::Drawn => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
        }
    }
}

/// Lines for a terminal. A line consists of parts, and each part has one colour. Parts may be text
/// from others: [`Text::show`] makes them safe when the lines leave the program.
#[derive(Debug, Clone, Default)]
pub struct Text(Vec<Vec<(Paint, String)>>);

impl Text {
    /// One line.
    pub fn line(words: impl Into<String>, paint: Paint) -> Self {
        Self(vec![vec![(paint, words.into())]])
    }

    /// The lines of a plot, with its own colours.
    pub fn drawn(plot: &str) -> Self {
        plot.lines()
            .map(|line| Self::line(line, Paint::Drawn))
            .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.0.push(Vec::new());
    }

    /// Joins the sections that are not empty, with an empty line between them.
    pub fn sections(sections: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for section in sections.into_iter().filter(|one| !one.is_empty()) {
            if !all.is_empty() {
                all.gap();
            }
            all += section;
        }
        all
    }

    /// Renders the text for a terminal. Its only control sequences are the colours of the
    /// parts, and characters that the terminal cannot show are replaced.
    pub fn show(&self, style: Style) -> String {
        let mut shown = String::new();
        for line in &self.0 {
            for (paint, words) in line {
                let code = paint.code();
                let words = match paint {
                    Paint::Drawn => fit(words, style),
                    _ => fit(&sanitize(words), style),
                };
                if style.color && !code.is_empty() && !words.trim().is_empty() {
                    shown.push_str(&format!("\u{1b}[{code}m{words}\u{1b}[0m"))
                } else {
                    shown.push_str(&words)
                }
            }
            shown.push('\n');
        }
        shown
    }
}

impl AddAssign for Text {
    fn add_assign(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

impl Add for Text {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl FromIterator<Text> for Text {
    fn from_iter<T: IntoIterator<Item = Self>>(texts: T) -> Self {
        Self(texts.into_iter().flat_map(|text| text.0).collect())
    }
}

/// Returns the columns that a text takes when it is shown. Characters of double width
/// (East Asian scripts, emoji) count as two, combining marks as none.
pub fn columns(text: &str) -> usize {
    sanitize(text).width()
}

/// Breaks text into lines of at most `width` columns. Breaks a word only if it is
/// longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    // A non-breaking space keeps a number and its `%` on one line.
    let text = text.replace(" %", "\u{a0}%");
    let words = text.split([' ', '\n', '\r', '\t']);
    for word in words.filter(|word| !word.is_empty()) {
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
            let wider = format!("{line}{character}");
            if !line.is_empty() && columns(&wider) > width {
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

/// Where to break a word that is longer than a line: after the last character that joins parts of a
/// name, if this fills at least half of the line.
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

/// Wraps a text to the terminal's width, with an indent and a colour.
pub fn paragraph(text: &str, indent: usize, paint: Paint, style: Style) -> Text {
    let width = style.width.saturating_sub(indent).max(MIN_TEXT_COLUMNS);
    let indented = |line| vec![(Paint::Plain, " ".repeat(indent)), (paint, line)];
    Text(wrap(text, width).into_iter().map(indented).collect())
}

/// Returns a line unchanged if it fits. Wraps a longer line, and indents its further lines deeper
/// than the first.
pub fn fold(line: &str, style: Style) -> Text {
    if columns(line) <= style.width {
        return Text::line(line, Paint::Plain);
    }
    let indent = columns(line) - columns(line.trim_start());
    let indent = indent.min(style.width / 4);
    let width = style.width.saturating_sub(indent + HANG);
    let parts = wrap(line.trim_start(), width).into_iter().enumerate();
    parts
        .map(|(number, part)| {
            let indent = indent + if number > 0 { HANG } else { 0 };
            Text::line(" ".repeat(indent) + &part, Paint::Plain)
        })
        .collect()
}

const HANG: usize = 2;

/// Least width of text, in columns: narrower text is unreadable, so lines may exceed the
/// terminal's width instead.
const MIN_TEXT_COLUMNS: usize = 16;

/// A heading with a rule below.
pub fn heading(text: &str, style: Style) -> Text {
    let lines = wrap(text, style.width);
    let longest = lines.iter().map(|line| columns(line)).max();
    let rule = "─".repeat(longest.unwrap_or(0).min(style.width));
    paragraph(text, 0, Paint::Bold, style) + Text::line(rule, Paint::Dim)
}

/// Replaces characters that an ASCII terminal cannot show.
fn fit(text: &str, style: Style) -> String {
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
    /// Whether the column has numbers, which line up at the right.
    pub is_number: bool,
}

impl Column {
    pub fn words(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_number: false,
        }
    }

    pub fn numbers(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            is_number: true,
        }
    }
}

/// A row of a [`table`]: its cells, and lines of explanation below the cells.
pub struct Row {
    /// Cells of the row, one text for each column.
    pub cells: Vec<String>,
    /// Colour of the first cell.
    pub paint: Paint,
    /// The subject of the row, shown below the cells.
    pub text: Option<String>,
    /// Explanations, shown below the subject and indented.
    pub below: Vec<String>,
}

impl Row {
    pub fn new(cells: Vec<String>) -> Self {
        Self {
            cells,
            paint: Paint::Plain,
            text: None,
            below: Vec::new(),
        }
    }
}

const GAP: usize = 2;
/// Least width of the first column; with less room, each row becomes a block.
const FIRST_COLUMN_MIN: usize = 14;

/// Lays out rows in columns or, if the line is too narrow, each row as a block.
pub fn table(columns_of: &[Column], rows: &[Row], style: Style) -> Text {
    let Some(widths) = widths(columns_of, rows, style) else {
        return blocks(columns_of, rows, style);
    };
    let titles: Vec<String> = columns_of
        .iter()
        .map(|column| column.title.clone())
        .collect();
    let mut text = line(columns_of, &titles, &widths, [Paint::Dim; 2]);
    for row in rows {
        text += line(columns_of, &row.cells, &widths, [row.paint, Paint::Plain]);
        text += explained(row, style);
    }
    text
}

/// Returns the widths of columns. The first column may be narrower than its cells. `None` if the
/// other columns leave the first one too little room.
pub fn widths(columns_of: &[Column], rows: &[Row], style: Style) -> Option<Vec<usize>> {
    let width_of = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(index));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
        widest.max(columns(&columns_of[index].title))
    };
    let mut widths: Vec<usize> = (0..columns_of.len()).map(width_of).collect();
    let rest: usize = widths.iter().skip(1).map(|width| width + GAP).sum();
    let room = style.width.saturating_sub(rest);
    let first = widths.first_mut()?;
    if room < FIRST_COLUMN_MIN.min(*first) {
        return None;
    }
    *first = (*first).min(room);
    Some(widths)
}

/// The lines below a row.
fn explained(row: &Row, style: Style) -> Text {
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

/// One row: the first cell may wrap, and the other cells are on the first line of the row.
fn line(
    columns_of: &[Column],
    cells: &[String],
    widths: &[usize],
    [first_paint, paint]: [Paint; 2],
) -> Text {
    let first_lines = wrap(cells.first().map_or("", String::as_str), widths[0]);
    let mut lines: Vec<Vec<(Paint, String)>> = first_lines
        .into_iter()
        .map(|line| vec![(first_paint, line)])
        .collect();
    let (_, first) = &lines[0][0];
    let mut rest = " ".repeat(widths[0].saturating_sub(columns(first)));
    for (index, cell) in cells.iter().enumerate().skip(1) {
        rest.push_str(&" ".repeat(GAP));
        rest.push_str(&if columns_of[index].is_number {
            right(cell, widths[index])
        } else {
            left(cell, widths[index])
        });
    }
    lines[0].push((paint, rest.trim_end().to_owned()));
    Text(lines)
}

fn blocks(columns_of: &[Column], rows: &[Row], style: Style) -> Text {
    let mut text = Text::default();
    for row in rows {
        let first = row.cells.first().map_or("", String::as_str);
        text += paragraph(first, 0, row.paint, style);
        for (column, cell) in columns_of.iter().zip(&row.cells).skip(1) {
            if !cell.is_empty() {
                let entry = format!("{}: {cell}", column.title);
                text += paragraph(&entry, GAP, Paint::Plain, style);
            }
        }
        text += explained(row, style);
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
        assert_eq!(
            wrap("saves 17 %, or so", 10),
            ["saves", "17\u{a0}%, or", "so"]
        );
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
        let folded = |line| fold(line, style).show(style);
        assert_eq!(folded("short  line"), "short  line\n");
        assert_eq!(
            folded("  CPU         2 x Some Processor"),
            "  CPU 2 x Some\n    Processor\n"
        );
    }

    #[test]
    fn no_color_means_no_escape() {
        let style = Style {
            color: false,
            width: 80,
            unicode: true,
        };
        // Text from others stays on one line and cannot control the terminal.
        let text = Text::line("x\ny\u{1b}[1m", Paint::Red);
        assert_eq!(text.show(style), "x y\u{fffd}[1m\n");
        let style = Style {
            color: true,
            ..style
        };
        let red = "\u{1b}[31mx y\u{fffd}[1m\u{1b}[0m\n";
        assert_eq!(text.show(style), red);
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
            table(&columns, &rows, style).show(style),
            "a long name\n  Median: 3.21 ms [3.18,\n  3.25]\n  Trials: 24\n"
        );
    }
}
