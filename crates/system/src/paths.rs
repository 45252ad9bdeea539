//! Places for this program's files, by the XDG base directory specification.

use std::path::{Path, PathBuf};

use crate::private_directory::Place;
use crate::users;

/// Returns a place for this program's files below a directory of the XDG base directory
/// specification.
fn place(variable: &'static str, fallback: &str, own: &str) -> Result<Place, String> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    // The specification says to ignore empty and relative paths.
    match named.filter(|path| path.is_absolute()) {
        Some(path) => Ok(Place::new(path, "", own, variable)),
        None => Ok(Place::new(users::home()?, fallback, own, variable)),
    }
}

fn data(own: &str) -> Result<Place, String> {
    place("XDG_DATA_HOME", ".local/share", own)
}

fn cache(own: &str) -> Result<Place, String> {
    place("XDG_CACHE_HOME", ".cache", own)
}

fn state(own: &str) -> Result<Place, String> {
    place("XDG_STATE_HOME", ".local/state", own)
}

/// Returns the store's file: `TOLL_STORE` or the default. `--store` takes precedence.
pub fn store() -> Result<PathBuf, String> {
    std::env::var_os("TOLL_STORE").map_or_else(default_store, |path| Ok(path.into()))
}

/// Returns the default store's file.
pub fn default_store() -> Result<PathBuf, String> {
    Ok(store_directory()?.unchecked_path().join("runs.sqlite"))
}

/// The directory of the default store.
pub fn store_directory() -> Result<Place, String> {
    data("toll")
}

/// Directory of reports whose file is not named.
pub fn reports() -> Result<Place, String> {
    data("toll/reports")
}

/// Where work directories are made: in `directory` (`--work-dir`), or else in `TOLL_WORK_DIR`. The
/// default is not the temporary directory, which is often a tmpfs.
pub fn work(directory: Option<&Path>) -> Result<Place, String> {
    let named = directory.map(PathBuf::from);
    let named = named.or_else(|| std::env::var_os("TOLL_WORK_DIR").map(PathBuf::from));
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => Place::named(&path, "--work-dir or TOLL_WORK_DIR"),
        None => Ok(cache("toll/work")?.named_by("--work-dir or TOLL_WORK_DIR")),
    }
}

/// Where a user's kernels are defined, in one file each.
pub fn kernel_definitions() -> Result<Place, String> {
    data("toll/kernels")
}

/// Where built kernels are kept, in one directory each.
pub fn kernels() -> Result<Place, String> {
    cache("toll/kernels")
}

/// Directory for building kernels: packages, sources, build trees.
pub fn kernel_work() -> Result<Place, String> {
    cache("toll/kernel-work")
}

/// Directory of the file with the results of trying KVM on this machine.
pub fn kvm_trials() -> Result<Place, String> {
    cache("toll")
}

/// Where versions of programs are built for comparison.
pub fn versions() -> Result<Place, String> {
    cache("toll/versions")
}

/// Where this project's tools put the programs that they build for comparison.
pub fn peers() -> Result<Place, String> {
    cache("toll/peers")
}

/// Directory of the key that marks this user's runs.
pub fn run_key_directory() -> Result<Place, String> {
    state("toll")
}

/// Where running instances record what must be undone.
pub fn leftovers() -> Result<Place, String> {
    state("toll/leftovers")
}

/// Where mounts keep local copies, journals and data that could not be written back. The place is
/// not below the cache directory, which may be cleared at any time.
pub fn mounts() -> Result<Place, String> {
    state("toll/mount")
}

/// Lists the places of this program and their purposes, for `toll doctor` to check.
pub fn all() -> Vec<(&'static str, Result<Place, String>)> {
    vec![
        ("directory for runs", store_directory()),
        ("directory for clean-up journals", leftovers()),
        ("directory for mounts", mounts()),
        ("directory for kernels", kernels()),
        ("directory for kernel builds", kernel_work()),
        ("directory for kernel definitions", kernel_definitions()),
        ("directory for versions", versions()),
    ]
}
