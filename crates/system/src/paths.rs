//! Where things lie, by the XDG base directory specification.

use std::io;
use std::path::{Path, PathBuf};

use crate::private_directory::Place;
use crate::users;

/// Says in words what could not be done with a file.
pub trait Cannot<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String>;
}

impl<T> Cannot<T> for io::Result<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String> {
        self.map_err(|error| format!("cannot {verb} {}: {error}", path.display()))
    }
}

/// A place of this program below a directory of the XDG base directory specification.
fn place(variable: &'static str, fallback: &str, own: &str) -> Result<Place, String> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    // The specification has empty and relative paths ignored.
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

/// The store's file, unless `TOLL_STORE` or `--store` names another.
pub fn store() -> Result<PathBuf, String> {
    std::env::var_os("TOLL_STORE").map_or_else(default_store, |path| Ok(path.into()))
}

/// The store's file where none is named.
pub fn default_store() -> Result<PathBuf, String> {
    Ok(store_directory()?.unchecked_path().join("runs.sqlite"))
}

/// The directory of that file.
pub fn store_directory() -> Result<Place, String> {
    data("toll")
}

/// Where reports are written unless a file is named.
pub fn reports() -> Result<Place, String> {
    data("toll/reports")
}

/// Where work directories are made. `directory` is what `--work-dir` names; otherwise
/// `TOLL_WORK_DIR` may. Not the temporary directory: that is often a tmpfs.
pub fn work(directory: Option<&Path>) -> Result<Place, String> {
    let named = directory.map(PathBuf::from);
    let named = named.or_else(|| std::env::var_os("TOLL_WORK_DIR").map(PathBuf::from));
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => Place::named(&path, "--work-dir or TOLL_WORK_DIR"),
        None => Ok(cache("toll/work")?.named_by("--work-dir or TOLL_WORK_DIR")),
    }
}

/// Where a user's kernels are defined, a file each.
pub fn kernel_definitions() -> Result<Place, String> {
    data("toll/kernels")
}

/// Where built kernels are kept, a directory each.
pub fn kernels() -> Result<Place, String> {
    cache("toll/kernels")
}

/// Where kernels are built: packages, sources, build trees.
pub fn kernel_work() -> Result<Place, String> {
    cache("toll/kernel-work")
}

/// What is known of KVM on this machine: a file in this directory.
pub fn kvm_trials() -> Result<Place, String> {
    cache("toll")
}

/// Where versions of programs are built that are compared.
pub fn versions() -> Result<Place, String> {
    cache("toll/versions")
}

/// Where programs are that tools of this project build for comparison.
pub fn peers() -> Result<Place, String> {
    cache("toll/peers")
}

/// Where the key is by which this user's runs are known.
pub fn run_key_directory() -> Result<Place, String> {
    state("toll")
}

/// Where running instances note what must be put back.
pub fn leftovers() -> Result<Place, String> {
    state("toll/leftovers")
}

/// Where mounts keep local copies, journals and what could not be written
/// back. Not below the cache directory, which may be cleared at any time.
pub fn mounts() -> Result<Place, String> {
    state("toll/mount")
}

/// Every place of this program with what it is for, as `toll doctor` examines them.
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
