//! The terminal of whoever opens a shell in a guest.

use std::io::Stdin;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use toll_wire::guest::TerminalSize;

/// A terminal that hands on every key as it is. It is put back when this value
/// goes.
pub struct RawMode<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> RawMode<'a> {
    /// `None` for what is no terminal.
    pub fn enter(terminal: &'a Stdin) -> Option<Self> {
        let before = tcgetattr(terminal).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Drain, &raw).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing put back.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The size of a terminal that has one.
pub fn size(terminal: &Stdin) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}
