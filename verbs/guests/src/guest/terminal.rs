//! The terminal of a user who opens a shell in a guest.

use std::io::Stdin;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use toll_wire::guest::TerminalSize;

/// A terminal in raw mode, which passes on every key. Dropping this value restores
/// the previous mode.
pub struct RawMode<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> RawMode<'a> {
    /// Switches to raw mode. Returns `None` if standard input is not a terminal.
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
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Returns the size of a terminal, if it reports one.
pub fn size(terminal: &Stdin) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}
