//! Versions of Linux as kernels of guests. Each version has a name during the search.

use toll_core::spec::KernelName;
use toll_driver::kernel_builds::{build_one, cpus};
use toll_host::environment::kernel::{BuildError, Definition, add, names, remove as remove_name};

use crate::repository::{BuildFailure, Repository, Version};

/// Name of the kernel that is built from a version.
pub fn name(version: &Version) -> KernelName {
    let name = format!("bisect-{}", version.short());
    name.parse().expect("names may have hexadecimal digits")
}

/// Builds a version unless the cache has it.
pub fn prepare(
    repository: &Repository,
    version: &Version,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), BuildFailure> {
    let definition = Definition {
        tree: Some(repository.directory().to_owned()),
        revision: Some(version.hash.clone()),
        ..Definition::default()
    };
    let name = name(version);
    add(&name, &definition, true).map_err(BuildFailure::Other)?;
    match build_one(name.as_str(), cpus(), interrupted) {
        Ok(_) => Ok(()),
        Err(BuildError::Failed { message, log }) => {
            let error = log.iter().find(|line| line.contains("error:"));
            let message = error.map_or(message, |line| line.trim().to_owned());
            Err(BuildFailure::OfVersion(message))
        }
        Err(error) => Err(BuildFailure::Other(error.to_string())),
    }
}

/// Removes the kernels' names after a search. The built kernels stay until `toll kernel clean`.
pub fn remove(versions: &[Version]) -> Result<(), String> {
    let known = names();
    let mut own = versions.iter().map(name);
    own.try_for_each(|name| {
        if known.iter().any(|one| one == name.as_str()) {
            remove_name(&name)
        } else {
            Ok(())
        }
    })
}
