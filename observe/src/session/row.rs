//! A line of the screen.

/// Base of the characters that represent invalid bytes on the screen: byte `b` is the
/// character `INVALID_BYTES + b`, at the end of the last private-use plane. A byte that
/// is not UTF-8 takes one cell, because a terminal shows one replacement character for
/// it.
pub(super) const INVALID_BYTES: u32 = 0x10_ff00;

/// Returns the invalid byte that a character of the screen represents; `None` for other
/// characters.
pub(super) fn invalid_byte(character: char) -> Option<u8> {
    let offset = u32::from(character).checked_sub(INVALID_BYTES)?;
    u8::try_from(offset).ok().filter(|byte| *byte >= 0x80)
}

/// Appends a character as the cleaned text shows it.
pub(super) fn push_shown(text: &mut String, character: char) {
    match invalid_byte(character) {
        Some(byte) => text.push_str(&format!("\\x{byte:02x}")),
        None => text.push(character),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    base: char,
    /// Combining characters and joiners that follow the character.
    marks: String,
}

/// Marks the cell with the right half of a wide character.
const RIGHT: char = '\0';
const BLANK: Cell = Cell {
    base: ' ',
    marks: String::new(),
};

/// A line of the screen. Cells after the last one written are blank.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    /// Whether the text continues in the next row because the columns ran out.
    pub is_wrapped: bool,
    /// Whether the cursor has written in this row, or left it by a line feed.
    pub is_touched: bool,
    /// Time of the first write since the start of the session; `end_ns` is the last.
    pub begin_ns: Option<u64>,
    pub end_ns: Option<u64>,
}

impl Row {
    pub fn touch(&mut self, now_ns: Option<u64>) {
        self.is_touched = true;
        self.begin_ns = self.begin_ns.or(now_ns);
        self.end_ns = now_ns;
    }

    pub fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| *cell == BLANK)
    }

    /// Pads the row with blanks to a number of cells.
    fn reach(&mut self, cells: usize) {
        if self.cells.len() < cells {
            self.cells.resize(cells, BLANK);
        }
    }

    pub fn put(&mut self, column: usize, character: char, width: usize) {
        self.reach(column + width);
        self.split(column);
        self.split(column + width);
        for (offset, cell) in self.cells[column..column + width].iter_mut().enumerate() {
            cell.base = if offset == 0 { character } else { RIGHT };
            cell.marks.clear();
        }
    }

    /// Adds a combining character to the cell before a column.
    pub fn combine(&mut self, column: usize, mark: char) {
        self.reach(column.max(1));
        let mut at = column.saturating_sub(1);
        if self.cells[at].base == RIGHT {
            at -= 1;
        }
        self.cells[at].marks.push(mark);
    }

    /// Blanks a wide character whose right half is in a column, because half of the
    /// character will be overwritten.
    fn split(&mut self, column: usize) {
        if self
            .cells
            .get(column)
            .is_some_and(|cell| cell.base == RIGHT)
        {
            self.cells[column - 1..=column].fill(BLANK);
        }
    }

    /// Blanks the columns from `begin` up to, but not including, `end`.
    pub fn erase(&mut self, begin: usize, end: usize) {
        let end = end.min(self.cells.len());
        if begin < end {
            self.split(begin);
            self.split(end);
            if end == self.cells.len() {
                self.cells.truncate(begin)
            } else {
                self.cells[begin..end].fill(BLANK)
            }
        }
    }

    /// Moves the cells from a column on to the right. Cells that leave the screen are
    /// lost.
    pub fn insert(&mut self, column: usize, count: usize, columns: usize) {
        if column < self.cells.len() {
            self.split(column);
            self.cells.truncate(columns);
            let count = count.min(columns.saturating_sub(column));
            let blanks = std::iter::repeat_n(BLANK, count);
            self.cells.splice(column..column, blanks);
            self.split(columns);
            self.cells.truncate(columns);
        }
    }

    /// Removes columns, and moves the cells after them to the left.
    pub fn delete(&mut self, column: usize, count: usize) {
        let end = column.saturating_add(count).min(self.cells.len());
        if column < end {
            self.split(column);
            self.split(end);
            self.cells.drain(column..end);
        }
    }

    /// Appends the row's text, without trailing blanks unless the text continues in the
    /// next row.
    pub fn append_to(&self, text: &mut String) {
        let begin = text.len();
        for cell in self.cells.iter().filter(|cell| cell.base != RIGHT) {
            push_shown(text, cell.base);
            cell.marks.chars().for_each(|mark| push_shown(text, mark));
        }
        if !self.is_wrapped {
            let kept = text[begin..].trim_end_matches(' ').len();
            text.truncate(begin + kept);
        }
    }
}
