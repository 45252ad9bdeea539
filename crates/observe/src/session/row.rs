//! A line of the screen.

/// Where bytes that are no UTF-8 are kept on the screen: byte `b` is the
/// character `INVALID_BYTES + b`, at the end of the last private-use plane. A
/// terminal shows one replacement character for such a byte, so one cell is
/// what it takes.
pub(super) const INVALID_BYTES: u32 = 0x10_ff00;

/// The byte that a character of the screen stands for, if it is none of UTF-8.
pub(super) fn invalid_byte(character: char) -> Option<u8> {
    let offset = u32::from(character).checked_sub(INVALID_BYTES)?;
    u8::try_from(offset).ok().filter(|byte| *byte >= 0x80)
}

/// Appends a character as the cleaned text has it.
pub(super) fn push_shown(text: &mut String, character: char) {
    match invalid_byte(character) {
        Some(byte) => {
            let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('?');
            text.push_str("\\x");
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        None => text.push(character),
    }
}

/// One column of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    /// What stands there; the right half of a wide character has none.
    pub base: Option<char>,
    /// Combining characters and joiners behind it.
    pub marks: String,
    /// It takes the next cell, too.
    pub is_wide: bool,
}

impl Cell {
    pub const BLANK: Self = Self {
        base: Some(' '),
        marks: String::new(),
        is_wide: false,
    };
    /// The right half of a wide character.
    pub const RIGHT: Self = Self {
        base: None,
        marks: String::new(),
        is_wide: false,
    };
}

/// A line of the screen. Cells behind the last one written are blank.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    /// The text goes on in the next line, for want of columns.
    pub is_wrapped: bool,
    /// The cursor has written here, or left here by a line feed.
    pub is_touched: bool,
    /// What happened when this was the cursor's line, by index.
    pub events: Vec<usize>,
    /// When it was first and last written to, in nanoseconds of the session.
    pub begin_ns: Option<u64>,
    pub end_ns: Option<u64>,
}

impl Row {
    /// Notes that something is written now.
    pub fn touch(&mut self, now_ns: Option<u64>) {
        self.is_touched = true;
        if self.begin_ns.is_none() {
            self.begin_ns = now_ns;
        }
        self.end_ns = now_ns;
    }

    pub fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| *cell == Cell::BLANK)
    }

    /// As new, but for what happened here.
    pub fn blank(&mut self) {
        let events = std::mem::take(&mut self.events);
        *self = Self {
            events,
            ..Self::default()
        };
    }

    /// Fills up with blanks to a number of cells.
    fn reach(&mut self, cells: usize) {
        if self.cells.len() < cells {
            self.cells.resize(cells, Cell::BLANK);
        }
    }

    /// Writes a character of one or two columns.
    pub fn put(&mut self, column: usize, character: char, is_wide: bool) {
        let width = if is_wide { 2 } else { 1 };
        self.reach(column + width);
        self.split(column);
        self.split(column + width);
        self.cells[column] = Cell {
            base: Some(character),
            marks: String::new(),
            is_wide,
        };
        if is_wide {
            self.cells[column + 1] = Cell::RIGHT;
        }
    }

    /// Puts a combining character on what stands before a column.
    pub fn combine(&mut self, column: usize, mark: char) {
        self.reach(column.max(1));
        let mut at = column.saturating_sub(1);
        if self.cells[at].base.is_none() && at > 0 {
            at -= 1;
        }
        self.cells[at].marks.push(mark);
    }

    /// Makes blanks of a wide character whose right half stands at a column, as
    /// something else will take half of it.
    fn split(&mut self, column: usize) {
        if self
            .cells
            .get(column)
            .is_some_and(|cell| cell.base.is_none())
        {
            self.cells[column] = Cell::BLANK;
            if column > 0 {
                self.cells[column - 1] = Cell::BLANK;
            }
        }
    }

    /// Blanks columns from `begin` to before `end`.
    pub fn erase(&mut self, begin: usize, end: usize) {
        let end = end.min(self.cells.len());
        if begin >= end {
            return;
        }
        self.split(begin);
        self.split(end);
        match end == self.cells.len() {
            true => self.cells.truncate(begin),
            false => self.cells[begin..end].fill(Cell::BLANK),
        }
    }

    /// Moves what stands from a column on to the right; what leaves the screen
    /// is gone.
    pub fn insert(&mut self, column: usize, count: usize, columns: usize) {
        if column >= self.cells.len() {
            return;
        }
        self.split(column);
        self.cells.truncate(columns);
        let count = count.min(columns.saturating_sub(column));
        let blanks = std::iter::repeat_n(Cell::BLANK, count);
        self.cells.splice(column..column, blanks);
        if self.cells.len() > columns {
            self.split(columns);
            self.cells.truncate(columns);
        }
    }

    /// Moves what stands behind some columns to the left, over them.
    pub fn delete(&mut self, column: usize, count: usize) {
        let end = column.saturating_add(count).min(self.cells.len());
        if column >= end {
            return;
        }
        self.split(column);
        self.split(end);
        self.cells.drain(column..end);
    }

    /// Appends its text, without blanks at its end if that is its end.
    pub fn append_to(&self, text: &mut String) {
        let begin = text.len();
        for cell in &self.cells {
            if let Some(base) = cell.base {
                push_shown(text, base);
            }
            for mark in cell.marks.chars() {
                push_shown(text, mark);
            }
        }
        if !self.is_wrapped {
            let kept = text[begin..].trim_end_matches(' ').len();
            text.truncate(begin + kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        let mut row = Row::default();
        for (column, character) in text.chars().enumerate() {
            row.put(column, character, false);
        }
        row
    }

    fn text(row: &Row) -> String {
        let mut text = String::new();
        row.append_to(&mut text);
        text
    }

    #[test]
    fn half_a_wide_character_is_none() {
        let mut wide = row("ab");
        wide.put(2, '漢', true);
        wide.put(4, '字', true);
        assert_eq!(text(&wide), "ab漢字");
        wide.put(3, 'x', false);
        assert_eq!(text(&wide), "ab x字");
        wide.erase(4, 5);
        assert_eq!(text(&wide), "ab x");
        let mut wide = Row::default();
        wide.put(0, '漢', true);
        wide.put(0, 'x', false);
        assert_eq!(text(&wide), "x");
    }

    #[test]
    fn what_is_inserted_pushes_the_rest_off_the_screen() {
        let mut moved = row("abcdef");
        moved.insert(2, 2, 6);
        assert_eq!(text(&moved), "ab  cd");
        moved.delete(1, 3);
        assert_eq!(text(&moved), "acd");
        moved.insert(9, 1, 6);
        moved.delete(9, 1);
        assert_eq!(text(&moved), "acd");
    }

    #[test]
    fn combining_characters_stay_with_their_base() {
        let mut marked = row("ae");
        marked.combine(2, '\u{301}');
        assert_eq!(text(&marked), "ae\u{301}");
        marked.put(1, 'x', false);
        assert_eq!(text(&marked), "ax");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_numbers() {
        let shown = char::from_u32(INVALID_BYTES + 0xfe).unwrap();
        assert_eq!(text(&row(&format!("a{shown}b"))), "a\\xfeb");
    }
}
