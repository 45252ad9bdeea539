//! Programs of this project that are installed beside the one that runs.

use std::path::PathBuf;

/// The program `toll-NAME`, which is started as the verb NAME. Only the directory of the running
/// program is searched, since whoever can write there can replace that program, too.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let file = format!("toll-{name}");
    let own = std::env::current_exe().map_err(|error| format!("cannot find {file}: {error}"))?;
    let program = own.with_file_name(&file);
    if program.is_file() {
        return Ok(program);
    }
    Err(format!(
        "cannot find {file}: it is not beside {}; build or install it, too",
        own.display()
    ))
}
