//! `kernel.json`, and what the cache holds.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BuildError, Kernel, Variant};

/// The version of [`KernelRecord`] that this program reads and writes.
pub const KERNEL_RECORD_VERSION: u32 = 1;

/// The file that makes an entry complete.
pub(super) const RECORD_FILE: &str = "kernel.json";

/// The content of `kernel.json`. Paths are relative to its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// [`KERNEL_RECORD_VERSION`].
    pub version: u32,
    /// See [`Kernel::variant`].
    pub variant: Variant,
    /// See [`Kernel::key`].
    pub key: String,
    /// See [`Kernel::recipe`].
    pub recipe: String,
    /// See [`Kernel::release`].
    pub release: String,
    /// See [`Kernel::source`].
    pub source: String,
    /// See [`Kernel::compiler`].
    pub compiler: String,
    /// See [`Kernel::patches`].
    pub patches: Vec<String>,
    /// See [`Kernel::image`].
    pub image: PathBuf,
    /// See [`Kernel::config`].
    pub config: PathBuf,
    /// See [`Kernel::modules`].
    pub modules: Vec<PathBuf>,
    /// See [`Kernel::boot_modules`].
    pub boot_modules: Vec<PathBuf>,
    /// See [`Kernel::built_at`].
    pub built_at: String,
}

impl KernelRecord {
    /// The kernel in a directory; its files must be there.
    pub(super) fn at(self, directory: &Path) -> Result<Kernel, String> {
        let place = |path: &PathBuf| directory.join(path);
        let all = [&self.image, &self.config].into_iter();
        let all = all.chain(&self.modules).chain(&self.boot_modules);
        for path in all.map(place) {
            if !path.is_file() {
                return Err(format!("{} is missing", path.display()));
            }
        }
        Ok(Kernel {
            variant: self.variant,
            release: self.release,
            image: place(&self.image),
            config: place(&self.config),
            modules: self.modules.iter().map(place).collect(),
            boot_modules: self.boot_modules.iter().map(place).collect(),
            key: self.key,
            recipe: self.recipe,
            source: self.source,
            compiler: self.compiler,
            patches: self.patches,
            built_at: self.built_at,
            directory: directory.to_owned(),
        })
    }
}

/// A directory of the cache.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where it lies.
    pub directory: PathBuf,
    /// What it holds, or why that cannot be used.
    pub kernel: Result<Kernel, String>,
}

/// All entries of a cache, in the order of their names; none if it is not
/// there.
pub(super) fn entries(cache: &Path) -> Vec<Entry> {
    let Ok(found) = std::fs::read_dir(cache) else {
        return Vec::new();
    };
    let mut directories: Vec<PathBuf> = found
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    directories.sort();
    let entry = |directory: PathBuf| Entry {
        kernel: read(&directory),
        directory,
    };
    directories.into_iter().map(entry).collect()
}

/// The kernel in a directory, if it is complete there.
pub(super) fn complete(directory: &Path) -> Option<Kernel> {
    read(directory).ok()
}

/// Writes the record that makes a directory complete, whole or not at all.
pub(super) fn write(record: &KernelRecord, directory: &Path) -> Result<(), BuildError> {
    let path = directory.join(RECORD_FILE);
    let wrong = |error: std::io::Error| BuildError::file(&path, &error);
    let text = serde_json::to_string_pretty(record).map_err(|error| wrong(error.into()))?;
    let partial = path.with_extension("partial");
    let mut file = std::fs::File::create(&partial).map_err(wrong)?;
    file.write_all(format!("{text}\n").as_bytes())
        .map_err(wrong)?;
    file.sync_all().map_err(wrong)?;
    std::fs::rename(&partial, &path).map_err(wrong)
}

fn read(directory: &Path) -> Result<Kernel, String> {
    let path = directory.join(RECORD_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("it is not complete".into());
        }
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let wrong = |error: serde_json::Error| format!("{}: {error}", path.display());
    let version =
        serde_json::from_str::<serde_json::Value>(&text).map_err(wrong)?["version"].as_u64();
    if version != Some(u64::from(KERNEL_RECORD_VERSION)) {
        return Err(format!(
            "{} has another version than {KERNEL_RECORD_VERSION}",
            path.display()
        ));
    }
    serde_json::from_str::<KernelRecord>(&text)
        .map_err(wrong)?
        .at(directory)
}
