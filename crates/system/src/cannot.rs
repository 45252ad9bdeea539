//! Turns errors about files into messages.

use std::io;
use std::path::Path;

/// Turns an I/O error into a message that names the failed action and the file.
pub trait Cannot<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String>;
}

impl<T> Cannot<T> for io::Result<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String> {
        self.map_err(|error| format!("cannot {verb} {}: {error}", path.display()))
    }
}
