//! Documents for a terminal: wrapping, columns, colour.

use crate::document::{Block, Document, Text, Wrapping};
use crate::sanitize::sanitize;
use crate::style::{Paint, Style};
use crate::table::{Column, Row, Table};
use crate::wrap::{columns, left, right, wrap};

impl Document {
    /// Renders for a terminal. The only control sequences are those of colours, and characters
    /// that the terminal cannot show are replaced.
    pub fn show(&self, style: Style) -> String {
        let lines = style.document(self);
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// Indent of a long line's further lines, in columns.
const HANG: usize = 2;
/// Minimum width of text, in columns: narrower text is unreadable, so lines may exceed the
/// terminal's width instead.
const MIN_TEXT_COLUMNS: usize = 16;
/// Columns between the columns of a table.
const GAP: usize = 2;
/// Minimum width of the first column; with less room, each row becomes a block.
const FIRST_COLUMN_MIN: usize = 14;

impl Style {
    /// The lines of a document.
    fn document(self, document: &Document) -> Vec<String> {
        let mut lines = Vec::new();
        for block in &document.0 {
            match block {
                Block::Heading(text) => lines.extend(self.heading(&self.safe(text))),
                Block::Text(text) => lines.extend(self.text(text)),
                Block::Note(text, paint) => {
                    let text = self.safe(&format!("· {text}"));
                    lines.extend(self.paragraph(&text, 0, *paint))
                }
                Block::Ends(ends, paint) => {
                    let ends = ends.each_ref().map(|end| self.safe(end));
                    lines.extend(self.ends(&ends, *paint))
                }
                Block::Alternatives(all) => {
                    let shown = all.iter().map(|one| self.document(one));
                    let is_last = |index| index + 1 == all.len();
                    let mut shown = shown.enumerate();
                    let found = shown.find(|(index, one)| one.len() == 1 || is_last(*index));
                    lines.extend(found.map(|(_, one)| one).unwrap_or_default())
                }
                Block::Table(table) => lines.extend(self.table(table)),
                Block::Figure(draw) => match draw(self) {
                    Some(drawn) => {
                        let drawn = drawn.trim_end().lines();
                        lines.extend(drawn.map(|one| self.paint(&self.fit(one), Paint::Plain)))
                    }
                    None if lines.last().is_some_and(String::is_empty) => drop(lines.pop()),
                    None => {}
                },
                Block::Gap => lines.push(String::new()),
            }
        }
        lines
    }

    /// Makes text from others safe. It happens before the layout, since it changes widths.
    fn safe(self, text: &str) -> String {
        self.fit(&sanitize(text))
    }

    /// A part of a line, coloured. Non-breaking spaces have done their work.
    fn paint(self, text: &str, paint: Paint) -> String {
        let text = text.replace('\u{a0}', " ");
        match paint.code() {
            code if self.color && !code.is_empty() && !text.trim().is_empty() => {
                format!("\u{1b}[{code}m{text}\u{1b}[0m")
            }
            _ => text,
        }
    }

    fn heading(self, text: &str) -> Vec<String> {
        let lines = self.wrapped(text, 0);
        let longest = lines.iter().map(|line| columns(line)).max();
        let rule = self.fit("─").repeat(longest.unwrap_or(0));
        let lines = lines.iter().map(|line| self.paint(line, Paint::Bold));
        lines.chain([self.paint(&rule, Paint::Dim)]).collect()
    }

    fn text(self, text: &Text) -> Vec<String> {
        let words = self.safe(&text.text.plain());
        match text.wrapping {
            Wrapping::Words => self.paragraph(&words, text.indent, text.paint),
            Wrapping::Hanging if columns(&words) > self.width => self.hanging(&words, text.paint),
            Wrapping::Hanging | Wrapping::Never => vec![self.paint(&words, text.paint)],
        }
    }

    fn paragraph(self, text: &str, indent: usize, paint: Paint) -> Vec<String> {
        let lines = self.wrapped(text, indent).into_iter();
        let indent = " ".repeat(indent);
        lines
            .map(|line| format!("{indent}{}", self.paint(&line, paint)))
            .collect()
    }

    fn wrapped(self, text: &str, indent: usize) -> Vec<String> {
        let width = self.width.saturating_sub(indent).max(MIN_TEXT_COLUMNS);
        wrap(text, width)
    }

    fn hanging(self, text: &str, paint: Paint) -> Vec<String> {
        let words = text.trim_start();
        let indent = (columns(text) - columns(words)).min(self.width / 4);
        let width = self.width.saturating_sub(indent + HANG);
        let lines = wrap(words, width).into_iter().enumerate();
        lines
            .map(|(number, line)| {
                let indent = indent + if number > 0 { HANG } else { 0 };
                " ".repeat(indent) + &self.paint(&line, paint)
            })
            .collect()
    }

    fn ends(self, [left, right]: &[String; 2], paint: Paint) -> Vec<String> {
        let room = self.width.saturating_sub(columns(left) + columns(right));
        if room < GAP {
            return self.paragraph(&format!("{left} {right}"), 0, paint);
        }
        let gap = " ".repeat(room);
        vec![self.paint(&format!("{left}{gap}{right}"), paint)]
    }

    /// Lays out rows in columns or, if the line is too narrow, each row as a block.
    fn table(self, table: &Table) -> Vec<String> {
        let rows: Vec<(Vec<String>, &Row)> = table.rows.iter().map(|row| self.row(row)).collect();
        let titles = table.columns.iter().map(|column| self.safe(&column.title));
        let titles: Vec<String> = titles.collect();
        let mut titles = &titles[..];
        let mut widths = self.widths(titles, &rows);
        let is_optional = |count: usize| {
            let last = table.columns[..count].last();
            last.is_some_and(|column| column.is_optional)
        };
        while widths.is_none() && is_optional(titles.len()) {
            titles = &titles[..titles.len() - 1];
            widths = self.widths(titles, &rows);
        }
        let Some(widths) = widths else {
            return self.stacked(titles, &rows);
        };
        let mut lines = self.cells(&table.columns, titles, &widths, [Paint::Dim; 2]);
        for (cells, row) in &rows {
            let paints = [row.paint, Paint::Plain];
            lines.extend(self.cells(&table.columns, cells, &widths, paints));
            lines.extend(self.explained(row));
        }
        lines
    }

    /// A row with the texts of its cells. The marks stay on the line of the end of the first cell.
    fn row(self, row: &Row) -> (Vec<String>, &Row) {
        let cells = row.cells.iter().map(|cell| self.safe(&cell.plain()));
        let mut cells: Vec<String> = cells.collect();
        if let Some(first) = cells.first_mut().filter(|_| !row.marks.is_empty()) {
            *first = format!("{first}\u{a0}{}", self.safe(&row.marks));
        }
        (cells, row)
    }

    /// Returns the widths of columns. The first column may be narrower than its cells. `None` if
    /// the other columns leave the first one too little room.
    fn widths(self, titles: &[String], rows: &[(Vec<String>, &Row)]) -> Option<Vec<usize>> {
        let width_of = |index: usize| {
            let cells = rows.iter().filter_map(|(cells, _)| cells.get(index));
            let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
            widest.max(columns(&titles[index]))
        };
        let mut widths: Vec<usize> = (0..titles.len()).map(width_of).collect();
        let rest: usize = widths.iter().skip(1).map(|width| width + GAP).sum();
        let room = self.width.saturating_sub(rest);
        let first = widths.first_mut()?;
        if room < FIRST_COLUMN_MIN.min(*first) {
            return None;
        }
        *first = (*first).min(room);
        Some(widths)
    }

    /// One row: the first cell may wrap, and the other cells are on the first line of the row.
    fn cells(
        self,
        columns_of: &[Column],
        cells: &[String],
        widths: &[usize],
        [first_paint, paint]: [Paint; 2],
    ) -> Vec<String> {
        let first = wrap(cells.first().map_or("", String::as_str), widths[0]);
        let mut rest = " ".repeat(widths[0].saturating_sub(columns(&first[0])));
        for ((cell, column), width) in cells.iter().zip(columns_of).zip(widths).skip(1) {
            rest.push_str(&" ".repeat(GAP));
            rest.push_str(&if column.is_number {
                right(cell, *width)
            } else {
                left(cell, *width)
            });
        }
        let first = first.iter().map(|line| self.paint(line, first_paint));
        let mut lines: Vec<String> = first.collect();
        lines[0].push_str(&self.paint(rest.trim_end(), paint));
        lines
    }

    /// The lines below a row.
    fn explained(self, row: &Row) -> Vec<String> {
        let indent = GAP * (1 + usize::from(row.text.is_some()));
        let text = row.text.iter();
        let text = text.flat_map(|text| self.paragraph(&self.safe(text), GAP, Paint::Plain));
        let below = row.below.iter();
        let below = below.flat_map(|below| self.paragraph(&self.safe(below), indent, Paint::Dim));
        text.chain(below).collect()
    }

    fn stacked(self, titles: &[String], rows: &[(Vec<String>, &Row)]) -> Vec<String> {
        let mut lines = Vec::new();
        for (cells, row) in rows {
            let first = cells.first().map_or("", String::as_str);
            lines.extend(self.paragraph(first, 0, row.paint));
            for (title, cell) in titles.iter().zip(cells).skip(1) {
                if !cell.is_empty() {
                    let entry = format!("{title}: {cell}");
                    lines.extend(self.paragraph(&entry, GAP, Paint::Plain));
                }
            }
            lines.extend(self.explained(row));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{fold, heading, paragraph, table};
    use crate::table::{Column, Row};

    #[test]
    fn only_lines_that_are_too_long_are_folded() {
        let style = Style::new(false, 20, true);
        let folded = |line| fold(line).show(style);
        assert_eq!(folded("short  line"), "short  line\n");
        assert_eq!(
            folded("  CPU         2 x Some Processor"),
            "  CPU 2 x Some\n    Processor\n"
        );
    }

    #[test]
    fn no_color_means_no_escape() {
        let style = Style::new(false, 80, true);
        // Text from others stays on one line and cannot control the terminal.
        let text = Document::line("x\ny\u{1b}[1m", Paint::Red);
        assert_eq!(text.show(style), "x y\u{fffd}[1m\n");
        let style = Style {
            color: true,
            ..style
        };
        let red = "\u{1b}[31mx y\u{fffd}[1m\u{1b}[0m\n";
        assert_eq!(text.show(style), red);
    }

    #[test]
    fn the_layout_counts_what_replaces_a_character() {
        let ascii = Style::new(false, 20, false);
        assert_eq!(heading("a → b").show(ascii), "a => b\n------\n");
        let arrows = paragraph("→ → → → → → → →", 0, Paint::Plain).show(ascii);
        assert_eq!(arrows, "=> => => => => => =>\n=>\n");
        let columns = [Column::words(""), Column::numbers("∞")];
        let rows = [Row::new(["漢字", "1"]), Row::new(["abc", "22"])];
        let rows = table(columns, rows).show(ascii);
        assert_eq!(rows, "     inf\n??     1\nabc   22\n");
    }

    #[test]
    fn a_narrow_line_turns_columns_into_blocks() {
        let style = Style::new(false, 24, true);
        let columns = [
            Column::words("Method"),
            Column::numbers("Median"),
            Column::numbers("Trials"),
        ];
        let rows = [Row::new(["a long name", "3.21 ms [3.18, 3.25]", "24"])];
        assert_eq!(
            table(columns, rows).show(style),
            "a long name\n  Median: 3.21 ms [3.18,\n  3.25]\n  Trials: 24\n"
        );
    }
}
