//! The screen of a terminal, which decides where characters go.
//!
//! The screen behaves like xterm and its predecessors VT102 and VT220 ("XTerm Control
//! Sequences", invisible-island.net/xterm/ctlseqs), with one difference. Text that a
//! program clears from the whole screen could be read before, so it is kept with the
//! lines that have left the screen.

use unicode_width::UnicodeWidthChar;

use super::history::{AlternateScreen, History, Title};
use super::row::Row;

/// Maximum number of columns of a screen. The limit bounds the cost of one control sequence.
pub const COLUMNS_MAX: usize = 1000;
pub const LINES_MAX: usize = 500;

/// Line index of a title that was set on the alternate screen. It is replaced when the
/// main screen is back.
const LINE_OF_ALTERNATE: usize = usize::MAX;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub row: usize,
    pub column: usize,
    /// Whether a character is in the last column, so that the next character wraps.
    pub wraps_next: bool,
    /// Whether each of the two character sets is line drawing.
    pub draws_lines: [bool; 2],
    pub shift: usize,
    pub is_relative: bool,
}

#[derive(Debug)]
pub(super) struct Screen {
    pub columns: usize,
    pub lines: usize,
    rows: Vec<Row>,
    other: Vec<Row>,
    pub is_alternate: bool,
    pub cursor: Cursor,
    /// Saved cursors of the main and the alternate screen.
    saved: [Cursor; 2],
    /// First line of the scrolling region; `bottom` is the last.
    pub top: usize,
    pub bottom: usize,
    pub wraps: bool,
    pub inserts: bool,
    /// Whether a line feed also moves to the first column.
    pub feeds_to_begin: bool,
    pub tabs: Vec<bool>,
    pub now_ns: Option<u64>,
    alternate_since_ns: Option<u64>,
    pub history: History,
}

/// Changes a screen's number of lines. Removes blank lines below the cursor first, then
/// lines at the top. Returns the lines removed at the top.
fn set_lines(rows: &mut Vec<Row>, lines: usize, cursor_row: &mut usize) -> Vec<Row> {
    while rows.len() > lines
        && *cursor_row + 1 < rows.len()
        && rows.last().is_some_and(Row::is_blank)
    {
        rows.pop();
    }
    let gone: Vec<Row> = rows.drain(..rows.len().saturating_sub(lines)).collect();
    *cursor_row = cursor_row.saturating_sub(gone.len());
    rows.resize(lines, Row::default());
    gone
}

impl Screen {
    pub fn new(columns: usize, lines: usize) -> Self {
        Self {
            columns,
            lines,
            rows: vec![Row::default(); lines],
            other: vec![Row::default(); lines],
            is_alternate: false,
            cursor: Cursor::default(),
            saved: [Cursor::default(); 2],
            top: 0,
            bottom: lines - 1,
            wraps: true,
            inserts: false,
            feeds_to_begin: false,
            tabs: (0..columns).map(|column| column % 8 == 0).collect(),
            now_ns: None,
            alternate_since_ns: None,
            history: History::default(),
        }
    }

    /// Resets to the initial state, as after power on.
    pub fn reset(&mut self) {
        self.leave_alternate(false);
        self.clear();
        *self = Self {
            history: std::mem::take(&mut self.history),
            now_ns: self.now_ns,
            feeds_to_begin: self.feeds_to_begin,
            ..Self::new(self.columns, self.lines)
        };
    }

    pub fn soft_reset(&mut self) {
        (self.top, self.bottom) = (0, self.lines - 1);
        (self.inserts, self.wraps) = (false, true);
        self.cursor.is_relative = false;
        self.cursor.draws_lines = [false; 2];
    }

    fn line(&mut self) -> &mut Row {
        &mut self.rows[self.cursor.row]
    }

    pub fn put(&mut self, character: char) {
        let now_ns = self.now_ns;
        let width = character.width().unwrap_or(0).min(2).min(self.columns);
        if width == 0 {
            let behind = self.cursor.column + usize::from(self.cursor.wraps_next);
            self.line().touch(now_ns);
            return self.line().combine(behind, character);
        }
        let has_room = self.cursor.column + width <= self.columns;
        if self.wraps && (self.cursor.wraps_next || !has_room) {
            self.line().is_wrapped = true;
            self.index();
            self.cursor.column = 0;
        } else if !has_room {
            self.cursor.column = self.columns - width;
        }
        let (column, columns) = (self.cursor.column, self.columns);
        if self.inserts {
            self.line().insert(column, width, columns);
        }
        self.line().touch(now_ns);
        self.line().put(column, character, width);
        let behind = column + width;
        self.move_to_column(behind);
        self.cursor.wraps_next = self.wraps && behind >= columns;
    }

    pub fn line_feed(&mut self) {
        self.line().is_touched = true;
        self.index();
        if self.feeds_to_begin {
            self.move_to_column(0);
        }
    }

    /// Moves the cursor one line down. At the end of the region, scrolls instead.
    fn index(&mut self) {
        self.cursor.wraps_next = false;
        if self.cursor.row == self.bottom {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.lines {
            self.cursor.row += 1;
        }
    }

    /// Moves the cursor one line up. At the beginning of the region, scrolls instead.
    pub fn reverse_index(&mut self) {
        self.cursor.wraps_next = false;
        if self.cursor.row == self.top {
            self.insert_rows(self.top, 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    /// Moves the lines of the region up. Lines that leave the screen at its top could
    /// be read before, so they are kept.
    pub fn scroll_up(&mut self, count: usize) {
        if self.top == 0 && !self.is_alternate {
            let gone = self.rows[..=self.bottom].iter().take(count);
            gone.filter(|row| row.is_touched)
                .for_each(|row| self.history.push(row));
        }
        self.remove_rows(self.top, count);
    }

    /// Removes lines from the region, and moves the lines after them up.
    fn remove_rows(&mut self, at: usize, count: usize) {
        let moved = &mut self.rows[at..=self.bottom];
        let kept = moved.len().saturating_sub(count);
        moved.rotate_left(moved.len() - kept);
        moved[kept..].fill(Row::default());
    }

    /// Moves the lines from `at` to the end of the region down.
    pub fn insert_rows(&mut self, at: usize, count: usize) {
        let moved = &mut self.rows[at..=self.bottom];
        let count = count.min(moved.len());
        moved.rotate_right(count);
        moved[..count].fill(Row::default());
    }

    fn is_in_region(&self) -> bool {
        (self.top..=self.bottom).contains(&self.cursor.row)
    }

    pub fn insert_lines(&mut self, count: usize) {
        if self.is_in_region() {
            self.insert_rows(self.cursor.row, count);
            self.move_to_column(0);
        }
    }

    pub fn delete_lines(&mut self, count: usize) {
        if self.is_in_region() {
            self.remove_rows(self.cursor.row, count);
            self.move_to_column(0);
        }
    }

    pub fn insert_characters(&mut self, count: usize) {
        self.cursor.wraps_next = false;
        let (column, columns) = (self.cursor.column, self.columns);
        self.line().insert(column, count, columns);
    }

    pub fn delete_characters(&mut self, count: usize) {
        self.cursor.wraps_next = false;
        let column = self.cursor.column;
        self.line().delete(column, count);
    }

    /// Sets the scrolling region. Lines are counted from 1; a `bottom` of 0 is the last
    /// line.
    pub fn set_region(&mut self, top: usize, bottom: usize) {
        let bottom = match bottom {
            0 => self.lines,
            bottom => bottom.min(self.lines),
        };
        if top.max(1) < bottom {
            (self.top, self.bottom) = (top.max(1) - 1, bottom - 1);
            self.move_to(0, 0);
        }
    }

    /// Clears the screen. The text of the main screen is kept.
    pub fn clear(&mut self) {
        if !self.is_alternate {
            self.history.push_screen(&self.rows);
        }
        self.rows.fill(Row::default());
    }

    pub fn erase_line(&mut self, begin: usize, end: usize) {
        self.cursor.wraps_next = false;
        let reaches_end = end >= self.columns;
        let row = self.line();
        row.erase(begin, end);
        row.is_wrapped &= !reaches_end;
    }

    /// Blanks whole lines. The lines keep the times of their writes.
    pub fn erase_lines(&mut self, lines: std::ops::Range<usize>) {
        for row in &mut self.rows[lines] {
            row.erase(0, usize::MAX);
            row.is_wrapped = false;
            row.is_touched = false;
        }
    }

    pub fn move_to_column(&mut self, column: usize) {
        self.cursor.wraps_next = false;
        self.cursor.column = column.min(self.columns - 1);
    }

    /// Moves the cursor to a line, counted within the region if positions are relative
    /// to it.
    pub fn move_to_row(&mut self, row: usize) {
        let (first, last) = if self.cursor.is_relative {
            (self.top, self.bottom)
        } else {
            (0, self.lines - 1)
        };
        self.cursor.wraps_next = false;
        self.cursor.row = first.saturating_add(row).min(last);
    }

    pub fn move_to(&mut self, row: usize, column: usize) {
        self.move_to_row(row);
        self.move_to_column(column);
    }

    /// Moves the cursor up or down without scrolling. From inside the region, it stops
    /// at the region's ends.
    pub fn move_rows(&mut self, count: usize, is_down: bool) {
        let row = self.cursor.row;
        self.cursor.wraps_next = false;
        self.cursor.row = if is_down {
            let last = if row <= self.bottom {
                self.bottom
            } else {
                self.lines - 1
            };
            row.saturating_add(count).min(last)
        } else {
            let first = if row >= self.top { self.top } else { 0 };
            row.saturating_sub(count).max(first)
        };
    }

    pub fn tab(&mut self, count: usize) {
        let mut stops = (self.cursor.column + 1..self.columns).filter(|at| self.tabs[*at]);
        let stop = stops.nth(count - 1);
        self.move_to_column(stop.unwrap_or(self.columns));
    }

    pub fn back_tab(&mut self, count: usize) {
        let mut stops = (0..self.cursor.column).rev().filter(|at| self.tabs[*at]);
        let stop = stops.nth(count - 1);
        self.move_to_column(stop.unwrap_or(0));
    }

    pub fn save_cursor(&mut self) {
        self.saved[usize::from(self.is_alternate)] = self.cursor;
    }

    pub fn restore_cursor(&mut self) {
        self.cursor = self.saved[usize::from(self.is_alternate)];
        self.keep_cursor_inside();
    }

    fn keep_cursor_inside(&mut self) {
        self.cursor.row = self.cursor.row.min(self.lines - 1);
        self.cursor.column = self.cursor.column.min(self.columns - 1);
    }

    pub fn enter_alternate(&mut self) {
        if !self.is_alternate {
            self.is_alternate = true;
            self.alternate_since_ns = self.now_ns;
            std::mem::swap(&mut self.rows, &mut self.other);
        }
    }

    /// Shows the main screen again. With `restores`, the cursor returns to its saved
    /// position.
    pub fn leave_alternate(&mut self, restores: bool) {
        if !self.is_alternate {
            return;
        }
        self.is_alternate = false;
        std::mem::swap(&mut self.rows, &mut self.other);
        if restores {
            self.restore_cursor();
        }
        let mut shown = History::default();
        shown.push_screen(&self.other);
        self.other.fill(Row::default());
        let line = self.history.line_of(&self.rows, self.cursor.row);
        let titles = self.history.titles.iter_mut().rev();
        titles
            .take_while(|title| title.line == LINE_OF_ALTERNATE)
            .for_each(|title| title.line = line);
        let screen = AlternateScreen {
            line,
            begin_ns: self.alternate_since_ns,
            end_ns: self.now_ns,
            text: shown.lines.into_iter().map(|line| line.text).collect(),
        };
        self.history.alternate_screens.push(screen);
    }

    pub fn title(&mut self, text: String) {
        let title = Title {
            text,
            line: if self.is_alternate {
                LINE_OF_ALTERNATE
            } else {
                self.history.line_of(&self.rows, self.cursor.row)
            },
            begin_ns: self.now_ns,
        };
        self.history.titles.push(title);
    }

    /// Changes the size. As in xterm, lines are not wrapped again. Text that no longer
    /// fits at the right stays in the record.
    pub fn resize(&mut self, columns: usize, lines: usize) {
        let (columns, lines) = (columns.clamp(1, COLUMNS_MAX), lines.clamp(1, LINES_MAX));
        let known = self.tabs.len();
        self.tabs
            .extend((known..columns).map(|column| column % 8 == 0));
        self.tabs.truncate(columns);
        let (row, saved_row) = (&mut self.cursor.row, &mut self.saved[0].row);
        let gone = if self.is_alternate {
            set_lines(&mut self.rows, lines, row);
            set_lines(&mut self.other, lines, saved_row)
        } else {
            set_lines(&mut self.other, lines, &mut 0);
            set_lines(&mut self.rows, lines, row)
        };
        gone.iter().for_each(|row| self.history.push(row));
        (self.columns, self.lines) = (columns, lines);
        (self.top, self.bottom) = (0, lines - 1);
        self.keep_cursor_inside();
    }

    /// Ends the recording, and keeps everything that is still on the screen.
    pub fn finish(mut self) -> History {
        self.leave_alternate(false);
        self.clear();
        let History {
            lines,
            titles,
            alternate_screens,
            ..
        } = &mut self.history;
        // Blank lines at the end do not count.
        let places = titles.iter_mut().map(|title| &mut title.line);
        let more = alternate_screens.iter_mut().map(|screen| &mut screen.line);
        places
            .chain(more)
            .for_each(|line| *line = lines.len().min(*line));
        self.history
    }
}
