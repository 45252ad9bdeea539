//! Everything that goes into a kernel, as it is now.
//!
//! Names, paths and texts from others never reach make: a kernel's inputs are laid out below
//! the cache under names that this program chooses, and the Makefile reads only those.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hmac_sha256::Hash;
use toll_system::Cannot;
use toll_system::bounded::{open_bounded, read_bounded};
use toll_system::process::git;

use super::definition::{Definition, lineage, patches_of};
use super::layout::{self, Content};
use super::{fragment, paths, sources};

/// Largest patch or configuration fragment.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Largest image, list of modules or source of a module.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The directory of the inputs, as the Makefile names it.
const DIRECTORY: &str = "$(INPUTS)";

/// What goes into a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    /// A hash of everything, as computed by the Makefile's target `recipe`.
    pub recipe: String,
    /// Settings for the Makefile; empty for a built-in kernel.
    pub settings: String,
    /// Files, by the names that the settings give them.
    files: Vec<(String, Input)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Input {
    Text(Vec<u8>),
    Place(PathBuf),
}

impl Inputs {
    /// Lays out the settings and the files that they name, and returns the directory; `None`
    /// for a built-in kernel.
    pub fn lay_out(&self) -> Result<Option<PathBuf>, String> {
        if self.settings.is_empty() {
            return Ok(None);
        }
        let mut files = vec![("settings.mk", Content::Bytes(self.settings.as_bytes()))];
        files.extend(self.files.iter().map(|(name, input)| {
            let content = match input {
                Input::Text(bytes) => Content::Bytes(bytes),
                Input::Place(path) => Content::LinkTo(path),
            };
            (name.as_str(), content)
        }));
        let directory = paths::kernel_work()?.join("inputs").make()?;
        let laid_out = layout::lay_out(directory.path(), &files);
        laid_out.map(Some).cannot("make", directory.path())
    }
}

/// Returns the inputs of a kernel. The first result is kept as long as this process
/// lives: a file that is edited meanwhile only counts for the next process.
///
/// # Errors
/// If there is no such kernel, or a file of it is missing or wrong.
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
                files: Vec::new(),
            });
        }
        None => {
            settings.inherit(&root)?;
            recipe.add_built_in(&root);
        }
        Some(definition) if definition.image.is_some() => {
            image_root(definition, &root, &mut settings, &mut recipe)?;
        }
        Some(definition) => tree_root(definition, &mut settings, &mut recipe)?,
    }
    let own = lineage.iter().rev().filter_map(|(_, one)| one.as_ref());
    for definition in root_definition.iter().chain(own) {
        add_own(definition, &mut settings, &mut recipe)?;
    }
    let recipe = recipe.hash();
    settings.set("RECIPE", &recipe)?;
    Ok(Inputs {
        recipe,
        settings: settings.text(),
        files: settings.files,
    })
}

/// Adds a definition's patches, fragments and modules.
fn add_own(
    definition: &Definition,
    settings: &mut Settings,
    recipe: &mut sources::Recipe,
) -> Result<(), String> {
    for path in &definition.patches {
        for patch in patches_of(path)? {
            let content = text_of(&patch)?;
            recipe.patch(&patch, &content);
            settings.add("PATCHES", &patch, Input::Text(content));
        }
    }
    for config in &definition.configs {
        let content = config_of(config)?;
        recipe.config(config, &content);
        settings.add("CONFIGS", config, Input::Text(content));
    }
    for module in &definition.modules {
        for file in module_files(module)? {
            recipe.trial_file(&file, file_hash(&file)?);
        }
        settings.add("TRIAL_MODULES", module, Input::Place(module.clone()));
    }
    Ok(())
}

/// Adds an image, which is not based on another kernel.
fn image_root(
    definition: &Definition,
    root: &str,
    settings: &mut Settings,
    recipe: &mut sources::Recipe,
) -> Result<(), String> {
    let image = definition.image.as_ref().expect("the caller checked it");
    settings.set("ROOT", root)?;
    settings.set("RELEASE", &release_of(image)?)?;
    settings.own("BOOT_MODULES", "$(BOOT_MODULES_stock)".into());
    settings.add("IMAGE_FILE", image, Input::Place(image.clone()));
    recipe.image_file(image, file_hash(image)?);
    if let Some(modules) = &definition.image_modules {
        settings.add("IMAGE_MODULES", modules, Input::Place(modules.clone()));
        let list = modules.join("modules.dep");
        recipe.image_file(&list, file_hash(&list)?);
    }
    Ok(())
}

/// Adds a repository, which is not based on another kernel.
fn tree_root(
    definition: &Definition,
    settings: &mut Settings,
    recipe: &mut sources::Recipe,
) -> Result<(), String> {
    let tree = definition.tree.as_ref();
    let tree = tree.ok_or("its definition names no base, no tree and no image")?;
    let repository = git(tree, &["rev-parse", "--absolute-git-dir"])?;
    let revision = definition.revision.as_deref().unwrap_or("HEAD");
    let commit = git(
        tree,
        &["rev-parse", "--verify", &format!("{revision}^{{commit}}")],
    )?;
    let epoch = git(tree, &["show", "--no-patch", "--format=%ct", &commit])?;
    // One build tree for a repository, however many kernels its commits are.
    let root = format!("git-{}", sources::short_hash(repository.as_bytes()));
    settings.set("ROOT", &root)?;
    settings.set("REVISION", &commit)?;
    settings.set("EPOCH", &epoch)?;
    settings.own("OBJECTS", "$(OBJECTS_toll)".into());
    settings.own("CONFIGS", "$(CONFIGS_toll)".into());
    settings.add("GIT", Path::new("git"), Input::Place(repository.into()));
    recipe.revision = commit;
    recipe.add_configs("toll");
    recipe.add_modules();
    if definition.revision.is_none() {
        let changes = git(
            tree,
            &["diff", "--no-renames", "--no-ext-diff", "--binary", "HEAD"],
        )?;
        if !changes.is_empty() {
            let name = Path::new("what is not committed");
            let changes = format!("{changes}\n").into_bytes();
            recipe.patch(name, &changes);
            settings.add("PATCHES", name, Input::Text(changes));
        }
    }
    Ok(())
}

/// Reads and checks a configuration fragment.
///
/// # Errors
/// If it cannot be read, or has a line that sets nothing or more than an option.
pub(super) fn config_of(path: &Path) -> Result<Vec<u8>, String> {
    let content = text_of(path)?;
    fragment::check(&content).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(content)
}

/// Reads a patch or fragment.
fn text_of(path: &Path) -> Result<Vec<u8>, String> {
    read_at_most(path, TEXT_BYTES_MAX)
}

/// Lists the sources of a module, without what was built next to them.
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

/// Reads the release of an image (Documentation/arch/x86/boot.rst, `kernel_version`).
pub(super) fn release_of(image: &Path) -> Result<String, String> {
    let wrong = |why: &str| {
        format!(
            "{} is not an image of Linux for x86: {why}",
            image.display()
        )
    };
    let file = open_bounded(image, FILE_BYTES_MAX).map_err(|error| wrong(&error.to_string()))?;
    let read = |offset: u64, bytes: &mut [u8]| file.read_exact_at(bytes, offset);
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
    if release.is_empty() {
        return Err(wrong("it does not name its release"));
    }
    check_word(release).map_err(|why| wrong(&format!("its release {why}")))?;
    Ok(release.to_owned())
}

/// Refuses a word that has another meaning in make, a shell or a path.
fn check_word(word: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    if word.chars().all(is_plain) && !word.is_empty() && !word.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(format!(
        "{word:?} is not a word of letters, digits and any of ._+~-"
    ))
}

/// The Makefile's variables of one kernel, and the files that they name.
struct Settings {
    name: String,
    values: BTreeMap<&'static str, Vec<String>>,
    files: Vec<(String, Input)>,
}

impl Settings {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            values: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    /// Sets a variable to a word, which may come from an untrusted source.
    fn set(&mut self, variable: &'static str, word: &str) -> Result<(), String> {
        check_word(word)?;
        self.own(variable, word.to_owned());
        Ok(())
    }

    /// Sets a variable to a make expression that this program wrote.
    fn own(&mut self, variable: &'static str, text: String) {
        self.values.insert(variable, vec![text]);
    }

    /// Adds a file under a number. `NUMBER.name` holds its original name.
    fn add(&mut self, variable: &'static str, path: &Path, input: Input) {
        let number = self.files.len();
        let place = format!("{number:04}");
        let values = self.values.entry(variable).or_default();
        values.push(format!("{DIRECTORY}/{place}"));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.replace(char::is_control, "?");
        self.files
            .push((format!("{place}.name"), Input::Text(name.into_bytes())));
        self.files.push((place, input));
    }

    /// Takes over the settings of a built-in kernel.
    fn inherit(&mut self, base: &str) -> Result<(), String> {
        for variable in [
            "SOURCE",
            "PATCHES",
            "CONFIGS",
            "OBJECTS",
            "IMAGE",
            "HEADERS",
            "SUITE",
            "BOOT_MODULES",
        ] {
            self.own(variable, format!("$({variable}_{base})"));
        }
        self.set("ROOT", base)
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
    Ok(Hash::hash(&read_at_most(path, FILE_BYTES_MAX)?))
}

fn read_at_most(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = open_bounded(path, bytes_max).and_then(|file| read_bounded(file, bytes_max));
    read.map_err(|error| {
        format!(
            "{}: {error}; define it again with toll kernel add",
            path.display()
        )
    })
}
