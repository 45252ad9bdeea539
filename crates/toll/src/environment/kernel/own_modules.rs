//! This project's modules, built against a kernel.

use std::collections::BTreeSet;
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
fn lay_out(directory: &Path) -> Result<(), BuildError> {
    empty_directory(directory)?;
    for (path, content) in ["modules", "uapi", "common"]
        .into_iter()
        .flat_map(recipe::below)
    {
        let file = directory.join(path);
        make_directory(file.parent().unwrap_or(directory))?;
        std::fs::write(&file, content).map_err(|error| BuildError::file(&file, &error))?;
    }
    Ok(())
}

/// Builds the modules with a kernel's make and gives their files. One make
/// builds all, since some use symbols of another.
///
/// # Errors
/// If it fails, or a module is missing afterwards.
pub(super) fn build(
    jobs: &mut Jobs<'_>,
    directory: &Path,
    kernel: &impl KernelMake,
) -> Result<Vec<PathBuf>, BuildError> {
    lay_out(directory)?;
    jobs.observer.step("building the modules");
    let modules = directory.join("modules");
    let mut place = OsString::from("M=");
    place.push(&modules);
    kernel.make(jobs, &[place, "modules".into()])?;
    let mut built = Vec::new();
    for name in names() {
        let file = modules.join(name).join(format!("{name}.ko"));
        if !file.is_file() {
            return Err(BuildError::Failed(format!(
                "cannot build the module {name}: {} was not made; see {}",
                file.display(),
                jobs.log().display()
            )));
        }
        built.push(file);
    }
    Ok(built)
}

/// The modules' names, in order. Each has a directory of its own.
fn names() -> BTreeSet<&'static str> {
    recipe::below("modules")
        .filter_map(|(path, _)| path.split('/').nth(1))
        .filter(|name| recipe::below(&format!("modules/{name}")).next().is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_built_that_has_sources() {
        let names: Vec<&str> = names().into_iter().collect();
        assert_eq!(names, ["master", "slave", "toll_primes", "tolldev"]);
    }
}
