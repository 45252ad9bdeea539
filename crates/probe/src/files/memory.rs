//! Taking files out of memory: their pages, their names and their attributes.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::syncfs;
use rustix::process::geteuid;
use toll_wire::{CacheState, Failure};

use crate::failure::{self, OrFail};
use crate::page_cache;

/// Where names and attributes can be thrown out, and which word does that and
/// leaves pages alone (Documentation/admin-guide/sysctl/vm.rst).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "2\n");
/// Where the kernel tells how many names it keeps
/// (Documentation/admin-guide/sysctl/fs.rst).
const NAMES: &str = "/proc/sys/fs/dentry-state";

/// Attempts to throw out names, while other programs bring in new ones.
const ATTEMPTS_MAX: u32 = 4;
/// What may be left of unused names: one of so many, or so many that other
/// programs have looked up meanwhile.
const SHARE_LEFT: u64 = 20;
const OF_OTHERS: u64 = 500;

/// Brings a directory's file system to its device. A sync for each of many
/// files would take a commit of the journal for each.
pub fn sync(directory: &Path) -> Result<(), Failure> {
    let synced = File::open(directory).and_then(|file| Ok(syncfs(file)?));
    synced.failed_with("sync", directory)
}

/// Drops a file's pages, and shows that none is left.
pub fn drop_pages(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let file = File::open(path).failed_with("open", path)?;
    page_cache::check_state(&file, CacheState::Cold)?;
    page_cache::establish(&file, size_bytes, CacheState::Cold).map(drop)
}

/// Drops names and attributes that nobody uses, of all file systems, and shows
/// that hardly one is left.
pub fn drop_names(directory: &Path) -> Result<(), Failure> {
    let file = File::open(directory).failed_with("open", directory)?;
    page_cache::check_state(&file, CacheState::Cold)?;
    if !geteuid().is_root() {
        return Err(failure::unsupported(
            "cannot drop names and attributes from memory: it needs root; choose warm",
        ));
    }
    let before = unused_names();
    for _ in 0..ATTEMPTS_MAX {
        fs::write(DROP.0, DROP.1)
            .unsupported_by("drop names and attributes from memory", "choose warm")?;
        if unused_names() <= (before / SHARE_LEFT).max(OF_OTHERS) {
            return Ok(());
        }
    }
    Err(failure::instrument(format!(
        "cannot drop names from memory: of {before} unused ones {} stay; let nothing else use \
         many files meanwhile",
        unused_names()
    )))
}

/// Names in memory that no process uses, of all file systems; none if the kernel
/// does not tell.
fn unused_names() -> u64 {
    let state = fs::read_to_string(NAMES).unwrap_or_default();
    let unused = state.split_whitespace().nth(1);
    unused.and_then(|unused| unused.parse().ok()).unwrap_or(0)
}
