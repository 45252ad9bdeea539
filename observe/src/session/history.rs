//! The finished lines of a session, and events between the lines.

use serde::Serialize;

use super::row::Row;

/// One line of the cleaned text. Times count from the start of the recording.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Text of the line, in UTF-8, without control characters and trailing blanks. A
    /// byte that is not UTF-8 is shown as `\xfe`.
    pub text: String,
    /// Time of the line's first character; `None` without timing.
    pub begin_ns: Option<u64>,
    /// Time of the last write to the line.
    pub end_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct Title {
    /// The title, cut to its first 1000 characters.
    pub text: String,
    /// Index of the line that was being written when the title was set; one past the
    /// last line if there was none.
    pub line: usize,
    pub begin_ns: Option<u64>,
}

/// The content of an alternate screen, which editors and pagers use to leave no trace.
#[derive(Debug, Serialize)]
pub struct AlternateScreen {
    /// Index of the line that was being written when the alternate screen was shown.
    pub line: usize,
    pub begin_ns: Option<u64>,
    pub end_ns: Option<u64>,
    pub text: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    pub lines: Vec<Line>,
    pub titles: Vec<Title>,
    pub alternate_screens: Vec<AlternateScreen>,
    /// Whether the last line continues in the next row.
    goes_on: bool,
}

impl History {
    pub fn push(&mut self, row: &Row) {
        if !self.goes_on {
            self.lines.push(Line {
                text: String::new(),
                begin_ns: row.begin_ns,
                end_ns: row.end_ns,
            });
        }
        if let Some(line) = self.lines.last_mut() {
            row.append_to(&mut line.text);
            line.end_ns = line.end_ns.max(row.end_ns);
        }
        self.goes_on = row.is_wrapped;
    }

    /// Adds the rows of a screen that will be cleared, or of the last screen. Untouched
    /// rows between others become one blank line; untouched rows at the beginning and the
    /// end are dropped.
    pub fn push_screen(&mut self, rows: &[Row]) {
        // A touched row that is blank counts only if something follows it.
        let last = rows.iter().rposition(|row| !row.is_blank());
        let shown = &rows[..last.map_or(0, |last| last + 1)];
        for (index, row) in shown.iter().enumerate() {
            if row.is_touched {
                self.push(row);
            } else if index > 0 && shown[index - 1].is_touched {
                self.push(&Row::default());
            }
        }
        self.goes_on = false;
    }

    /// Returns the index that a row of a screen would have among the finished lines.
    pub fn line_of(&self, rows: &[Row], row: usize) -> usize {
        let mut count = self.lines.len();
        let mut goes_on = self.goes_on;
        for (index, row) in rows[..row].iter().enumerate() {
            let is_line = row.is_touched || index > 0 && rows[index - 1].is_touched;
            count += usize::from(is_line && !(goes_on && row.is_touched));
            goes_on = row.is_wrapped && row.is_touched;
        }
        count - usize::from(goes_on)
    }
}
