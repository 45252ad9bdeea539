//! The formatted output of `cat`: numbered lines, squeezed blank lines, marked
//! line ends, tabs and nonprinting bytes.
//!
//! Architecture invariant: this module does no I/O, so it cannot fail. The output does
//! not depend on how the input is split into chunks or files.

mod decoration;
mod line;
mod line_number;
mod notation;
mod sink;
mod special;
#[cfg(test)]
mod tests;

pub use decoration::{Decoration, Numbering};
use line::Lines;
use line_number::LineNumber;
use notation::{Form, Notation};
use sink::{Sink, StagingBuffer};
use special::{BLOCK, CR, LF, Specials, special_mask};

/// Maximum number of bytes that are written between two calls of `make_room`: a block of
/// newlines, the number of the first line, and unused bytes after the last write.
const MARGIN: usize = BLOCK * Lines::LONGEST + LineNumber::LONGEST + BLOCK;

const _: () = assert!(MARGIN < size_of::<StagingBuffer>() / 2);

/// Decorates one stream of bytes, made of any number of files and chunks.
pub struct Decorator {
    is_plain: bool,
    notation: Notation,
    lines: Lines,
    /// Whether the last byte was a carriage return that has not been shown yet.
    holds_carriage_return: bool,
    staged: Box<StagingBuffer>,
}

impl Decorator {
    #[must_use]
    pub fn new(decoration: Decoration) -> Self {
        Self {
            is_plain: decoration.is_plain(),
            notation: Notation::new(&decoration),
            lines: Lines::new(&decoration),
            holds_carriage_return: false,
            staged: Box::new([0; _]),
        }
    }

    /// Appends the decorated form of a chunk to `output`. The result is up to 23 times
    /// as long as the chunk, so the caller limits the size of chunks.
    pub fn decorate(&mut self, input: &[u8], output: &mut Vec<u8>) {
        let Some(&first) = input.first() else { return };
        if self.is_plain {
            output.extend_from_slice(input);
            return;
        }
        if std::mem::take(&mut self.holds_carriage_return) {
            output.extend_from_slice(if first == LF { b"^M" } else { b"\r" });
        }
        // The set of special bytes is a compile-time constant, so a block without any
        // takes few instructions.
        let Specials {
            nonprinting,
            tab,
            newline,
            carriage_return,
        } = self.notation.specials;
        match (nonprinting, tab, newline, carriage_return) {
            (true, false, false, _) => self.blocks::<true, false, false, false>(input, output),
            (true, false, true, _) => self.blocks::<true, false, true, false>(input, output),
            (true, true, false, _) => self.blocks::<true, true, false, false>(input, output),
            (true, true, true, _) => self.blocks::<true, true, true, false>(input, output),
            (_, true, false, _) => self.blocks::<false, true, false, false>(input, output),
            (_, false, _, false) => self.blocks::<false, false, true, false>(input, output),
            (_, false, _, true) => self.blocks::<false, false, true, true>(input, output),
            (_, true, _, false) => self.blocks::<false, true, true, false>(input, output),
            (_, true, _, true) => self.blocks::<false, true, true, true>(input, output),
        }
    }

    /// Appends what was held back. The caller calls this at the end of all input.
    pub fn finish(&mut self, output: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds_carriage_return) {
            output.push(CR);
        }
    }

    fn blocks<const V: bool, const T: bool, const L: bool, const C: bool>(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) {
        let mut pass = Pass {
            forms: &self.notation.forms,
            lines: self.lines,
            sink: Sink::new(&mut self.staged),
            holds_carriage_return: false,
        };
        pass.lines.peek(input.first().copied(), &mut pass.sink);
        let mut rest = input;
        while let Some((window, _)) = rest.split_first_chunk::<{ 2 * BLOCK }>() {
            pass.sink.make_room(MARGIN, output);
            let (block, _) = window.split_first_chunk().expect("a window is two blocks");
            let mask = special_mask::<V, T, L, C>(block);
            if mask.count_ones() > MOST_RUNS {
                pass.bytewise(block, Some(window[BLOCK]));
            } else {
                pass.runs(window, mask);
            }
            rest = &rest[BLOCK..];
        }
        let (block, last) = rest.split_at(rest.len().min(BLOCK));
        for (bytes, next) in [(block, last.first().copied()), (last, None)] {
            pass.sink.make_room(MARGIN, output);
            pass.bytewise(bytes, next);
        }
        pass.sink.drain(output);
        self.lines = pass.lines;
        self.holds_carriage_return = pass.holds_carriage_return;
    }
}

/// Maximum number of special bytes in a block whose other bytes are copied in runs. With
/// more, the table is faster.
const MOST_RUNS: u32 = 24;

/// The state while one chunk is decorated. It is separate from the decorator so that
/// the compiler can keep it in registers.
struct Pass<'a> {
    forms: &'a [Form; 256],
    lines: Lines,
    sink: Sink<'a>,
    holds_carriage_return: bool,
}

impl Pass<'_> {
    /// Decorates the first block of a window that has few special bytes. The bytes
    /// between them are copied with a fixed length, and the surplus is overwritten
    /// afterwards. So no branch depends on the lengths of lines.
    #[inline(always)]
    fn runs(&mut self, window: &[u8; 2 * BLOCK], mut mask: u64) {
        let mut done = 0;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            self.sink.put_block(&window[done..], at - done);
            self.byte(window[at], || Some(window[at + 1]));
            done = at + 1;
            mask &= mask - 1;
        }
        self.sink.put_block(&window[done..], BLOCK - done);
    }

    /// Decorates up to a block byte by byte. `next` is the byte after the block, if the
    /// chunk has one.
    #[inline(always)]
    fn bytewise(&mut self, bytes: &[u8], next: Option<u8>) {
        for (at, &byte) in bytes.iter().enumerate() {
            self.byte(byte, || bytes.get(at + 1).copied().or(next));
        }
    }

    /// Decorates one byte. `next` is the byte after it, if the chunk has one.
    #[inline(always)]
    fn byte(&mut self, byte: u8, next: impl Fn() -> Option<u8>) {
        let form = self.forms[usize::from(byte)];
        if !form.is_structural() {
            self.sink.put_word(form.word(), form.length());
        } else if byte == LF {
            self.lines.end(next(), &mut self.sink);
        } else {
            match next() {
                Some(LF) => self.sink.put(*b"^M"),
                Some(_) => self.sink.put(*b"\r"),
                None => self.holds_carriage_return = true,
            }
        }
    }
}
