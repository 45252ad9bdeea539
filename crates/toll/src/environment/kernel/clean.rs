//! What the cache holds and takes, and removing it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::build_lock::BuildLock;
use super::package::remove;
use super::{BuildError, Kernel, Variant, find, paths, record};

/// Whether a cache entry is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelState {
    /// Guests use it.
    Today,
    /// Made from other sources than this program holds, or there is a newer
    /// one.
    Stale,
    /// It has no record, or one that this program cannot use.
    Unusable,
}

/// A directory of the cache.
#[derive(Debug)]
pub struct ListedKernel {
    /// Where it lies.
    pub directory: PathBuf,
    /// What it holds, or why that cannot be used.
    pub kernel: Result<Kernel, String>,
    /// Whether it is of use.
    pub state: KernelState,
    /// What it takes on the disk.
    pub bytes: u64,
}

/// All that the cache holds: by variant, the newest first.
pub fn list() -> Vec<ListedKernel> {
    let todays: Vec<PathBuf> = Variant::ALL
        .into_iter()
        .filter_map(|variant| Some(find(variant).ok()?.directory))
        .collect();
    let mut listed: Vec<ListedKernel> = record::entries(&paths::kernels())
        .into_iter()
        .map(|entry| ListedKernel {
            state: match &entry.kernel {
                Err(_) => KernelState::Unusable,
                Ok(kernel) if todays.contains(&kernel.directory) => KernelState::Today,
                Ok(_) => KernelState::Stale,
            },
            bytes: disk_bytes(&entry.directory),
            kernel: entry.kernel,
            directory: entry.directory,
        })
        .collect();
    let order = |listed: &ListedKernel| {
        let kernel = listed.kernel.as_ref().ok();
        let rank = kernel.map_or(Variant::ALL.len(), |kernel| kernel.variant as usize);
        let built = kernel.map(|kernel| kernel.built_at.clone());
        (rank, std::cmp::Reverse(built))
    };
    listed.sort_by_key(order);
    listed
}

/// Something that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Where it lay.
    pub path: PathBuf,
    /// What it took on the disk.
    pub bytes: u64,
}

/// Removes what is no longer needed: entries that no guest would use, build
/// trees, what was not fetched or unpacked to its end. With `all` everything, including the
/// packages that were fetched.
///
/// # Errors
/// If a build is going on, or something cannot be removed.
pub fn clean(all: bool) -> Result<Vec<Removed>, BuildError> {
    let work = paths::kernel_work();
    if !work.is_dir() && !paths::kernels().is_dir() {
        return Ok(Vec::new());
    }
    let _lock = BuildLock::take(&work)?;
    let entries = list()
        .into_iter()
        .filter(|listed| all || listed.state != KernelState::Today)
        .map(|listed| listed.directory);
    let sources = below(&work.join("source")).into_iter();
    let sources = sources.filter(|path| all || path.ends_with("partial"));
    // What a killed fetch left is no package.
    let packages = below(&work.join("packages"))
        .into_iter()
        .filter(|path| all || path.is_dir());
    // The lock's file stays: whoever waits for it has it open already.
    entries
        .chain(below(&work.join("build")))
        .chain(sources)
        .chain(packages)
        .map(take_away)
        .collect()
}

fn take_away(path: PathBuf) -> Result<Removed, BuildError> {
    let bytes = disk_bytes(&path);
    match path.is_dir() {
        true => remove(&path)?,
        false => std::fs::remove_file(&path).map_err(|error| BuildError::file(&path, &error))?,
    }
    Ok(Removed { path, bytes })
}

/// What lies in a directory, in the order of the names.
fn below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

/// What a file, or a directory with all below it, takes on the disk.
fn disk_bytes(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else {
        return 0;
    };
    // In units of 512 bytes whatever the file system's blocks are: stat(2).
    let own = metadata.blocks() * 512;
    match metadata.is_dir() {
        true => own + below(path).iter().map(|path| disk_bytes(path)).sum::<u64>(),
        false => own,
    }
}
