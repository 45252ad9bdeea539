//! All that goes into a kernel, as it is at the moment.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hmac_sha256::Hash;

use super::definition::{Definition, lineage, patches_of};
use super::{paths, sources};
use crate::environment::process::git;

/// What goes into a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    /// A hash of it all, as the target `recipe` of the Makefile has it.
    pub recipe: String,
    /// Settings for the Makefile; none for a built-in kernel.
    pub settings: String,
}

/// What goes into the kernel of a name. The first answer holds as long as this process
/// lives: a file that is edited meanwhile is for the next one.
///
/// # Errors
/// If there is no such kernel, or a file of it is not there any more.
pub(super) fn of(name: &str) -> Result<Arc<Inputs>, String> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Inputs>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(|poison| poison.into_inner());
    if let Some(inputs) = known.get(name) {
        return Ok(inputs.clone());
    }
    let found = find(name).map_err(|why| format!("cannot use kernel {name}: {why}"))?;
    let inputs = Arc::new(found);
    known.insert(name.to_owned(), inputs.clone());
    Ok(inputs)
}

fn find(name: &str) -> Result<Inputs, String> {
    let mut lineage = lineage(name)?;
    let (root, root_definition) = lineage.pop().expect("a lineage has its own name");
    let mut settings = Settings::new(name);
    let mut recipe = sources::Recipe::default();
    match &root_definition {
        None if lineage.is_empty() => {
            recipe.add_built_in(&root);
            return Ok(Inputs {
                recipe: recipe.hash(),
                settings: String::new(),
            });
        }
        None => {
            settings.inherit(&root);
            recipe.add_built_in(&root);
        }
        Some(definition) => own_root(definition, &root, &mut settings, &mut recipe)?,
    }
    let own = lineage.iter().rev().filter_map(|(_, one)| one.as_ref());
    for definition in root_definition.iter().chain(own) {
        for path in &definition.patches {
            for patch in patches_of(path)? {
                settings.add("PATCHES", &patch);
                recipe.patch(&patch)?;
            }
        }
        for config in &definition.configs {
            settings.add("CONFIGS", config);
            recipe.config(config)?;
        }
        for module in &definition.modules {
            settings.add("TRIAL_MODULES", module);
            for file in module_files(module)? {
                settings.add("TRIAL_FILES", &file);
                recipe.trial_file(&file)?;
            }
        }
    }
    Ok(Inputs {
        recipe: recipe.hash(),
        settings: settings.text(),
    })
}

/// A kernel that is based on no other: a repository, or an image.
fn own_root(
    definition: &Definition,
    root: &str,
    settings: &mut Settings,
    recipe: &mut sources::Recipe,
) -> Result<(), String> {
    if let Some(image) = &definition.image {
        settings.set("ROOT", root);
        settings.set("RELEASE", &release_of(image)?);
        settings.set("BOOT_MODULES", "$(BOOT_MODULES_stock)");
        settings.add("IMAGE_FILE", image);
        recipe.image(image)?;
        if let Some(modules) = &definition.image_modules {
            settings.add("IMAGE_MODULES", modules);
        }
        return Ok(());
    }
    let tree = definition.tree.as_ref();
    let tree = tree.ok_or("its definition names no base, no tree and no image")?;
    let repository = git(tree, &["rev-parse", "--absolute-git-dir"])?;
    let revision = definition.revision.as_deref().unwrap_or("HEAD");
    let commit = git(
        tree,
        &["rev-parse", "--verify", &format!("{revision}^{{commit}}")],
    )?;
    let epoch = git(tree, &["show", "--no-patch", "--format=%ct", &commit])?;
    // One build tree for a repository, however many of its commits have a name.
    let root = format!("git-{}", sources::short_hash(repository.as_bytes()));
    settings.set("ROOT", &root);
    settings.set("GIT", &repository);
    settings.set("REVISION", &commit);
    settings.set("EPOCH", &epoch);
    settings.set("OBJECTS", "$(OBJECTS_toll)");
    settings.set("CONFIGS", "$(CONFIGS_toll)");
    recipe.revision = commit;
    recipe.add_configs("toll");
    recipe.add_modules();
    if definition.revision.is_none() {
        let changes = git(
            tree,
            &["diff", "--no-renames", "--no-ext-diff", "--binary", "HEAD"],
        )?;
        if !changes.is_empty() {
            let file = keep_changes(&root, &changes).map_err(|error| error.to_string())?;
            settings.add("PATCHES", &file);
            recipe.patch(&file)?;
        }
    }
    Ok(())
}

/// Changes that are not committed become a patch, named by its content.
fn keep_changes(root: &str, changes: &str) -> io::Result<PathBuf> {
    let directory = paths::kernel_work().join("changes");
    std::fs::create_dir_all(&directory)?;
    let hash = sources::short_hash(changes.as_bytes());
    let file = directory.join(format!("{root}-{hash}.patch"));
    std::fs::write(&file, format!("{changes}\n"))?;
    Ok(file)
}

/// Sources of a module, whatever was built beside them left out.
fn module_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = std::fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_source = [".c", ".h", ".S"].iter().any(|end| name.ends_with(end));
            let is_made = name.ends_with(".mod.c");
            if path.is_dir() {
                left.push(path);
            } else if is_source && !is_made || name == "Kbuild" || name == "Makefile" {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The release of an image (Documentation/arch/x86/boot.rst, `kernel_version`).
pub(super) fn release_of(image: &Path) -> Result<String, String> {
    let wrong = |why: &str| format!("{} is no image of Linux for x86: {why}", image.display());
    let read = |offset: u64, bytes: &mut [u8]| {
        let file = std::fs::File::open(image)?;
        file.read_exact_at(bytes, offset)
    };
    let mut magic = [0; 4];
    read(0x202, &mut magic).map_err(|error| wrong(&error.to_string()))?;
    if &magic != b"HdrS" {
        return Err(wrong("it has no boot header; name a bzImage"));
    }
    let mut pointer = [0; 2];
    read(0x20e, &mut pointer).map_err(|error| wrong(&error.to_string()))?;
    let mut text = [0; 128];
    read(0x200 + u64::from(u16::from_le_bytes(pointer)), &mut text)
        .map_err(|error| wrong(&error.to_string()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let release = text.split([' ', '\0']).next().unwrap_or_default();
    match release.is_empty() {
        true => Err(wrong("it does not tell its release")),
        false => Ok(release.to_owned()),
    }
}

/// Variables of the Makefile, each of a name.
struct Settings {
    name: String,
    values: BTreeMap<&'static str, Vec<String>>,
}

impl Settings {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            values: BTreeMap::new(),
        }
    }

    fn set(&mut self, variable: &'static str, value: &str) {
        self.values.insert(variable, vec![value.to_owned()]);
    }

    fn add(&mut self, variable: &'static str, path: &Path) {
        let values = self.values.entry(variable).or_default();
        values.push(path.display().to_string());
    }

    /// Takes what a built-in kernel has.
    fn inherit(&mut self, base: &str) {
        for variable in [
            "SOURCE",
            "PATCHES",
            "CONFIGS",
            "OBJECTS",
            "IMAGE",
            "HEADERS",
            "BOOT_MODULES",
        ] {
            self.set(variable, &format!("$({variable}_{base})"));
        }
        self.set("ROOT", base);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (variable, values) in &self.values {
            let (name, values) = (&self.name, values.join(" "));
            writeln!(text, "{variable}_{name} = {values}").expect("a string grows");
        }
        text
    }
}

/// The hash of a file, or why there is none.
pub(super) fn file_hash(path: &Path) -> Result<[u8; 32], String> {
    let content = std::fs::read(path).map_err(|error| {
        format!(
            "{}: {error}; define it anew with toll kernel add",
            path.display()
        )
    })?;
    Ok(Hash::hash(&content))
}
