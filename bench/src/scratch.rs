//! Directories for what lasts no longer than a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A directory that goes with its owner.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it in another directory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make(parent: &Path, name: &str) -> Result<Scratch, String> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies among temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A flag that SIGHUP, SIGINT and SIGTERM set instead of ending the process, so
/// that what it made is removed.
///
/// # Errors
/// If a signal cannot be handled.
pub fn interrupts() -> Result<Arc<AtomicBool>, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone())
            .map_err(|error| format!("cannot handle signal {signal}: {error}"))?;
    }
    Ok(interrupted)
}

/// A program's whole path, since it is started from other directories.
///
/// # Errors
/// If it is not there.
pub fn absolute(path: &Path) -> Result<PathBuf, String> {
    let wrong = |error| format!("cannot find {}: {error}", path.display());
    path.canonicalize().map_err(wrong)
}

/// A program that lies beside this one.
///
/// # Errors
/// If this program's own path is not known.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find {name}: {error}"))?;
    Ok(own.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_owner() {
        let scratch = Scratch::make(&std::env::temp_dir(), "toll-bench-scratch").expect("made");
        let path = scratch.path().to_owned();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }
}
