//! Decorates the start and the end of a line.

use super::decoration::{Decoration, Numbering};
use super::line_number::LineNumber;
use super::sink::Sink;
use super::special::LF;

/// The state of the current line, kept from file to file.
#[derive(Clone, Copy)]
pub struct Lines {
    decoration: Decoration,
    number: LineNumber,
    /// Whether no byte of the current line has been seen yet.
    is_at_start: bool,
    /// Whether the previous line was blank.
    is_after_blank: bool,
}

impl Lines {
    /// Maximum number of bytes that one call of `end` writes: the number and the end of a
    /// blank line, and the number of the next line.
    pub const LONGEST: usize = 2 * LineNumber::LONGEST + 2;

    pub fn new(decoration: &Decoration) -> Self {
        Self {
            decoration: *decoration,
            number: LineNumber::zero(),
            is_at_start: true,
            is_after_blank: false,
        }
    }

    /// Starts a line that is not blank, if the next byte belongs to it. Without a next
    /// byte, this waits for more input, because no number follows the very last
    /// newline.
    #[inline(always)]
    pub fn peek(&mut self, next: Option<u8>, sink: &mut Sink) {
        if self.is_at_start && next.is_some_and(|byte| byte != LF) {
            self.is_at_start = false;
            if self.decoration.numbering != Numbering::None {
                self.number.put_next(sink);
            }
        }
    }

    #[inline(always)]
    pub fn end(&mut self, next: Option<u8>, sink: &mut Sink) {
        let is_blank = self.is_at_start;
        let is_squeezed = is_blank && self.is_after_blank && self.decoration.squeezes_blank;
        if !is_squeezed {
            if is_blank && self.decoration.numbering == Numbering::All {
                self.number.put_next(sink);
            }
            if self.decoration.shows_ends {
                sink.put(*b"$");
            }
            sink.put([LF]);
        }
        self.is_at_start = true;
        self.is_after_blank = is_blank;
        self.peek(next, sink);
    }
}
