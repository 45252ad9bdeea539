//! Drops files from memory: their pages, their names and their attributes.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::syncfs;
use rustix::process::geteuid;
use toll_wire::{CacheState, Failure};

use crate::failure::{self, OrFail};
use crate::page_cache;

/// The file that drops caches, and the word that drops names and attributes but no
/// pages (Documentation/admin-guide/sysctl/vm.rst).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "2\n");
/// The file in which the kernel reports how many names it keeps
/// (Documentation/admin-guide/sysctl/fs.rst).
const NAMES: &str = "/proc/sys/fs/dentry-state";

/// Number of attempts to drop names. Other programs bring in new names meanwhile.
const ATTEMPTS_MAX: u32 = 4;
/// Number of unused names that may be left: one in `SHARE_LEFT` of the earlier number, or
/// `OF_OTHERS`. Other programs look up names meanwhile.
const SHARE_LEFT: u64 = 20;
const OF_OTHERS: u64 = 500;

/// Writes a directory's file system back to its device. Syncing many files one by
/// one would commit the journal for each.
pub fn sync(directory: &Path) -> Result<(), Failure> {
    let synced = File::open(directory).and_then(|file| Ok(syncfs(file)?));
    synced.failed_with("sync", directory)
}

/// Drops a file's pages, and checks that none is left.
pub fn drop_pages(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let file = File::open(path).failed_with("open", path)?;
    page_cache::check_state(&file, CacheState::Cold)?;
    page_cache::establish(&file, size_bytes, CacheState::Cold).map(drop)
}

/// Drops unused names and attributes of all file systems, and checks that hardly any
/// are left.
pub fn drop_names(directory: &Path) -> Result<(), Failure> {
    let file = File::open(directory).failed_with("open", directory)?;
    page_cache::check_state(&file, CacheState::Cold)?;
    if !geteuid().is_root() {
        return Err(failure::unsupported(
            "cannot drop names and attributes from memory: this needs root; use `cache = \"warm\"`",
        ));
    }
    let before = unused_names();
    for _ in 0..ATTEMPTS_MAX {
        fs::write(DROP.0, DROP.1).unsupported_by(
            "drop names and attributes from memory",
            "use `cache = \"warm\"`",
        )?;
        if unused_names() <= (before / SHARE_LEFT).max(OF_OTHERS) {
            return Ok(());
        }
    }
    Err(failure::instrument(format!(
        "cannot drop names from memory: {} of {before} unused ones remain; stop other programs \
         that use many files",
        unused_names()
    )))
}

/// Returns the number of names in memory that no process uses, of all file systems; 0
/// if the kernel does not report it.
fn unused_names() -> u64 {
    let state = fs::read_to_string(NAMES).unwrap_or_default();
    let unused = state.split_whitespace().nth(1);
    unused.and_then(|unused| unused.parse().ok()).unwrap_or(0)
}
