//! Writes out every file of a directory.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// For each file, writes a line `file INODE BYTES PATH` and the content. Then writes the line
/// `end`.
pub fn write(root: &Path) -> io::Result<()> {
    // Data that was only read from a replayed journal must also survive the next cut.
    rustix::fs::sync();
    let mut output = io::stdout().lock();
    files(root, root, &mut output)?;
    output.write_all(b"end\n")?;
    output.flush()
}

fn files(root: &Path, directory: &Path, output: &mut impl Write) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            files(root, &path, output)?;
            continue;
        }
        let content = fs::read(&path)?;
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        writeln!(output, "file {} {} {name}", metadata.ino(), content.len())?;
        output.write_all(&content)?;
    }
    Ok(())
}
