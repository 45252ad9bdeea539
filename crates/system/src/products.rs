//! Programs of this project in the directory of the running program.

use std::path::PathBuf;

/// Finds the program `toll-NAME`, which runs the verb NAME. Searches only the directory of the
/// running program. A user who can write there can replace the running program, too.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let file = format!("toll-{name}");
    let own = std::env::current_exe().map_err(|error| format!("cannot find {file}: {error}"))?;
    let program = own.with_file_name(&file);
    if program.is_file() {
        return Ok(program);
    }
    Err(format!(
        "cannot find {file}: it is not in the directory of {}; build or install it, too",
        own.display()
    ))
}
