//! Why a kernel was not built.

use std::path::Path;

/// Why a kernel was not built, or the cache not cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// Something must be installed or made room for first.
    Prerequisite(String),
    /// The observer wanted it to end. The next build goes on from there.
    Interrupted,
    /// Something else went wrong.
    Failed(String),
}

impl BuildError {
    /// A file or directory that cannot be read or written.
    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("cannot use {}: {error}", path.display()))
    }
}

impl std::error::Error for BuildError {}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prerequisite(message) | Self::Failed(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}
