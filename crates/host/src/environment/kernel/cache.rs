//! The cache of kernels: finds kernels, lists them with their disk usage, and cleans the cache.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toll_system::paths;

use super::definition::names;
use super::error::BuildError;
use super::inputs;
use super::record::Kernel;

/// The version of `kernel.json` that this program reads.
const KERNEL_RECORD_VERSION: u32 = 1;

/// State of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelState {
    /// Guests use this kernel.
    Today,
    /// The kernel was made from sources other than this program's, or there is a newer kernel.
    Stale,
    /// The entry has no record, or one that this program cannot use.
    Unusable,
}

/// A directory of the cache.
#[derive(Debug, serde::Serialize)]
pub struct ListedKernel {
    pub directory: PathBuf,
    pub state: KernelState,
    /// Disk usage of the directory.
    pub bytes: u64,
    /// Why the kernel cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(flatten)]
    pub kernel: Option<Kernel>,
}

/// Lists the directories of a cache, each with its kernel or why that kernel is unusable; empty if
/// there is no cache.
pub(super) fn entries(cache: &Path) -> Vec<(PathBuf, Result<Kernel, String>)> {
    let directories = below(cache).into_iter().filter(|path| path.is_dir());
    directories
        .map(|directory| {
            let kernel = read(&directory);
            (directory, kernel)
        })
        .collect()
}

/// Reads the kernel in a directory; its files must exist.
pub(super) fn read(directory: &Path) -> Result<Kernel, String> {
    let path = directory.join("kernel.json");
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "it is incomplete".to_owned(),
        _ => wrong(&error),
    })?;
    let record: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if record["version"] != KERNEL_RECORD_VERSION {
        return Err(format!(
            "{} does not have version {KERNEL_RECORD_VERSION}, the one that this toll reads",
            path.display()
        ));
    }
    let mut kernel: Kernel = serde_json::from_value(record).map_err(|error| wrong(&error))?;
    kernel.directory = directory.to_owned();
    let own = [&mut kernel.image, &mut kernel.config].into_iter();
    let modules = kernel.modules.iter_mut().chain(&mut kernel.boot_modules);
    let modules = modules.chain(&mut kernel.trial_modules);
    for file in own.chain(modules) {
        *file = directory.join(&file);
        if !file.is_file() {
            return Err(format!("{} is missing", file.display()));
        }
    }
    Ok(kernel)
}

/// Finds the newest complete kernel of a name in the cache that was made from the current
/// definition.
///
/// # Errors
///
/// If there is no such kernel. The error names the command that makes it.
pub fn find(name: &str) -> Result<Kernel, String> {
    find_in(
        &paths::kernels()?.path()?,
        name,
        &inputs::find(name)?.recipe,
    )
}

fn find_in(cache: &Path, name: &str, recipe: &str) -> Result<Kernel, String> {
    let of_name: Vec<Kernel> = entries(cache)
        .into_iter()
        .filter_map(|(_, kernel)| kernel.ok())
        .filter(|kernel| kernel.name.as_str() == name)
        .collect();
    let why = if of_name.is_empty() {
        "it is not built"
    } else {
        "it was built from other patches, configuration or modules than it has now"
    };
    let command = match name {
        "toll" => "toll kernel build".to_owned(),
        _ => format!("toll kernel build {name}"),
    };
    of_name
        .into_iter()
        .filter(|kernel| kernel.recipe == recipe)
        .max_by(|a, b| a.built_at.cmp(&b.built_at))
        .ok_or_else(|| format!("cannot use kernel {name}: {why}; run {command}"))
}

/// Lists the content of the cache by name, the newest entries first.
pub fn list() -> Vec<ListedKernel> {
    let names = names();
    let todays: Vec<PathBuf> = names
        .iter()
        .filter_map(|name| Some(find(name).ok()?.directory))
        .collect();
    // A directory that is refused holds no usable kernel; toll doctor reports it.
    let directory = paths::kernels().and_then(|place| place.path());
    let mut listed: Vec<ListedKernel> = directory
        .map(|directory| entries(&directory))
        .into_iter()
        .flatten()
        .map(|(directory, kernel)| ListedKernel {
            state: match &kernel {
                Err(_) => KernelState::Unusable,
                Ok(_) if todays.contains(&directory) => KernelState::Today,
                Ok(_) => KernelState::Stale,
            },
            bytes: disk_bytes(&directory),
            reason: kernel.as_ref().err().cloned(),
            kernel: kernel.ok(),
            directory,
        })
        .collect();
    listed.sort_by_key(|listed| {
        let kernel = listed.kernel.as_ref();
        let rank = kernel.and_then(|kernel| {
            let mut names = names.iter();
            names.position(|name| name == kernel.name.as_str())
        });
        let rank = rank.unwrap_or(names.len());
        let built = kernel.map(|kernel| kernel.built_at.clone());
        (rank, std::cmp::Reverse(built))
    });
    listed
}

/// Removes what is no longer needed, and returns each path with its disk usage in bytes. Removes
/// entries that no guest would use, build trees, and packages that were not completely fetched or
/// unpacked. With `all`, removes everything, including fetched packages. Refused while a build is
/// running.
pub fn clean(all: bool) -> Result<Vec<(PathBuf, u64)>, BuildError> {
    let [work, kernels] = [paths::kernel_work(), paths::kernels()].map(|place| {
        place
            .and_then(|place| Ok((place.path()?, place)))
            .map_err(BuildError::failed)
    });
    let ((work, place), (kernels, _)) = (work?, kernels?);
    if !work.is_dir() && !kernels.is_dir() {
        return Ok(Vec::new());
    }
    place.make().map_err(BuildError::failed)?;
    let _lock = lock(&work)?;
    let entries = list()
        .into_iter()
        .filter(|listed| all || listed.state != KernelState::Today)
        .map(|listed| listed.directory);
    let is_partial = |path: &Path| path.extension().is_some_and(|word| word == "partial");
    let sources = below(&work.join("source")).into_iter();
    let sources = sources.filter(|path| all || is_partial(path));
    // A killed fetch leaves a directory.
    let packages = below(&work.join("packages")).into_iter();
    let packages = packages.filter(|path| all || path.is_dir());
    // The lock file stays, since processes that wait for the lock have the file open already.
    entries
        .chain(below(&work.join("build")))
        .chain(below(&work.join("makefile")))
        .chain(below(&work.join("inputs")))
        .chain(sources)
        .chain(packages)
        .map(|path| {
            let bytes = disk_bytes(&path);
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.map_err(|error| BuildError::file(&path, &error))?;
            Ok((path, bytes))
        })
        .collect()
}

/// Takes the lock that `kernel/Makefile` holds while it builds.
fn lock(work: &Path) -> Result<File, BuildError> {
    let path = work.join("lock");
    let wrong = |error: std::io::Error| BuildError::file(&path, &error);
    let mut options = File::options();
    let file = options.create(true).append(true).open(&path);
    let file = file.map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(wrong(error)),
        Err(TryLockError::WouldBlock) => {
            let holder = std::fs::read_to_string(&path).map_err(wrong)?;
            Err(BuildError::failed(format!(
                "cannot clean: a build (process {}) is running; wait for it",
                holder.trim()
            )))
        }
    }
}

/// Lists the entries of a directory, sorted by name.
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

/// Returns disk usage in bytes: of a file, or of a directory with everything below it.
fn disk_bytes(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else {
        return 0;
    };
    // The unit is 512 bytes, whatever the file system's block size is: stat(2).
    let own = metadata.blocks() * 512;
    if metadata.is_dir() {
        own + below(path).iter().map(|path| disk_bytes(path)).sum::<u64>()
    } else {
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cache: &Path, key: &str, recipe: &str, built_at: &str) {
        let directory = cache.join(key);
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["bzImage", "config"] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        let record = serde_json::json!({
            "version": 1, "name": "stock", "key": key, "recipe": recipe, "release": "6.1.0",
            "source": "linux-image 6.1", "compiler": "gcc 12", "patches": [], "image": "bzImage",
            "config": "config", "modules": [], "trial_modules": [], "boot_modules": [], "board": "pc",
            "checks_itself": false, "built_at": built_at,
        });
        std::fs::write(directory.join("kernel.json"), record.to_string()).unwrap();
    }

    #[test]
    fn the_newest_kernel_of_todays_recipe_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let find = || find_in(cache.path(), "stock", "today");
        let missing = find().unwrap_err();
        assert_eq!(
            missing,
            "cannot use kernel stock: it is not built; run toll kernel build stock"
        );
        entry(cache.path(), "stock-1", "yesterday", "2026-01-09T00:00:00Z");
        assert!(find().unwrap_err().contains("built from other patches"));
        entry(cache.path(), "stock-2", "today", "2026-01-01T00:00:00Z");
        entry(cache.path(), "stock-3", "today", "2026-01-03T00:00:00Z");
        entry(cache.path(), "stock-4", "today", "2026-01-02T00:00:00Z");
        let found = find().unwrap();
        assert_eq!(found.key, "stock-3");
        assert!(found.image.is_absolute() && found.image.is_file());
        assert!(find_in(cache.path(), "toll", "today").is_err());
    }
}
