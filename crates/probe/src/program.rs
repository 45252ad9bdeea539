//! How the programs that are made of this library speak.

use std::io::{self, Write};

use crate::failure::reason;

pub fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| {
            format!(
                "cannot print the result: {}; check standard output",
                reason(&error)
            )
        })
}

/// Says something on standard error in the name of `program`, in one `write`,
/// which another program at the same terminal does not tear.
pub fn complain(program: &str, text: &str) {
    // Nothing is left to tell if even standard error is gone.
    let _ = io::stderr().write_all(format!("{program}: {text}\n").as_bytes());
}
