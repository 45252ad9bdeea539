//! How single bytes are shown.

use super::decoration::Decoration;
use super::special::{CR, LF, Specials, TAB};

/// The shown form of a byte: up to four bytes, the first of them lowest, and their number
/// in the highest byte, so that one load fetches everything.
#[derive(Clone, Copy)]
pub struct Form(u64);

impl Form {
    /// The form of a byte whose form depends on its neighbours.
    const STRUCTURAL: Self = Self(0);

    fn new(shown: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes[..shown.len()].copy_from_slice(shown);
        bytes[7] = shown.len() as u8;
        Self(u64::from_le_bytes(bytes))
    }

    /// Whether the neighbouring bytes decide what is shown.
    #[inline(always)]
    pub const fn is_structural(self) -> bool {
        self.0 == Self::STRUCTURAL.0
    }

    /// The shown bytes, as the lowest of a word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// How many bytes of the word are shown.
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
    /// Builds the forms for a decoration that is not plain.
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
