//! What a terminal does with the bytes it gets.

use vte::{Params, Parser, Perform};

use super::history::{Event, History, Title};
use super::row::{INVALID_BYTES, invalid_byte, push_shown};
use super::screen::Screen;

/// Longest title that is kept, in characters.
const TITLE_CHARACTERS_MAX: usize = 1000;

/// A terminal that keeps what it showed.
pub(super) struct Terminal {
    parser: Parser,
    state: State,
    /// The begin of a character that the next bytes may complete.
    partial: Vec<u8>,
}

/// What the parser acts on.
struct State {
    screen: Screen,
    /// The last character written, for REP.
    last: Option<char>,
    /// A title in the form of `screen`, which is written like text.
    title: Option<String>,
    /// The cursor has just been sent to the first column of the first line.
    is_home: bool,
    invalid_bytes: u64,
    /// What comes stands for bytes that are no UTF-8.
    is_invalid: bool,
}

/// What came out at the end.
pub(super) struct Finished {
    pub history: History,
    /// Bytes that were no UTF-8.
    pub invalid_bytes: u64,
    /// The recording ends within a control sequence or string.
    pub is_cut: bool,
}

impl Terminal {
    pub fn new(columns: usize, lines: usize, feeds_to_begin: bool) -> Self {
        let mut screen = Screen::new(columns, lines);
        screen.feeds_to_begin = feeds_to_begin;
        Self {
            parser: Parser::new(),
            state: State::new(screen),
            partial: Vec::new(),
        }
    }

    /// What follows came then, in nanoseconds since the begin.
    pub fn set_time(&mut self, now_ns: u64) {
        self.state.screen.now_ns = Some(now_ns);
    }

    pub fn resize(&mut self, columns: usize, lines: usize) {
        self.state.screen.resize(columns, lines);
    }

    /// Takes bytes, cut wherever they are.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.partial.is_empty() {
            return self.feed_from_begin(bytes);
        }
        let mut joined = std::mem::take(&mut self.partial);
        // A character has at most four bytes, so the rest need not be copied.
        let (head, rest) = bytes.split_at(bytes.len().min(4));
        joined.extend_from_slice(head);
        self.feed_from_begin(&joined);
        match self.partial.is_empty() || rest.is_empty() {
            true => self.feed_from_begin(rest),
            false => self.feed(rest),
        }
    }

    fn feed_from_begin(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (valid, invalid, is_end) = match std::str::from_utf8(rest) {
                Ok(_) => (rest.len(), 0, true),
                Err(error) => match error.error_len() {
                    Some(length) => (error.valid_up_to(), length, false),
                    None => {
                        self.partial = rest[error.valid_up_to()..].to_vec();
                        (error.valid_up_to(), 0, true)
                    }
                },
            };
            self.parser.advance(&mut self.state, &rest[..valid]);
            if is_end {
                return;
            }
            self.feed_invalid(&rest[valid..valid + invalid]);
            rest = &rest[valid + invalid..];
        }
    }

    /// The parser would make one replacement character of them, and takes time
    /// by the square of their number.
    fn feed_invalid(&mut self, bytes: &[u8]) {
        self.state.is_invalid = true;
        for byte in bytes {
            let stand_in = char::from_u32(INVALID_BYTES + u32::from(*byte));
            let stand_in = stand_in.expect("the plane's end is full of characters");
            let mut buffer = [0; 4];
            let encoded = stand_in.encode_utf8(&mut buffer).as_bytes();
            self.parser.advance(&mut self.state, encoded);
            self.state.invalid_bytes += 1;
        }
        self.state.is_invalid = false;
    }

    pub fn finish(mut self) -> Finished {
        let partial = std::mem::take(&mut self.partial);
        self.feed_invalid(&partial);
        // A letter is written at once, but for inside a control sequence.
        let mut probe = State::new(Screen::new(1, 1));
        self.parser.advance(&mut probe, b"x");
        let is_cut = probe.last != Some('x');
        self.state.end_title();
        Finished {
            history: self.state.screen.finish(),
            invalid_bytes: self.state.invalid_bytes,
            is_cut,
        }
    }
}

/// DEC's line drawing characters (VT100 User Guide, table 3-9).
fn drawn(character: char) -> char {
    const DRAWN: [char; 31] = [
        '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─',
        '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
    ];
    let index = u32::from(character).wrapping_sub(u32::from('`'));
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    DRAWN.get(index).copied().unwrap_or(character)
}

impl State {
    fn new(screen: Screen) -> Self {
        Self {
            screen,
            last: None,
            title: None,
            is_home: false,
            invalid_bytes: 0,
            is_invalid: false,
        }
    }

    fn new_title(&mut self, text: &str) {
        let mut shown = String::new();
        for character in text.chars().take(TITLE_CHARACTERS_MAX) {
            if !character.is_control() {
                push_shown(&mut shown, character);
            }
        }
        let title = Title {
            text: shown,
            line: 0,
            begin_ns: self.screen.now_ns,
        };
        self.screen.happens(Event::Title(title));
    }

    fn end_title(&mut self) {
        if let Some(title) = self.title.take() {
            self.new_title(&title);
        }
    }

    fn set_mode(&mut self, mode: u16, is_on: bool) {
        match mode {
            4 => self.screen.inserts = is_on,
            20 if is_on => self.screen.feeds_to_begin = true,
            _ => {}
        }
    }

    fn set_private_mode(&mut self, mode: u16, is_on: bool) {
        let screen = &mut self.screen;
        match (mode, is_on) {
            (6, _) => {
                screen.cursor.is_relative = is_on;
                screen.move_to_row(0);
                screen.move_to_column(0);
            }
            (7, _) => screen.wraps = is_on,
            (47 | 1047, true) => screen.enter_alternate(),
            (47 | 1047, false) => screen.leave_alternate(false),
            (1048, true) => screen.save_cursor(),
            (1048, false) => screen.restore_cursor(),
            (1049, true) if !screen.is_alternate => {
                screen.save_cursor();
                screen.enter_alternate();
            }
            (1049, false) => screen.leave_alternate(true),
            _ => {}
        }
    }

    /// ED: erase in display.
    fn erase_display(&mut self, what: u16, was_home: bool) {
        let screen = &mut self.screen;
        let (row, column) = (screen.cursor.row, screen.cursor.column);
        match what {
            // How terminals without a shorter way are cleared.
            0 if was_home => screen.clear(),
            0 => {
                screen.erase_line(column, usize::MAX);
                screen.erase_lines(row + 1, usize::MAX);
            }
            1 => {
                screen.erase_lines(0, row);
                screen.erase_line(0, column + 1);
            }
            2 => screen.clear(),
            _ => {}
        }
    }

    /// EL: erase in line.
    fn erase_in_line(&mut self, what: u16) {
        let column = self.screen.cursor.column;
        match what {
            0 => self.screen.erase_line(column, usize::MAX),
            1 => self.screen.erase_line(0, column + 1),
            2 => self.screen.erase_line(0, usize::MAX),
            _ => {}
        }
    }

    /// DECSTBM: the lines that scroll.
    fn set_region(&mut self, top: usize, bottom: usize) {
        let bottom = if bottom == 0 {
            self.screen.lines
        } else {
            bottom
        };
        let bottom = bottom.min(self.screen.lines);
        if top.max(1) < bottom {
            self.screen.top = top.max(1) - 1;
            self.screen.bottom = bottom - 1;
            self.screen.move_to_row(0);
            self.screen.move_to_column(0);
        }
    }

    fn designate(&mut self, set: usize, to: u8) {
        self.screen.cursor.draws_lines[set] = to == b'0';
    }

    /// Sequences that move the cursor.
    fn move_cursor(&mut self, action: char, first: usize, second: usize) -> bool {
        let screen = &mut self.screen;
        let count = first.max(1);
        let column = screen.cursor.column;
        match action {
            'A' => screen.move_rows(count, false),
            'B' | 'e' => screen.move_rows(count, true),
            'C' | 'a' => screen.move_to_column(column.saturating_add(count)),
            'D' => screen.move_to_column(column.saturating_sub(count)),
            'E' | 'F' => {
                screen.move_rows(count, action == 'E');
                screen.move_to_column(0);
            }
            'G' | '`' => screen.move_to_column(count - 1),
            'H' | 'f' => {
                screen.move_to_row(count - 1);
                screen.move_to_column(second.max(1) - 1);
                self.is_home = count == 1 && second <= 1;
            }
            'd' => screen.move_to_row(count - 1),
            'I' => screen.tab(count),
            'Z' => screen.back_tab(count),
            _ => return false,
        }
        true
    }

    /// Sequences that change what stands on the screen.
    fn edit(&mut self, action: char, first: usize) -> bool {
        let screen = &mut self.screen;
        let count = first.max(1);
        let (column, columns) = (screen.cursor.column, screen.columns);
        match action {
            '@' => {
                screen.cursor.wraps_next = false;
                screen.line().insert(column, count, columns);
            }
            'P' => {
                screen.cursor.wraps_next = false;
                screen.line().delete(column, count);
            }
            'X' => screen.erase_line(column, column.saturating_add(count)),
            'L' => screen.insert_lines(count),
            'M' => screen.delete_lines(count),
            'S' => screen.scroll_up(count),
            'T' => screen.scroll_down(screen.top, count),
            'b' => {
                if let Some(last) = self.last {
                    (0..count.min(columns)).for_each(|_| screen.put(last));
                }
            }
            _ => return false,
        }
        true
    }
}

impl Perform for State {
    fn print(&mut self, character: char) {
        self.is_home = false;
        if character.is_control() {
            return;
        }
        // Nobody may make text look like bytes that are none.
        let character = match invalid_byte(character) {
            Some(_) if !self.is_invalid => char::REPLACEMENT_CHARACTER,
            _ => character,
        };
        if let Some(title) = &mut self.title {
            if title.len() < 4 * TITLE_CHARACTERS_MAX {
                title.push(character);
            }
            return;
        }
        let cursor = &self.screen.cursor;
        let character = match cursor.draws_lines[cursor.shift] {
            true => drawn(character),
            false => character,
        };
        self.last = Some(character);
        self.screen.put(character);
    }

    fn execute(&mut self, byte: u8) {
        self.is_home = false;
        // A title in this form ends with its line at the latest.
        if matches!(byte, b'\n' | b'\r' | 0x07) {
            self.end_title();
        }
        let screen = &mut self.screen;
        match byte {
            0x08 => screen.move_to_column(screen.cursor.column.saturating_sub(1)),
            b'\t' => screen.tab(1),
            b'\n' | 0x0b | 0x0c => screen.line_feed(),
            b'\r' => screen.move_to_column(0),
            0x0e => screen.cursor.shift = 1,
            0x0f => screen.cursor.shift = 0,
            0x84 => screen.index(),
            0x85 => {
                screen.line_feed();
                screen.move_to_column(0);
            }
            0x88 => screen.set_tab(),
            0x8d => screen.reverse_index(),
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell_terminated: bool) {
        self.is_home = false;
        // 1 is the name of an icon alone.
        if let [b"0" | b"2", title @ ..] = params {
            let bytes = title.join(&b';');
            self.new_title(&String::from_utf8_lossy(&bytes));
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        let was_home = std::mem::take(&mut self.is_home);
        let mut values = params
            .iter()
            .map(|values| values.first().copied().unwrap_or(0));
        if intermediates == b"?" {
            let is_on = action == 'h';
            match action {
                'h' | 'l' => values.for_each(|mode| self.set_private_mode(mode, is_on)),
                'J' => self.erase_display(values.next().unwrap_or(0), was_home),
                'K' => self.erase_in_line(values.next().unwrap_or(0)),
                _ => {}
            }
            return;
        }
        if intermediates == b"!" && action == 'p' {
            let screen = &mut self.screen;
            (screen.top, screen.bottom) = (0, screen.lines - 1);
            (screen.inserts, screen.wraps) = (false, true);
            screen.cursor.is_relative = false;
            screen.cursor.draws_lines = [false; 2];
            return;
        }
        if !intermediates.is_empty() {
            return;
        }
        let first = values.next().unwrap_or(0);
        let second = usize::from(values.next().unwrap_or(0));
        let number = usize::from(first);
        if self.move_cursor(action, number, second) || self.edit(action, number) {
            return;
        }
        match action {
            'J' => self.erase_display(first, was_home),
            'K' => self.erase_in_line(first),
            'r' => self.set_region(number, second),
            's' => self.screen.save_cursor(),
            'u' => self.screen.restore_cursor(),
            'g' if first == 0 => self.screen.clear_tab(),
            'g' if first == 3 => self.screen.clear_tabs(),
            'h' | 'l' => {
                for mode in params.iter().filter_map(|values| values.first()) {
                    self.set_mode(*mode, action == 'h');
                }
            }
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.is_home = false;
        self.end_title();
        let screen = &mut self.screen;
        match (intermediates, byte) {
            ([], b'7') => screen.save_cursor(),
            ([], b'8') => screen.restore_cursor(),
            ([], b'D') => screen.index(),
            ([], b'E') => {
                screen.line_feed();
                screen.move_to_column(0);
            }
            ([], b'H') => screen.set_tab(),
            ([], b'M') => screen.reverse_index(),
            ([], b'c') => screen.reset(),
            ([], b'k') => self.title = Some(String::new()),
            (b"(", set) => self.designate(0, set),
            (b")", set) => self.designate(1, set),
            _ => {}
        }
    }
}
