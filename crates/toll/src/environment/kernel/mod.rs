//! Kernels for guests, and the cache that holds them. `kernel/Makefile` builds them.
//!
//! A cache entry is a directory `$XDG_CACHE_HOME/toll/kernels/KEY/`. Its
//! `kernel.json` is written last, so that an entry with one is complete.

mod build;
mod cache;
mod sources;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths;
pub use build::{BuildError, BuildEvent, Built, build, check_requirements};
pub use cache::{KernelState, ListedKernel, clean, list};

/// Which kernel a guest runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub enum Variant {
    /// The pinned source with this project's patches, configured for guests.
    #[serde(rename = "toll")]
    Toll,
    /// The same with the kernel's own checks (KASAN, lockdep): for tests, not
    /// for measuring.
    #[serde(rename = "toll-debug")]
    #[value(name = "toll-debug")]
    Debug,
    /// A kernel of Debian's as it is.
    #[serde(rename = "stock")]
    Stock,
}

impl Variant {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Toll, Self::Debug, Self::Stock];

    /// Its word on the command line and in experiment files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Toll => "toll",
            Self::Debug => "toll-debug",
            Self::Stock => "stock",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.word() == word)
    }
}

/// A kernel that a guest can boot: the content of `kernel.json`, with paths that
/// are relative there and absolute here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    pub variant: Variant,
    /// As `uname -r` has it.
    pub release: String,
    /// The image to boot (bzImage).
    pub image: PathBuf,
    /// The configuration it was built with.
    pub config: PathBuf,
    /// This project's own modules, `.ko`.
    pub modules: Vec<PathBuf>,
    /// Modules, uncompressed, that an initramfs must insert before a disk or a
    /// console is there, in this order; empty where they are built in.
    pub boot_modules: Vec<PathBuf>,
    /// The name of its cache entry: variant and a hash of all that it was made
    /// from.
    pub key: String,
    /// A hash of what this project gave to it: configuration, patches, modules.
    pub recipe: String,
    /// Packages and their versions, such as `linux-source-6.12 6.12.117-1`.
    pub source: String,
    /// The compiler's own name and version.
    pub compiler: String,
    /// File names of the patches, in their order.
    pub patches: Vec<String>,
    /// When it was completed, RFC 3339 in UTC.
    pub built_at: String,
    /// Its cache entry.
    #[serde(default)]
    pub directory: PathBuf,
}

/// The newest kernel of a variant that is complete in the cache and made from
/// what this program holds; if there is none, the command that makes it.
pub fn find(variant: Variant) -> Result<Kernel, String> {
    find_in(&paths::kernels(), variant, &sources::recipe(variant))
}

fn find_in(cache: &Path, variant: Variant, recipe: &str) -> Result<Kernel, String> {
    let word = variant.word();
    let of_variant: Vec<Kernel> = cache::entries(cache)
        .into_iter()
        .filter_map(|(_, kernel)| kernel.ok())
        .filter(|kernel| kernel.variant == variant)
        .collect();
    let why = match of_variant.is_empty() {
        true => "it is not built",
        false => {
            "what is built was made from other patches, configuration or modules than this toll has"
        }
    };
    let command = match variant {
        Variant::Toll => "toll kernel build".to_owned(),
        _ => format!("toll kernel build {word}"),
    };
    of_variant
        .into_iter()
        .filter(|kernel| kernel.recipe == recipe)
        .max_by(|a, b| a.built_at.cmp(&b.built_at))
        .ok_or_else(|| format!("cannot use kernel {word}: {why}; run {command}"))
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
            "version": 1, "variant": "stock", "key": key, "recipe": recipe, "release": "6.1.0",
            "source": "linux-image 6.1", "compiler": "gcc 12", "patches": [], "image": "bzImage",
            "config": "config", "modules": [], "boot_modules": [], "built_at": built_at,
        });
        std::fs::write(directory.join("kernel.json"), record.to_string()).unwrap();
    }

    #[test]
    fn the_newest_kernel_of_todays_recipe_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let find = || find_in(cache.path(), Variant::Stock, "today");
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
        assert!(find_in(cache.path(), Variant::Toll, "today").is_err());
    }

    #[test]
    fn every_variant_has_a_word_of_its_own_which_records_use_too() {
        for variant in Variant::ALL {
            assert_eq!(Variant::from_word(variant.word()), Some(variant));
            let json = serde_json::to_value(variant).unwrap();
            assert_eq!(json, variant.word());
        }
    }
}
