//! The screen of a terminal: where characters go.
//!
//! It follows xterm and the VT102 and VT220 before it ("XTerm Control
//! Sequences", invisible-island.net/xterm/ctlseqs), with one difference that a
//! record wants: what a program clears from the whole screen was there to be
//! read, so it goes to the lines that have left the screen.

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar;

use super::history::{AlternateScreen, Event, History};
use super::row::Row;

/// Most columns and lines of a screen. It bounds what one control sequence can
/// cost.
pub const COLUMNS_MAX: usize = 1000;
/// See [`COLUMNS_MAX`].
pub const LINES_MAX: usize = 500;

/// A cursor as the terminal saves it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub row: usize,
    pub column: usize,
    /// A character stands in the last column, and the next one wraps.
    pub wraps_next: bool,
    /// Which character sets are line drawing, and which one is used.
    pub draws_lines: [bool; 2],
    pub shift: usize,
    pub is_relative: bool,
}

/// A screen with its alternate.
#[derive(Debug)]
pub(super) struct Screen {
    pub columns: usize,
    pub lines: usize,
    pub rows: VecDeque<Row>,
    /// The screen that is not shown.
    other: VecDeque<Row>,
    pub is_alternate: bool,
    pub cursor: Cursor,
    /// Of the main and the alternate screen.
    saved: [Cursor; 2],
    /// The lines that scroll, both included.
    pub top: usize,
    pub bottom: usize,
    pub wraps: bool,
    pub inserts: bool,
    /// A line feed goes to the first column.
    pub feeds_to_begin: bool,
    tabs: Vec<bool>,
    pub now_ns: Option<u64>,
    alternate_since_ns: Option<u64>,
    pub history: History,
}

fn blank_rows(lines: usize) -> VecDeque<Row> {
    std::iter::repeat_with(Row::default).take(lines).collect()
}

fn tabs(columns: usize) -> Vec<bool> {
    (0..columns).map(|column| column % 8 == 0).collect()
}

/// Takes lines off a screen: blank ones below the cursor, then those at the top,
/// which it gives.
fn shrink(rows: &mut VecDeque<Row>, lines: usize, cursor: &mut usize) -> Vec<Row> {
    let mut gone = Vec::new();
    while rows.len() > lines {
        let is_spare = |row: &Row| row.is_blank() && row.events.is_empty();
        if *cursor + 1 < rows.len() && rows.back().is_some_and(is_spare) {
            rows.pop_back();
        } else {
            gone.extend(rows.pop_front());
            *cursor = cursor.saturating_sub(1);
        }
    }
    gone
}

impl Screen {
    pub fn new(columns: usize, lines: usize) -> Self {
        let columns = columns.clamp(1, COLUMNS_MAX);
        let lines = lines.clamp(1, LINES_MAX);
        Self {
            columns,
            lines,
            rows: blank_rows(lines),
            other: blank_rows(lines),
            is_alternate: false,
            cursor: Cursor::default(),
            saved: [Cursor::default(); 2],
            top: 0,
            bottom: lines - 1,
            wraps: true,
            inserts: false,
            feeds_to_begin: false,
            tabs: tabs(columns),
            now_ns: None,
            alternate_since_ns: None,
            history: History::default(),
        }
    }

    /// Back to the beginning, as after power on.
    pub fn reset(&mut self) {
        self.leave_alternate(false);
        self.clear();
        let fresh = Self::new(self.columns, self.lines);
        let history = std::mem::take(&mut self.history);
        let (now_ns, feeds) = (self.now_ns, self.feeds_to_begin);
        *self = Self {
            history,
            now_ns,
            feeds_to_begin: feeds,
            ..fresh
        };
    }

    pub fn line(&mut self) -> &mut Row {
        &mut self.rows[self.cursor.row]
    }

    /// Writes a character where the cursor is.
    pub fn put(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        if width == 0 {
            let cursor = self.cursor;
            let behind = cursor.column + usize::from(cursor.wraps_next);
            let now_ns = self.now_ns;
            let row = self.line();
            row.touch(now_ns);
            row.combine(behind, character);
            return;
        }
        let is_wide = width > 1 && self.columns > 1;
        let width = if is_wide { 2 } else { 1 };
        let has_room = self.cursor.column + width <= self.columns;
        if self.wraps && (self.cursor.wraps_next || !has_room) {
            self.line().is_wrapped = true;
            self.index();
            self.cursor.column = 0;
        } else if !has_room {
            self.cursor.column = self.columns - width;
        }
        self.cursor.wraps_next = false;
        let (column, columns) = (self.cursor.column, self.columns);
        let (inserts, now_ns) = (self.inserts, self.now_ns);
        let row = self.line();
        if inserts {
            row.insert(column, width, columns);
        }
        row.touch(now_ns);
        row.put(column, character, is_wide);
        self.cursor.column += width;
        if self.cursor.column >= self.columns {
            self.cursor.column = self.columns - 1;
            self.cursor.wraps_next = self.wraps;
        }
    }

    pub fn line_feed(&mut self) {
        self.line().is_touched = true;
        self.index();
        if self.feeds_to_begin {
            self.move_to_column(0);
        }
    }

    /// One line down, scrolling at the end of the region.
    pub fn index(&mut self) {
        self.cursor.wraps_next = false;
        if self.cursor.row == self.bottom {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.lines {
            self.cursor.row += 1;
        }
    }

    /// One line up, scrolling at the begin of the region.
    pub fn reverse_index(&mut self) {
        self.cursor.wraps_next = false;
        if self.cursor.row == self.top {
            self.scroll_down(self.top, 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    /// Moves the region up; what leaves the screen above it has been read.
    pub fn scroll_up(&mut self, count: usize) {
        let is_read = self.top == 0 && !self.is_alternate;
        for row in self.take_out(self.top, count) {
            if is_read && (row.is_touched || !row.events.is_empty()) {
                self.history.push(&row);
            } else {
                self.hand_on(row, self.top);
            }
        }
    }

    /// Takes lines out of the region; those behind move up. All at once, since
    /// one sequence may ask for as many as there are.
    fn take_out(&mut self, at: usize, count: usize) -> Vec<Row> {
        let count = count.min((self.bottom + 1).saturating_sub(at));
        if count == 1 {
            let gone = self.rows.remove(at);
            self.rows.insert(self.bottom, Row::default());
            return gone.into_iter().collect();
        }
        let moved = &mut self.rows.make_contiguous()[at..=self.bottom];
        moved.rotate_left(count);
        let behind = moved.len() - count;
        moved[behind..].iter_mut().map(std::mem::take).collect()
    }

    /// Moves the lines from one to the region's end down.
    pub fn scroll_down(&mut self, from: usize, count: usize) {
        let count = count.min((self.bottom + 1).saturating_sub(from));
        let gone: Vec<Row> = match count {
            1 => {
                let gone = self.rows.remove(self.bottom);
                self.rows.insert(from, Row::default());
                gone.into_iter().collect()
            }
            _ => {
                let moved = &mut self.rows.make_contiguous()[from..=self.bottom];
                moved.rotate_right(count);
                moved[..count].iter_mut().map(std::mem::take).collect()
            }
        };
        for row in gone {
            self.hand_on(row, self.bottom);
        }
    }

    /// Takes lines out of the region, at the cursor.
    pub fn delete_lines(&mut self, count: usize) {
        if !(self.top..=self.bottom).contains(&self.cursor.row) {
            return;
        }
        let at = self.cursor.row;
        for row in self.take_out(at, count) {
            self.hand_on(row, at);
        }
        self.move_to_column(0);
    }

    /// Makes room for lines in the region, at the cursor.
    pub fn insert_lines(&mut self, count: usize) {
        if (self.top..=self.bottom).contains(&self.cursor.row) {
            self.scroll_down(self.cursor.row, count);
            self.move_to_column(0);
        }
    }

    /// What happened at a line that is gone happened at another then.
    fn hand_on(&mut self, mut gone: Row, to: usize) {
        let to = to.min(self.rows.len() - 1);
        let events = &mut self.rows[to].events;
        // Their order means nothing, and moving the fewer keeps it cheap.
        if events.len() < gone.events.len() {
            std::mem::swap(events, &mut gone.events);
        }
        events.append(&mut gone.events);
    }

    /// Clears the screen; of the main one, what stood there is kept.
    pub fn clear(&mut self) {
        if !self.is_alternate {
            self.history.push_screen(self.rows.iter());
            self.rows.iter_mut().for_each(|row| row.events.clear());
        }
        self.rows.iter_mut().for_each(Row::blank);
    }

    pub fn erase_line(&mut self, begin: usize, end: usize) {
        let columns = self.columns;
        self.cursor.wraps_next = false;
        let row = self.line();
        row.erase(begin, end);
        if end >= columns {
            row.is_wrapped = false;
        }
    }

    /// Blanks whole lines from `begin` to before `end`.
    pub fn erase_lines(&mut self, begin: usize, end: usize) {
        for row in self.rows.range_mut(begin..end.min(self.lines)) {
            row.erase(0, usize::MAX);
            row.is_wrapped = false;
            row.is_touched = false;
        }
    }

    pub fn move_to_column(&mut self, column: usize) {
        self.cursor.wraps_next = false;
        self.cursor.column = column.min(self.columns - 1);
    }

    /// Moves to a line, of the region if positions are relative to it.
    pub fn move_to_row(&mut self, row: usize) {
        let (first, last) = match self.cursor.is_relative {
            true => (self.top, self.bottom),
            false => (0, self.lines - 1),
        };
        self.cursor.wraps_next = false;
        self.cursor.row = first.saturating_add(row).min(last);
    }

    /// Up or down without scrolling; the region's ends stop it from inside.
    pub fn move_rows(&mut self, count: usize, is_down: bool) {
        let row = self.cursor.row;
        self.cursor.wraps_next = false;
        self.cursor.row = match is_down {
            true if row <= self.bottom => row.saturating_add(count).min(self.bottom),
            true => row.saturating_add(count).min(self.lines - 1),
            false if row >= self.top => row.saturating_sub(count).max(self.top),
            false => row.saturating_sub(count),
        };
    }

    pub fn tab(&mut self, count: usize) {
        for _ in 0..count.min(self.columns) {
            let next = (self.cursor.column + 1..self.columns).find(|at| self.tabs[*at]);
            self.move_to_column(next.unwrap_or(self.columns - 1));
        }
    }

    pub fn back_tab(&mut self, count: usize) {
        for _ in 0..count.min(self.columns) {
            let before = (0..self.cursor.column).rev().find(|at| self.tabs[*at]);
            self.move_to_column(before.unwrap_or(0));
        }
    }

    pub fn set_tab(&mut self) {
        self.tabs[self.cursor.column] = true;
    }

    pub fn clear_tab(&mut self) {
        self.tabs[self.cursor.column] = false;
    }

    pub fn clear_tabs(&mut self) {
        self.tabs.fill(false);
    }

    pub fn save_cursor(&mut self) {
        self.saved[usize::from(self.is_alternate)] = self.cursor;
    }

    pub fn restore_cursor(&mut self) {
        self.cursor = self.saved[usize::from(self.is_alternate)];
        self.cursor.row = self.cursor.row.min(self.lines - 1);
        self.cursor.column = self.cursor.column.min(self.columns - 1);
    }

    pub fn enter_alternate(&mut self) {
        if self.is_alternate {
            return;
        }
        self.is_alternate = true;
        self.alternate_since_ns = self.now_ns;
        std::mem::swap(&mut self.rows, &mut self.other);
    }

    /// Shows the main screen again, with the cursor where it was saved there if
    /// wanted.
    pub fn leave_alternate(&mut self, restores: bool) {
        if !self.is_alternate {
            return;
        }
        self.is_alternate = false;
        std::mem::swap(&mut self.rows, &mut self.other);
        let shown = AlternateScreen {
            line: 0,
            begin_ns: self.alternate_since_ns,
            end_ns: self.now_ns,
            text: History::text_of(self.other.iter()),
        };
        if restores {
            self.restore_cursor();
        }
        // Titles that were set meanwhile.
        let mut events: Vec<usize> = Vec::new();
        for row in &mut self.other {
            events.append(&mut row.events);
            *row = Row::default();
        }
        self.line().events.append(&mut events);
        self.happens(Event::Alternate(shown));
    }

    /// Notes something at the cursor's line.
    pub fn happens(&mut self, event: Event) {
        let index = self.history.events.len();
        self.history.events.push(event);
        self.line().events.push(index);
    }

    /// Takes another size. Nothing is folded anew, as xterm has it; what no
    /// longer fits at the right stays in the record.
    pub fn resize(&mut self, columns: usize, lines: usize) {
        let columns = columns.clamp(1, COLUMNS_MAX);
        let lines = lines.clamp(1, LINES_MAX);
        if columns > self.columns {
            let more = (self.columns..columns).map(|column| column % 8 == 0);
            self.tabs.extend(more);
        }
        self.tabs.truncate(columns);
        self.columns = columns;
        let gone = shrink(&mut self.rows, lines, &mut self.cursor.row);
        for row in gone {
            match self.is_alternate {
                true => self.hand_on(row, 0),
                false => self.history.push(&row),
            }
        }
        let mut saved_row = self.saved[0].row;
        let gone = shrink(&mut self.other, lines, &mut saved_row);
        if self.is_alternate {
            self.saved[0].row = saved_row;
            gone.iter().for_each(|row| self.history.push(row));
        }
        self.rows.resize_with(lines, Row::default);
        self.other.resize_with(lines, Row::default);
        self.lines = lines;
        self.top = 0;
        self.bottom = lines - 1;
        self.cursor.row = self.cursor.row.min(lines - 1);
        self.cursor.column = self.cursor.column.min(columns - 1);
    }

    /// Everything that is still on the screen has been read.
    pub fn finish(mut self) -> History {
        self.leave_alternate(false);
        self.clear();
        self.history
    }
}
