//! Kernels that users define: one file each, by name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toll_system::paths;
use toll_system::process::git;

use super::user_files::{config_of, patches_of, release_of};
use crate::spec::{KernelName, suggestion};

/// The built-in kernels, in the order in which they are listed. The first is Debian's source with
/// this project's patches, configured for guests. The second adds the kernel's own checks (KASAN,
/// lockdep), for tests. The third is this system's Debian kernel, unchanged. The kernels of
/// `SUITES` follow.
pub const BUILT_IN: [&str; 7] = [
    "toll",
    "toll-debug",
    "stock",
    "bullseye",
    "bookworm",
    "trixie",
    "sid",
];

/// Unchanged kernels of Debian's suites, from the oldest to the newest suite. No module can be
/// built for these kernels.
const SUITES: &[&str] = BUILT_IN.split_at(3).1;

/// Whether a built-in kernel is compiled here.
pub(super) fn is_from_source(name: &str) -> bool {
    name != "stock" && !SUITES.contains(&name)
}

/// Whether modules can be built for a built-in kernel.
pub(super) fn takes_modules(name: &str) -> bool {
    !SUITES.contains(&name)
}

/// What a user's kernel is made of. Files are read at each use, so an edited
/// patch needs no second `toll kernel add`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definition {
    /// The kernel that the patches, fragments and modules are applied to; `None` with a tree or an
    /// image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<KernelName>,
    /// A git repository of Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<PathBuf>,
    /// The revision to build. `None` for the tracked files as they are in the work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// A built image (bzImage).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// The modules of `image`, as `make modules_install` installs them: the directory with
    /// `modules.dep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_modules: Option<PathBuf>,
    /// Patches, and directories of patches, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PathBuf>,
    /// Configuration fragments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<PathBuf>,
    /// Kbuild directories of modules that are loaded for each trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<PathBuf>,
}

/// The directory of the definitions.
fn directory() -> Result<PathBuf, String> {
    paths::kernel_definitions()?.path()
}

fn path_of(name: &KernelName) -> Result<PathBuf, String> {
    Ok(directory()?.join(format!("{name}.toml")))
}

/// Lists all names, the built-in ones first.
pub fn names() -> Vec<String> {
    // A directory that is refused is reported when one of its kernels is used.
    let entries = directory().map(std::fs::read_dir);
    let own: BTreeSet<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_definition = path.extension().is_some_and(|end| end == "toml");
            let name: KernelName = path.file_stem()?.to_str()?.parse().ok()?;
            is_definition.then(|| name.into())
        })
        .collect();
    BUILT_IN.map(str::to_owned).into_iter().chain(own).collect()
}

/// Refuses a name that no kernel has.
///
/// # Errors
/// Names the kernel that was probably meant.
pub fn require(name: &str) -> Result<(), String> {
    let names = names();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let meant = suggestion(name, names.iter().map(String::as_str));
    Err(format!(
        "cannot use kernel {name}: there is no such kernel{meant}; toll kernel list shows all, \
         toll kernel add makes one"
    ))
}

/// Loads a user's definition; `None` for a built-in kernel.
///
/// # Errors
///
/// If there is no such kernel, or its definition cannot be read.
pub fn load(name: &str) -> Result<Option<Definition>, String> {
    if BUILT_IN.contains(&name) {
        return Ok(None);
    }
    let directory = directory()?;
    require(name)?;
    let path = directory.join(format!("{name}.toml"));
    let wrong = |why: &dyn std::fmt::Display| format!("cannot use {}: {why}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let definition: Definition = toml::from_str(&text).map_err(|error| wrong(&error))?;
    definition.check_form().map_err(|why| wrong(&why))?;
    Ok(Some(definition))
}

/// Lists a kernel and the kernels that it is based on, down to the last.
///
/// # Errors
///
/// If a kernel is missing, or kernels are based on each other in a cycle.
pub fn lineage(name: &str) -> Result<Vec<(String, Option<Definition>)>, String> {
    let mut found: Vec<(String, Option<Definition>)> = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(name) = next.take() {
        if found.iter().any(|(known, _)| *known == name) {
            return Err(format!("cannot use kernel {name}: it is based on itself"));
        }
        let definition = load(&name)?;
        next = definition
            .as_ref()
            .and_then(|one| one.base.clone())
            .map(String::from);
        found.push((name, definition));
    }
    Ok(found)
}

/// Saves a definition, after all checks that are possible before a build.
///
/// # Errors
///
/// If it does not define a kernel, or the name is taken and `replaces` is false.
pub fn add(name: &KernelName, definition: &Definition, replaces: bool) -> Result<PathBuf, String> {
    let cannot = |why: &str| format!("cannot add kernel {name}: {why}");
    if BUILT_IN.contains(&name.as_str()) {
        return Err(cannot("toll has a kernel of this name; choose another"));
    }
    let path = path_of(name).map_err(|why| cannot(&why))?;
    if path.exists() && !replaces {
        return Err(cannot(
            "it already exists; choose another name, or replace it with --replace",
        ));
    }
    definition.check(name).map_err(|why| cannot(&why))?;
    let text = toml::to_string_pretty(definition).expect("plain data");
    paths::kernel_definitions()?.make()?;
    let write = || {
        let new = path.with_extension("new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &path)
    };
    write().map_err(|error| cannot(&format!("{}: {error}", path.display())))?;
    Ok(path)
}

/// Removes a definition. Kernels that were built from it are stale afterwards.
///
/// # Errors
///
/// If there is no such definition, or another kernel is based on it.
pub fn remove(name: &KernelName) -> Result<(), String> {
    let cannot = |why: &str| format!("cannot remove kernel {name}: {why}");
    if load(name.as_str())?.is_none() {
        return Err(cannot("it is built into toll"));
    }
    for other in names() {
        let base = load(&other)?.and_then(|definition| definition.base);
        if base.as_ref() == Some(name) {
            return Err(cannot(&format!(
                "{other} is based on it; remove {other} first"
            )));
        }
    }
    let path = path_of(name).map_err(|why| cannot(&why))?;
    std::fs::remove_file(path).map_err(|error| cannot(&error.to_string()))
}

impl Definition {
    /// Checks the fields, since anybody may have written the file.
    fn check_form(&self) -> Result<(), String> {
        let roots = [
            self.base.is_some(),
            self.tree.is_some(),
            self.image.is_some(),
        ];
        if roots.iter().filter(|is_there| **is_there).count() != 1 {
            return Err("it needs one of base, tree and image; define it again".into());
        }
        for path in self.paths() {
            if !path.is_absolute() || path.to_str().is_none() {
                return Err(format!(
                    "{path:?} is not an absolute path in UTF-8; move or rename it"
                ));
            }
        }
        let is_wrong = |revision: &str| {
            revision.starts_with('-') || revision.is_empty() || revision.contains(char::is_control)
        };
        match &self.revision {
            Some(revision) if is_wrong(revision) => Err(format!(
                "{revision:?} is not a revision; name a commit, a tag or a branch"
            )),
            _ => Ok(()),
        }
    }

    fn check(&self, name: &KernelName) -> Result<(), String> {
        self.check_form()?;
        if let Some(base) = &self.base {
            let below = lineage(base.as_str())?;
            if below.iter().any(|(other, _)| other == name.as_str()) {
                return Err(format!("{base} is based on it"));
            }
            let root = below.last().expect("a lineage has its own name");
            let is_image = root.1.as_ref().is_some_and(|one| one.image.is_some());
            let takes_nothing = self.patches.is_empty() && self.configs.is_empty();
            if (is_image || !is_from_source(&root.0)) && !takes_nothing {
                return Err(format!(
                    "{base} is not built from source, so it takes no patches and no fragments; \
                     choose another --base"
                ));
            }
            if (is_image || !takes_modules(&root.0)) && !self.modules.is_empty() {
                return Err(format!(
                    "{base} is an image, for which no module can be built"
                ));
            }
        }
        for patch in &self.patches {
            patches_of(patch)?;
        }
        for config in &self.configs {
            require_file(config, "a configuration fragment")?;
            config_of(config)?;
        }
        for module in &self.modules {
            let has = |file: &str| module.join(file).is_file();
            if !has("Kbuild") && !has("Makefile") {
                return Err(format!(
                    "{} has no Kbuild and no Makefile; name the directory of a module",
                    module.display()
                ));
            }
        }
        if let Some(tree) = &self.tree {
            check_tree(tree, self.revision.as_deref().unwrap_or("HEAD"))?;
        }
        if let Some(image) = &self.image {
            require_file(image, "an image")?;
            release_of(image)?;
        }
        if let Some(modules) = &self.image_modules {
            require_file(&modules.join("modules.dep"), "made by depmod")?;
        }
        Ok(())
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.patches, &self.configs, &self.modules];
        let single = [&self.tree, &self.image, &self.image_modules];
        let files = files.into_iter().flatten();
        files
            .chain(single.into_iter().flatten())
            .map(PathBuf::as_path)
    }
}

/// Checks that a directory is a git repository of Linux that has a revision.
fn check_tree(tree: &Path, revision: &str) -> Result<(), String> {
    git(tree, &["rev-parse", "--git-dir"])?;
    let has = |object: &str| git(tree, &["rev-parse", "--quiet", "--verify", object]).is_ok();
    if !has(&format!("{revision}^{{commit}}")) {
        return Err(format!(
            "{} has no commit {revision}; name a commit, a tag or a branch of it",
            tree.display()
        ));
    }
    if has(&format!("{revision}:arch/x86/Kconfig")) {
        Ok(())
    } else {
        Err(format!(
            "{} has no arch/x86/Kconfig at {revision}; name a git repository of Linux",
            tree.display()
        ))
    }
}

fn require_file(path: &Path, what: &str) -> Result<(), String> {
    if path.is_file() {
        return Ok(());
    }
    Err(format!(
        "{} is not a file; it has to be {what}",
        path.display()
    ))
}
