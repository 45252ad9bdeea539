//! Where things lie, by the XDG base directory specification.

use std::io;
use std::path::{Path, PathBuf};

/// Says in words what could not be done with a file.
pub(super) trait Cannot<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String>;
}

impl<T> Cannot<T> for io::Result<T> {
    fn cannot(self, verb: &str, path: &Path) -> Result<T, String> {
        self.map_err(|error| format!("cannot {verb} {}: {error}", path.display()))
    }
}

fn base(variable: &str, fallback: &str) -> PathBuf {
    match std::env::var_os(variable) {
        // The specification has relative paths ignored.
        Some(path) if PathBuf::from(&path).is_absolute() => PathBuf::from(path),
        _ => std::env::var_os("HOME")
            .map_or_else(std::env::temp_dir, PathBuf::from)
            .join(fallback),
    }
}

/// The store's file, unless `TOLL_STORE` or `--store` names another.
pub fn store() -> PathBuf {
    std::env::var_os("TOLL_STORE").map_or_else(default_store, PathBuf::from)
}

/// The store's file where none is named.
pub fn default_store() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("toll/runs.sqlite")
}

/// Where reports are written unless a file is named.
pub fn reports() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("toll/reports")
}

/// Where work directories are made, unless `TOLL_WORK_DIR` or `--work-dir`
/// names another place. Not the temporary directory: that is often a tmpfs.
pub fn work() -> PathBuf {
    std::env::var_os("TOLL_WORK_DIR").map_or_else(
        || base("XDG_CACHE_HOME", ".cache").join("toll/work"),
        PathBuf::from,
    )
}

/// Where a user's kernels are defined, a file each.
pub fn kernel_definitions() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("toll/kernels")
}

/// Where built kernels are kept, a directory each.
pub fn kernels() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("toll/kernels")
}

/// Where kernels are built: packages, sources, build trees.
pub fn kernel_work() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("toll/kernel-work")
}

/// What is known of KVM on this machine.
pub fn kvm_trials() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("toll/kvm.json")
}

/// Where versions of programs are built that are compared.
pub fn versions() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("toll/versions")
}

/// Where programs are that tools of this project build for comparison.
pub fn peers() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache").join("toll/peers")
}

/// The lock that a measuring run of this user holds.
pub fn run_lock() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state").join("toll/run.lock")
}

/// Where running instances note what must be put back.
pub fn leftovers() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state").join("toll/leftovers")
}

/// Where mounts keep local copies, journals and what could not be written
/// back. Not below the cache directory, which may be cleared at any time.
pub fn mounts() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state").join("toll/mount")
}
