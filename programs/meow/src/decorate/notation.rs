//! The shown forms of single bytes.

use super::decoration::Decoration;
use super::special::{CR, LF, Specials, TAB};

/// The shown form of a byte, packed so that one load fetches it. The lowest bytes are
/// up to four characters, the first one lowest, and the highest byte is their number.
#[derive(Clone, Copy)]
pub struct Form(u64);

impl Form {
    /// Marks a byte whose form depends on its neighbours.
    const STRUCTURAL: Self = Self(0);

    fn new(shown: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes[..shown.len()].copy_from_slice(shown);
        bytes[7] = shown.len() as u8;
        Self(u64::from_le_bytes(bytes))
    }

    /// Returns whether the form depends on neighbouring bytes.
    #[inline(always)]
    pub const fn is_structural(self) -> bool {
        self.0 == Self::STRUCTURAL.0
    }

    /// Returns the shown characters as the lowest bytes of a word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Returns the number of shown characters.
    #[inline(always)]
    pub const fn length(self) -> usize {
        (self.0 >> 56) as usize
    }
}

pub struct Notation {
    pub forms: Box<[Form; 256]>,
    pub specials: Specials,
}

impl Notation {
    /// Builds the table of forms for a decoration that is not plain.
    pub fn new(decoration: &Decoration) -> Self {
        let specials = Specials {
            nonprinting: decoration.shows_nonprinting,
            tab: decoration.shows_tabs,
            newline: decoration.has_line_state() || decoration.shows_ends,
            carriage_return: decoration.holds_carriage_returns(),
        };
        let mut forms = Box::new([Form::STRUCTURAL; 256]);
        for byte in 0..=u8::MAX {
            forms[usize::from(byte)] = match byte {
                TAB if !decoration.shows_tabs => Form::new(&[TAB]),
                TAB => Form::new(b"^I"),
                LF if decoration.has_line_state() => Form::STRUCTURAL,
                LF if decoration.shows_ends => Form::new(b"$\n"),
                LF => Form::new(&[LF]),
                _ if decoration.shows_nonprinting => caret(byte),
                CR if specials.carriage_return => Form::STRUCTURAL,
                _ => Form::new(&[byte]),
            };
        }
        Self { forms, specials }
    }
}

/// Returns the `^X` or `M-x` notation of a byte.
fn caret(byte: u8) -> Form {
    match byte {
        0..32 => Form::new(&[b'^', byte + 64]),
        32..127 => Form::new(&[byte]),
        127 => Form::new(b"^?"),
        _ => match byte - 128 {
            low @ 0..32 => Form::new(&[b'M', b'-', b'^', low + 64]),
            low @ 32..127 => Form::new(&[b'M', b'-', low]),
            _ => Form::new(b"M-^?"),
        },
    }
}
