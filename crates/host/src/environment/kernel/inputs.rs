//! The current content of everything that goes into a kernel.
//!
//! Names, paths and texts from others never reach make. This program lays out a kernel's inputs
//! below the cache under names of its own. The Makefile reads only these files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use toll_system::process::git;
use toll_system::{Cannot, paths};

use super::definition::{Definition, lineage};
use super::hash::short_hash;
use super::layout::{self, Content};
use super::sources;
use super::user_files::{
    check_word, config_of, file_hash, module_files, patches_of, release_of, text_of,
};

/// The directory of the inputs, as the Makefile names it.
const DIRECTORY: &str = "$(INPUTS)";

/// What goes into a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    /// A hash of all inputs, as the Makefile's target `recipe` computes it.
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
    /// Lays out the settings and the files that they name, and returns the directory; `None` for a
    /// built-in kernel.
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

/// Returns the inputs of a kernel. The first result is kept as long as this process lives: a file
/// that is edited meanwhile only counts for the next process.
///
/// # Errors
///
/// If there is no such kernel, or a file of the kernel is missing or wrong.
pub(super) fn find(name: &str) -> Result<Arc<Inputs>, String> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Inputs>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(|poison| poison.into_inner());
    if let Some(inputs) = known.get(name) {
        return Ok(inputs.clone());
    }
    let found = read(name).map_err(|why| format!("cannot use kernel {name}: {why}"))?;
    let inputs = Arc::new(found);
    known.insert(name.to_owned(), inputs.clone());
    Ok(inputs)
}

fn read(name: &str) -> Result<Inputs, String> {
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
    // A repository has one build tree, however many of its commits are kernels.
    let root = format!("git-{}", short_hash(repository.as_bytes()));
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
