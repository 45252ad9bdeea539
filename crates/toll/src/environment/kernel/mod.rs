//! Kernels for guests, built from pinned sources or taken from Debian, and the
//! cache that holds them.
//!
//! A cache entry is a directory `$XDG_CACHE_HOME/toll/kernels/KEY/`. Its
//! `kernel.json` is written last, so that an entry with one is complete.

mod build;
mod build_lock;
mod clean;
mod config;
mod error;
mod image;
mod job;
mod module_order;
mod own_modules;
mod package;
mod patched;
mod recipe;
mod record;
mod requirement;
mod source_tree;
mod stock;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths;
pub use build::{Built, build, check_requirements};
pub use clean::{KernelState, ListedKernel, Removed, clean, list};
pub use config::ConfigDifference;
pub use error::BuildError;
pub use job::BuildObserver;
pub use record::{KERNEL_RECORD_VERSION, KernelRecord};

/// Which kernel a guest runs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
pub enum Variant {
    /// The pinned source with this project's patches, configured for guests.
    #[serde(rename = "toll")]
    #[value(name = "toll")]
    Toll,
    /// The same with the kernel's own checks (KASAN, lockdep): for tests, not
    /// for measuring.
    #[serde(rename = "toll-debug")]
    #[value(name = "toll-debug")]
    Debug,
    /// A kernel of Debian's as it is.
    #[serde(rename = "stock")]
    #[value(name = "stock")]
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

    /// The variant of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.word() == word)
    }
}

/// A kernel that a guest can boot, complete in the cache. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Which one.
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
    pub directory: PathBuf,
}

/// The newest kernel of a variant that is complete in the cache and made from
/// what this program holds: configuration, patches and modules.
///
/// # Errors
/// If there is none, with the command that makes it.
pub fn find(variant: Variant) -> Result<Kernel, String> {
    find_in(&paths::kernels(), variant, &recipe::hash(variant))
}

/// Where the configurations of two kernels differ, by the options' names.
///
/// # Errors
/// If one cannot be read.
pub fn config_differences(here: &Kernel, there: &Kernel) -> Result<Vec<ConfigDifference>, String> {
    Ok(config::differences(
        &config_text(here)?,
        &config_text(there)?,
    ))
}

/// How many options a kernel's configuration sets.
///
/// # Errors
/// If it cannot be read.
pub fn options_set(kernel: &Kernel) -> Result<usize, String> {
    Ok(config::options(&config_text(kernel)?).len())
}

fn config_text(kernel: &Kernel) -> Result<String, String> {
    std::fs::read_to_string(&kernel.config)
        .map_err(|error| format!("cannot read {}: {error}", kernel.config.display()))
}

fn find_in(cache: &Path, variant: Variant, recipe: &str) -> Result<Kernel, String> {
    let word = variant.word();
    let all = record::entries(cache);
    let of_variant = || {
        let complete = all.iter().filter_map(|entry| entry.kernel.as_ref().ok());
        complete.filter(|kernel| kernel.variant == variant)
    };
    let newest = of_variant()
        .filter(|kernel| kernel.recipe == recipe)
        .max_by(|a, b| a.built_at.cmp(&b.built_at));
    let command = match variant {
        Variant::Toll => "toll kernel build".to_owned(),
        _ => format!("toll kernel build {word}"),
    };
    match newest {
        Some(kernel) => Ok(kernel.clone()),
        None if of_variant().next().is_some() => Err(format!(
            "cannot use kernel {word}: what is built was made from other patches, configuration or \
             modules than this toll has; run {command}"
        )),
        None => Err(format!(
            "cannot use kernel {word}: it is not built; run {command}"
        )),
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
        let record = KernelRecord {
            version: KERNEL_RECORD_VERSION,
            variant: Variant::Stock,
            key: key.into(),
            recipe: recipe.into(),
            release: "6.1.0".into(),
            source: "linux-image 6.1".into(),
            compiler: "gcc 12".into(),
            patches: Vec::new(),
            image: "bzImage".into(),
            config: "config".into(),
            modules: Vec::new(),
            boot_modules: Vec::new(),
            built_at: built_at.into(),
        };
        record::write(&record, &directory).unwrap();
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

    #[test]
    fn what_is_carried_makes_a_hash_of_its_own_for_each_variant() {
        let hashes = Variant::ALL.map(recipe::hash);
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
        for variant in [Variant::Toll, Variant::Debug] {
            for fragment in recipe::fragments(variant) {
                let is_carried = recipe::FILES.iter().any(|(path, _)| path == fragment);
                assert!(is_carried, "{fragment}");
            }
        }
    }
}
