//! What can go wrong with a kernel's build and the cache.

use std::path::Path;

/// Why a kernel was not built, or the cache not cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// Something must be installed, or space must be freed, first.
    Prerequisite(String),
    /// The build was interrupted. The next build continues from there.
    Interrupted,
    /// Something else went wrong. `log` has the last lines of a log, if there is one.
    Failed { message: String, log: Vec<String> },
}

impl BuildError {
    pub(super) fn failed(message: String) -> Self {
        let log = Vec::new();
        Self::Failed { message, log }
    }

    /// An error for a file or directory that cannot be read or written.
    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::failed(format!("cannot use {}: {error}", path.display()))
    }
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prerequisite(message) | Self::Failed { message, .. } => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for BuildError {}
