//! Lines that are finished, and what happened between them.

use serde::Serialize;

use super::row::Row;

/// One line of the cleaned text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it says: UTF-8 without control characters, and without blanks at
    /// its end. A byte that is no UTF-8 is `\xfe`.
    pub text: String,
    /// When its first character came, in nanoseconds since the recording
    /// began; none without timing.
    pub begin_ns: Option<u64>,
    /// When it was last written to.
    pub end_ns: Option<u64>,
}

/// A title that was given to the terminal's window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Title {
    /// Its text, at most 1000 characters of it.
    pub text: String,
    /// The index of the line that was written then; one past the last if
    /// nothing was.
    pub line: usize,
    /// When, in nanoseconds since the recording began.
    pub begin_ns: Option<u64>,
}

/// What a program showed on the alternate screen, which editors and pagers
/// leave without a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlternateScreen {
    /// The index of the line that was written when it was shown.
    pub line: usize,
    /// From when, in nanoseconds since the recording began.
    pub begin_ns: Option<u64>,
    /// Until when.
    pub end_ns: Option<u64>,
    /// What it showed last.
    pub text: Vec<String>,
}

/// What happened at a line.
#[derive(Debug)]
pub(super) enum Event {
    Title(Title),
    Alternate(AlternateScreen),
}

/// What has left the screen.
#[derive(Debug, Default)]
pub(super) struct History {
    pub lines: Vec<Line>,
    pub events: Vec<Event>,
    /// The last line goes on in the next row.
    goes_on: bool,
}

impl History {
    /// Takes in a row that is finished.
    pub fn push(&mut self, row: &Row) {
        if !self.goes_on {
            self.lines.push(Line {
                text: String::new(),
                begin_ns: row.begin_ns,
                end_ns: row.end_ns,
            });
        }
        let index = self.lines.len() - 1;
        let line = &mut self.lines[index];
        row.append_to(&mut line.text);
        line.end_ns = line.end_ns.max(row.end_ns);
        self.goes_on = row.is_wrapped;
        self.place(row, index);
    }

    /// What happened at a row happened at a line.
    fn place(&mut self, row: &Row, index: usize) {
        for event in &row.events {
            // Events of a row outside of this history are not its own.
            match self.events.get_mut(*event) {
                Some(Event::Title(title)) => title.line = index,
                Some(Event::Alternate(screen)) => screen.line = index,
                None => {}
            }
        }
    }

    /// Takes in the rows of a screen that will be cleared or that is the last.
    /// Rows that nothing was written to are one blank line between others, and
    /// nothing at the begin and the end.
    pub fn push_screen<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) {
        let rows: Vec<&Row> = rows.collect();
        // A touched row that is blank counts only if something comes behind it.
        let last = rows.iter().rposition(|row| !row.is_blank());
        let (shown, blank) = rows.split_at(last.map_or(0, |last| last + 1));
        let mut has_gap = false;
        let mut is_first = true;
        for row in shown {
            if !row.is_touched {
                has_gap = true;
                self.place(row, self.lines.len());
                continue;
            }
            if std::mem::take(&mut has_gap) && !is_first {
                self.push(&Row::default());
            }
            is_first = false;
            self.push(row);
        }
        self.goes_on = false;
        for row in blank {
            self.place(row, self.lines.len());
        }
    }

    /// The text of rows alone.
    pub fn text_of<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
        let mut history = Self::default();
        history.push_screen(rows);
        history.lines.into_iter().map(|line| line.text).collect()
    }
}
