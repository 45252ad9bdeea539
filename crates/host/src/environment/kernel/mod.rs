//! Kernels for guests, and the cache that holds them. `kernel/Makefile` builds them.
//!
//! A cache entry is a directory `$XDG_CACHE_HOME/toll/kernels/KEY/`. Its
//! `kernel.json` is written last, so that an entry with one is complete.

mod build;
mod cache;
mod definition;
mod fragment;
mod inputs;
mod layout;
mod sources;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toll_system::paths;

use crate::spec::KernelName;
pub use build::{BuildError, BuildEvent, Built, build, check_requirements};
pub use cache::{KernelState, ListedKernel, clean, list};
pub use definition::{BUILT_IN, Definition, add, load, names, remove, require};

/// The machine that a kernel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Board {
    /// QEMU's microvm, which only has virtio-mmio devices that the kernel's command line lists. It
    /// boots in a third of the time.
    Microvm,
    /// A PC with ACPI and PCI, for distribution kernels.
    Pc,
}

/// A kernel that a guest can boot: the content of `kernel.json`, with paths that
/// are relative there and absolute here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    pub name: KernelName,
    /// As `uname -r` prints it.
    pub release: String,
    /// The image to boot (bzImage).
    pub image: PathBuf,
    /// The configuration it was built with.
    pub config: PathBuf,
    /// This project's own modules, `.ko`.
    pub modules: Vec<PathBuf>,
    /// Modules that are inserted for each trial and removed after it.
    pub trial_modules: Vec<PathBuf>,
    /// Uncompressed modules that an initramfs must insert, in this order, before a disk or a
    /// console exists; empty if they are built in.
    pub boot_modules: Vec<PathBuf>,
    pub board: Board,
    /// Whether it checks itself (KASAN), and so takes several times as long.
    pub checks_itself: bool,
    /// The name of its cache entry: name and a hash of everything that it was made
    /// from.
    pub key: String,
    /// A hash of this project's part in it: configuration, patches, modules.
    pub recipe: String,
    /// Packages and their versions, such as `linux-source-6.12 6.12.117-1`.
    pub source: String,
    /// The compiler's own name and version.
    pub compiler: String,
    /// File names of the patches, in order.
    pub patches: Vec<String>,
    /// When it was completed, RFC 3339 in UTC.
    pub built_at: String,
    /// Its cache entry.
    #[serde(default)]
    pub directory: PathBuf,
}

/// Finds the newest complete kernel of a name in the cache that was made from the name's
/// current definition.
///
/// # Errors
/// If there is none, with the command that makes it.
pub fn find(name: &str) -> Result<Kernel, String> {
    find_in(&paths::kernels()?.path()?, name, &inputs::of(name)?.recipe)
}

fn find_in(cache: &Path, name: &str, recipe: &str) -> Result<Kernel, String> {
    let of_name: Vec<Kernel> = cache::entries(cache)
        .into_iter()
        .filter_map(|(_, kernel)| kernel.ok())
        .filter(|kernel| kernel.name.as_str() == name)
        .collect();
    let why = if of_name.is_empty() {
        "it is not built"
    } else {
        "what is built was made from other patches, configuration or modules than it has now"
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
        assert!(find().unwrap_err().contains("was made from other patches"));
        entry(cache.path(), "stock-2", "today", "2026-01-01T00:00:00Z");
        entry(cache.path(), "stock-3", "today", "2026-01-03T00:00:00Z");
        entry(cache.path(), "stock-4", "today", "2026-01-02T00:00:00Z");
        let found = find().unwrap();
        assert_eq!(found.key, "stock-3");
        assert!(found.image.is_absolute() && found.image.is_file());
        assert!(find_in(cache.path(), "toll", "today").is_err());
    }
}
