//! This project's modules, built against a kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::job::Jobs;
use super::package::{empty_directory, make_directory};
use super::{BuildError, recipe};

/// A kernel, or headers of one, whose make builds modules, too.
pub(super) trait KernelMake {
    /// Runs its make.
    fn make(&self, jobs: &mut Jobs<'_>, targets: &[OsString]) -> Result<(), BuildError>;
}

/// Lays out the modules' sources below a directory as they lie below
/// `kernel/` of the source tree, with what they share.
///
/// # Errors
/// If that cannot be written.
pub(super) fn lay_out(directory: &Path) -> Result<Vec<PathBuf>, BuildError> {
    empty_directory(directory)?;
    for (path, content) in ["modules", "uapi", "common"]
        .into_iter()
        .flat_map(recipe::below)
    {
        let file = directory.join(path);
        make_directory(file.parent().unwrap_or(directory))?;
        std::fs::write(&file, content).map_err(|error| BuildError::file(&file, &error))?;
    }
    let modules = directory.join("modules");
    let mut found = match std::fs::read_dir(&modules) {
        Ok(entries) => entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect(),
        Err(_) => Vec::new(),
    };
    found.sort();
    Ok(found)
}

/// Builds the modules with a kernel's make and gives their files.
///
/// # Errors
/// If one fails, or none came of it.
pub(super) fn build(
    jobs: &mut Jobs<'_>,
    directory: &Path,
    kernel: &impl KernelMake,
) -> Result<Vec<PathBuf>, BuildError> {
    let mut built = Vec::new();
    for module in lay_out(directory)? {
        let name = module
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        jobs.observer.step(&format!("building the module {name}"));
        let mut place = OsString::from("M=");
        place.push(&module);
        kernel.make(jobs, &[place, "modules".into()])?;
        let objects =
            std::fs::read_dir(&module).map_err(|error| BuildError::file(&module, &error))?;
        let mut files: Vec<PathBuf> = objects
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "ko"))
            .collect();
        if files.is_empty() {
            return Err(BuildError::Failed(format!(
                "cannot build the module {name}: nothing came of it; see {}",
                jobs.log().display()
            )));
        }
        files.sort();
        built.extend(files);
    }
    Ok(built)
}
