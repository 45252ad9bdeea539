//! The number at the start of a line.

use super::sink::Sink;

/// Number of columns that change from line to line. They share one word with the tab.
const COLUMNS: usize = 7;

/// Minimum width of a number, which is padded with spaces on the left.
const WIDTH: usize = 6;

/// Largest number of digits to the left of `COLUMNS`. A `u64` has at most 20 digits, and no input
/// has more lines than that.
const PREFIX: usize = 20 - COLUMNS;

/// Bit offset of the last digit in the word. Each digit takes eight bits.
const LAST: u32 = 8 * (COLUMNS as u32 - 1);

/// A line number as text, right-aligned in six columns and followed by a tab. Counting in
/// decimal digits avoids a division for each line, and counting in a word avoids memory
/// accesses.
#[derive(Clone, Copy)]
pub struct LineNumber {
    /// Spaces, the last digits and the tab. The lowest byte is the first column.
    word: u64,
    /// The digits before those in `word`.
    prefix: [u8; PREFIX],
    digits: usize,
}

impl LineNumber {
    /// Length of the longest number with its tab, in bytes.
    pub const LONGEST: usize = PREFIX + COLUMNS + 1;

    pub fn zero() -> Self {
        Self {
            word: u64::from_le_bytes(*b"      0\t"),
            prefix: [b'0'; PREFIX],
            digits: 1,
        }
    }

    #[inline(always)]
    pub fn put_next(&mut self, sink: &mut Sink) {
        self.word += 1 << LAST;
        if self.word >> LAST & 0xff > u64::from(b'9') {
            self.carry();
        }
        if self.digits <= WIDTH {
            sink.put_word(self.word >> 8, WIDTH + 1);
        } else {
            self.put_long(sink);
        }
    }

    #[cold]
    fn put_long(&self, sink: &mut Sink) {
        for &digit in &self.prefix[PREFIX - self.digits.saturating_sub(COLUMNS)..] {
            sink.put([digit]);
        }
        sink.put_word(self.word, COLUMNS + 1);
    }

    /// Turns a digit past nine into zero and increments the next place.
    #[cold]
    fn carry(&mut self) {
        let mut text = self.word.to_le_bytes();
        let mut digits = 1;
        for at in (0..COLUMNS).rev() {
            if text[at] <= b'9' {
                break;
            }
            text[at] = b'0';
            digits += 1;
            match at.checked_sub(1) {
                // A space and a zero differ in one bit.
                Some(before) => text[before] = (text[before] | b'0') + 1,
                None => self.carry_prefix(&mut digits),
            }
        }
        self.word = u64::from_le_bytes(text);
        self.digits = self.digits.max(digits);
    }

    fn carry_prefix(&mut self, digits: &mut usize) {
        for digit in self.prefix.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                break;
            }
            *digit = b'0';
            *digits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(count: u64) -> LineNumber {
        let mut number = LineNumber::zero();
        let text = format!("{count:27}\t").replace(' ', "0");
        let (prefix, low) = text.as_bytes()[28 - LineNumber::LONGEST..].split_at(PREFIX);
        number.prefix.copy_from_slice(prefix);
        number.digits = count.to_string().len();
        let mut low: [u8; 8] = low.try_into().expect("seven digits and a tab");
        let padding = COLUMNS.saturating_sub(number.digits);
        low[..padding].fill(b' ');
        number.word = u64::from_le_bytes(low);
        number
    }

    #[test]
    fn lines_are_counted_as_the_integers_are() {
        let mut counts = vec![
            0,
            9_999_998,
            19_999_998,
            99_999_998,
            1_999_999_998,
            u64::MAX - 3,
        ];
        counts.extend((1..=19).map(|exponent| 10_u64.pow(exponent) - 2));
        for before in counts {
            let mut number = number(before);
            let further = if before == 0 { 2000 } else { 3 };
            for count in before + 1..=before + further {
                let mut staged = [0; _];
                let mut sink = Sink::new(&mut staged);
                number.put_next(&mut sink);
                let mut output = Vec::new();
                sink.drain(&mut output);
                assert_eq!(output, format!("{count:6}\t").as_bytes());
            }
        }
        assert_eq!(number(0).word, LineNumber::zero().word);
        assert_eq!(u64::MAX.to_string().len() + 1, LineNumber::LONGEST);
    }
}
