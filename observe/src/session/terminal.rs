//! Interprets the bytes that a terminal receives.

use avt::Charset;
use avt::parser::{AnsiMode, DecMode, EdScope, ElScope, Function, Parser, State, TbcScope};

use super::history::History;
use super::row::{INVALID_BYTES, invalid_byte, push_shown};
use super::screen::Screen;

/// Longest title that is kept, in characters.
const TITLE_CHARACTERS_MAX: usize = 1000;

pub(super) struct Terminal {
    parser: Parser,
    screen: Screen,
    /// The beginning of a character that the next bytes may complete.
    partial: Vec<u8>,
    /// The unfinished control sequence or string.
    sequence: String,
    /// An unfinished title as the program `screen` sets it: its text arrives like
    /// printed text.
    title: Option<String>,
    last: Option<char>,
    /// Whether the cursor was just sent to the first column of the first line.
    is_home: bool,
    invalid_bytes: u64,
}

pub(super) struct Finished {
    pub history: History,
    pub invalid_bytes: u64,
    /// Whether the recording ends within a control sequence or string.
    pub is_cut: bool,
}

impl Terminal {
    pub fn new(columns: usize, lines: usize, feeds_to_begin: bool) -> Self {
        let mut screen = Screen::new(columns, lines);
        screen.feeds_to_begin = feeds_to_begin;
        Self {
            parser: Parser::new(),
            screen,
            partial: Vec::new(),
            sequence: String::new(),
            title: None,
            last: None,
            is_home: false,
            invalid_bytes: 0,
        }
    }

    /// Sets the time of the bytes that follow, in nanoseconds since the start.
    pub fn set_time(&mut self, now_ns: u64) {
        self.screen.now_ns = Some(now_ns);
    }

    pub fn resize(&mut self, columns: usize, lines: usize) {
        self.screen.resize(columns, lines);
    }

    /// Interprets bytes. A sequence may be split between two calls.
    pub fn feed(&mut self, bytes: &[u8]) {
        let joined;
        let mut rest = bytes;
        if !self.partial.is_empty() {
            joined = [&std::mem::take(&mut self.partial), bytes].concat();
            rest = &joined;
        }
        while let Some(chunk) = rest.utf8_chunks().next() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            for character in valid.chars() {
                // Text must not be able to look like invalid bytes.
                self.take(match invalid_byte(character) {
                    Some(_) => char::REPLACEMENT_CHARACTER,
                    None => character,
                });
            }
            rest = &rest[valid.len() + invalid.len()..];
            let is_begun = str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if rest.is_empty() && is_begun {
                self.partial = invalid.to_vec()
            } else {
                self.feed_invalid(invalid)
            }
        }
    }

    fn feed_invalid(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let stand_in = char::from_u32(INVALID_BYTES + u32::from(*byte));
            self.take(stand_in.expect("the plane's end is full of characters"));
            self.invalid_bytes += 1;
        }
    }

    fn take(&mut self, character: char) {
        let before = self.parser.state;
        let function = self.parser.feed(character);
        let after = self.parser.state;
        if before == State::OscString && after != State::OscString {
            self.end_string();
        }
        if before == State::Ground || character == '\x1b' {
            self.sequence.clear();
        }
        if self.sequence.len() < 4 * TITLE_CHARACTERS_MAX {
            self.sequence.push(character);
        }
        match (before, character) {
            // A title in this form ends with its line at the latest.
            (_, '\x1b' | '\n' | '\r' | '\x07') => self.end_title(),
            (State::Escape, 'k') => self.title = Some(String::new()),
            _ => {}
        }
        let was_home = self.is_home;
        self.is_home &= after != State::Ground;
        match function {
            Some(Function::Print(character)) => self.print(character),
            Some(function) => self.perform(function, was_home),
            // The oldest mode of the alternate screen, which rxvt has.
            None if self.sequence == "\x1b[?47h" => self.screen.enter_alternate(),
            None if self.sequence == "\x1b[?47l" => self.screen.leave_alternate(false),
            None => {}
        }
    }

    /// Ends a string. OSC 0 and 2 set the title; OSC 1 sets only the name of an icon.
    fn end_string(&mut self) {
        let sequence = std::mem::take(&mut self.sequence);
        let text = sequence.trim_start_matches(['\x1b', ']', '\u{9d}']);
        if let Some(title) = text.strip_prefix("0;").or(text.strip_prefix("2;")) {
            self.new_title(title);
        }
    }

    fn end_title(&mut self) {
        if let Some(title) = self.title.take() {
            self.new_title(&title);
        }
    }

    fn new_title(&mut self, text: &str) {
        let mut shown = String::new();
        let characters = text.chars().take(TITLE_CHARACTERS_MAX);
        characters
            .filter(|character| !character.is_control())
            .for_each(|character| push_shown(&mut shown, character));
        self.screen.title(shown);
    }

    pub fn finish(mut self) -> Finished {
        let partial = std::mem::take(&mut self.partial);
        self.feed_invalid(&partial);
        self.end_title();
        Finished {
            history: self.screen.finish(),
            invalid_bytes: self.invalid_bytes,
            is_cut: self.parser.state != State::Ground,
        }
    }

    fn print(&mut self, character: char) {
        if character.is_control() {
            return;
        }
        if let Some(title) = &mut self.title {
            if title.len() < 4 * TITLE_CHARACTERS_MAX {
                title.push(character);
            }
            return;
        }
        let cursor = &self.screen.cursor;
        let character = if cursor.draws_lines[cursor.shift] {
            drawn(character)
        } else {
            character
        };
        self.last = Some(character);
        self.screen.put(character);
    }

    fn perform(&mut self, function: Function, was_home: bool) {
        use Function::*;
        let screen = &mut self.screen;
        let count = |number: u16| usize::from(number.max(1));
        let column = screen.cursor.column;
        match function {
            Bs => screen.move_to_column(column.saturating_sub(1)),
            Ht => screen.tab(1),
            Lf => screen.line_feed(),
            Cr => screen.move_to_column(0),
            So => screen.cursor.shift = 1,
            Si => screen.cursor.shift = 0,
            Nel => {
                screen.line_feed();
                screen.move_to_column(0);
            }
            Ri => screen.reverse_index(),
            Hts => screen.tabs[column] = true,
            Tbc(TbcScope::CurrentColumn) => screen.tabs[column] = false,
            Tbc(TbcScope::All) => screen.tabs.fill(false),
            Gzd4(set) => screen.cursor.draws_lines[0] = set == Charset::Drawing,
            G1d4(set) => screen.cursor.draws_lines[1] = set == Charset::Drawing,
            Decsc | Scosc => screen.save_cursor(),
            Decrc | Scorc => screen.restore_cursor(),
            Ris => screen.reset(),
            Decstr => screen.soft_reset(),
            Cuu(n) => screen.move_rows(count(n), false),
            Cud(n) | Vpr(n) => screen.move_rows(count(n), true),
            Cuf(n) => screen.move_to_column(column + count(n)),
            Cub(n) => screen.move_to_column(column.saturating_sub(count(n))),
            Cnl(n) => {
                screen.move_rows(count(n), true);
                screen.move_to_column(0);
            }
            Cpl(n) => {
                screen.move_rows(count(n), false);
                screen.move_to_column(0);
            }
            Cha(n) => screen.move_to_column(count(n) - 1),
            Vpa(n) => screen.move_to_row(count(n) - 1),
            Cup(line, at) => {
                screen.move_to(count(line) - 1, count(at) - 1);
                self.is_home = line <= 1 && at <= 1;
            }
            Cht(n) => screen.tab(count(n)),
            Cbt(n) => screen.back_tab(count(n)),
            Decstbm(top, bottom) => screen.set_region(top.into(), bottom.into()),
            Sm(modes) => set_modes(screen, modes.as_slice(), true),
            Rm(modes) => set_modes(screen, modes.as_slice(), false),
            Decset(modes) => set_private_modes(screen, modes.as_slice(), true),
            Decrst(modes) => set_private_modes(screen, modes.as_slice(), false),
            other => self.edit(other, was_home),
        }
    }

    fn edit(&mut self, function: Function, was_home: bool) {
        use Function::*;
        let screen = &mut self.screen;
        let count = |number: u16| usize::from(number.max(1));
        let (row, column) = (screen.cursor.row, screen.cursor.column);
        match function {
            Ich(n) => screen.insert_characters(count(n)),
            Dch(n) => screen.delete_characters(count(n)),
            Ech(n) => screen.erase_line(column, column + count(n)),
            Il(n) => screen.insert_lines(count(n)),
            Dl(n) => screen.delete_lines(count(n)),
            Su(n) => screen.scroll_up(count(n)),
            Sd(n) => screen.insert_rows(screen.top, count(n)),
            Rep(n) => {
                if let Some(last) = self.last {
                    (0..count(n).min(screen.columns)).for_each(|_| screen.put(last));
                }
            }
            El(ElScope::ToRight) => screen.erase_line(column, usize::MAX),
            El(ElScope::ToLeft) => screen.erase_line(0, column + 1),
            El(ElScope::All) => screen.erase_line(0, usize::MAX),
            Ed(EdScope::All) => screen.clear(),
            // Terminals without a shorter sequence are cleared in this way.
            Ed(EdScope::Below) if was_home => screen.clear(),
            Ed(EdScope::Below) => {
                screen.erase_line(column, usize::MAX);
                screen.erase_lines(row + 1..screen.lines);
            }
            Ed(EdScope::Above) => {
                screen.erase_lines(0..row);
                screen.erase_line(0, column + 1);
            }
            _ => {}
        }
    }
}

/// Returns the line drawing character for a character (VT100 User Guide, table 3-9), as
/// xterm shows it.
fn drawn(character: char) -> char {
    let drawn = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
    let place = ('`'..='~').position(|place| place == character);
    place
        .and_then(|place| drawn.chars().nth(place))
        .unwrap_or(character)
}

fn set_modes(screen: &mut Screen, modes: &[AnsiMode], is_on: bool) {
    for mode in modes {
        match mode {
            AnsiMode::Insert => screen.inserts = is_on,
            AnsiMode::NewLine => screen.feeds_to_begin |= is_on,
        }
    }
}

fn set_private_modes(screen: &mut Screen, modes: &[DecMode], is_on: bool) {
    for mode in modes {
        match (mode, is_on) {
            (DecMode::Origin, _) => {
                screen.cursor.is_relative = is_on;
                screen.move_to(0, 0);
            }
            (DecMode::AutoWrap, _) => screen.wraps = is_on,
            (DecMode::AltScreenBuffer, true) => screen.enter_alternate(),
            (DecMode::AltScreenBuffer, false) => screen.leave_alternate(false),
            (DecMode::SaveCursor, true) => screen.save_cursor(),
            (DecMode::SaveCursor, false) => screen.restore_cursor(),
            (DecMode::SaveCursorAltScreenBuffer, true) if !screen.is_alternate => {
                screen.save_cursor();
                screen.enter_alternate();
            }
            (DecMode::SaveCursorAltScreenBuffer, false) => screen.leave_alternate(true),
            _ => {}
        }
    }
}
