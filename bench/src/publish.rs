//! Giving a table to whoever asked for it.

use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes `NAME.md` and `NAME.json` into a directory, if there is one, and the
/// table to standard output. The files come first: whoever reads standard output
/// may leave early.
///
/// # Errors
/// What cannot be written.
pub(crate) fn publish(
    name: &str,
    table: &str,
    json: &str,
    directory: Option<&Path>,
) -> Result<(), String> {
    if let Some(directory) = directory {
        let wrong = |error| format!("cannot write into {}: {error}", directory.display());
        std::fs::create_dir_all(directory).map_err(wrong)?;
        std::fs::write(directory.join(format!("{name}.md")), table).map_err(wrong)?;
        std::fs::write(directory.join(format!("{name}.json")), json).map_err(wrong)?;
    }
    match std::io::stdout().write_all(table.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the table: {error}"))
        }
        _ => Ok(()),
    }
}
