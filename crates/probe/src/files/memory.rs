//! Taking files out of memory: their pages, their names and their attributes.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::syncfs;
use rustix::process::geteuid;
use toll_wire::{CacheState, Failure};

use super::failed;
use crate::{failure, page_cache};

/// Where names and attributes can be thrown out, and which word does that and
/// leaves pages alone (Documentation/admin-guide/sysctl/vm.rst).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "2\n");
/// Where the kernel tells how many names it keeps
/// (Documentation/admin-guide/sysctl/fs.rst).
const NAMES: &str = "/proc/sys/fs/dentry-state";

/// Brings a directory's file system to its device. A sync for each of many
/// files would take a commit of the journal for each.
///
/// # Errors
/// If it cannot be synced.
pub fn sync(directory: &Path) -> Result<(), Failure> {
    let synced = File::open(directory).and_then(|file| Ok(syncfs(file)?));
    synced.map_err(|error| failed("sync", directory, &error))
}

/// Drops a file's pages, and shows that none is left.
///
/// # Errors
/// Unsupported on a file system that lives in memory; an instrument failure if
/// pages stay.
pub fn drop_pages(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| failed("open", path, &error))?;
    page_cache::check_state(&file, CacheState::Cold)?;
    page_cache::establish(&file, size_bytes, CacheState::Cold).map(drop)
}

/// Drops names and attributes that nobody uses, of all file systems, and says
/// how many the kernel kept.
///
/// # Errors
/// Unsupported without the right to, and for names in a directory that live in
/// memory.
pub fn drop_names(directory: &Path) -> Result<String, Failure> {
    let file = File::open(directory).map_err(|error| failed("open", directory, &error))?;
    page_cache::check_state(&file, CacheState::Cold)?;
    if !geteuid().is_root() {
        return Err(failure::unsupported(
            "cannot drop names and attributes from memory: it needs root; choose warm".into(),
        ));
    }
    let before = unused_names();
    fs::write(DROP.0, DROP.1).map_err(|error| {
        failure::unsupported(format!(
            "cannot drop names and attributes from memory: {}; choose warm",
            failure::reason(&error)
        ))
    })?;
    let after = unused_names();
    Ok(format!(
        "pages of files below are out of memory, and of {} unused names {} stayed",
        told(before),
        told(after)
    ))
}

/// Names in memory that no process uses, of all file systems.
fn unused_names() -> Option<u64> {
    let state = fs::read_to_string(NAMES).ok()?;
    state.split_whitespace().nth(1)?.parse().ok()
}

fn told(names: Option<u64>) -> String {
    names.map_or_else(|| "all".to_owned(), |names| names.to_string())
}
