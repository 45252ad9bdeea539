//! The files of `kernel/`, which are compiled into the program. An installed `toll` has no source
//! tree.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;

use super::definition::{is_from_source, takes_modules};
use super::hash::{hex, short_hash};
use super::layout::{self, Content};

/// Files by their path below `kernel/`, in the order of the paths.
type Files = &'static [(&'static str, &'static [u8])];

const FILES: Files = include!(concat!(env!("OUT_DIR"), "/kernel_files.rs"));

pub(super) fn makefile() -> &'static str {
    text_of("Makefile")
}

fn text_of(path: &str) -> &'static str {
    let file = FILES.iter().find(|(known, _)| *known == path);
    let text = file.and_then(|(_, content)| std::str::from_utf8(content).ok());
    text.expect("the program carries the file")
}

/// Environment variables that a build keeps, as its scripts name them.
pub(super) fn kept_environment() -> impl Iterator<Item = &'static str> {
    let mut lines = text_of("scripts/functions.sh").lines();
    let names = lines.find_map(|line| line.strip_prefix("KEPT='")?.strip_suffix('\''));
    names.expect("the script names them").split(' ')
}

/// The input of a kernel's hash: configurations, patches, modules, in this order. The Makefile's
/// target `recipe` computes the same hash for a built-in kernel.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    /// The commit of a kernel from a repository.
    pub revision: String,
    configs: String,
    patches: String,
    modules: String,
    trial_files: String,
    image: String,
}

impl Recipe {
    /// Adds this program's files for a built-in kernel.
    pub fn add_built_in(&mut self, name: &str) {
        self.add_configs(name);
        if is_from_source(name) {
            add_own(&mut self.patches, |path| path.starts_with("patches/"));
        }
        if takes_modules(name) {
            self.add_modules();
        }
    }

    pub fn add_configs(&mut self, name: &str) {
        let configs: &[&str] = match name {
            "toll" => &["configs/guest.config"],
            "toll-debug" => &["configs/guest.config", "configs/debug.config"],
            _ => &[],
        };
        for config in configs {
            add_own(&mut self.configs, |path| path == *config);
        }
    }

    pub fn add_modules(&mut self) {
        add_own(&mut self.modules, |path| {
            let (directory, _) = path.split_once('/').unwrap_or_default();
            ["common", "modules", "uapi"].contains(&directory)
        });
    }

    pub fn config(&mut self, path: &Path, content: &[u8]) {
        add(&mut self.configs, path, Hash::hash(content));
    }

    pub fn patch(&mut self, name: &Path, content: &[u8]) {
        add(&mut self.patches, name, Hash::hash(content));
    }

    pub fn trial_file(&mut self, path: &Path, hash: [u8; 32]) {
        add(&mut self.trial_files, path, hash);
    }

    pub fn image_file(&mut self, path: &Path, hash: [u8; 32]) {
        add(&mut self.image, path, hash);
    }

    pub fn hash(&self) -> String {
        let method = makefile()
            .lines()
            .find_map(|line| line.strip_prefix("METHOD := "))
            .expect("the Makefile names its method");
        let first = format!("{method} {}", self.revision);
        let all = [
            first.trim_end(),
            "\n",
            &self.configs,
            &self.patches,
            &self.modules,
            &self.trial_files,
            &self.image,
        ];
        short_hash(all.concat().as_bytes())
    }
}

/// Adds lines as sha256sum prints them, for files of this program.
fn add_own(lines: &mut String, is_it: impl Fn(&str) -> bool) {
    for (path, content) in FILES.iter().filter(|(path, _)| is_it(path)) {
        writeln!(lines, "{}  {path}", hex(&Hash::hash(content))).expect("a string grows");
    }
}

/// Adds a line for a user's file. The path is escaped: with a line break in a path, two different
/// lists of files could look the same.
fn add(lines: &mut String, path: &Path, hash: [u8; 32]) {
    writeln!(lines, "{}  {path:?}", hex(&hash)).expect("a string grows");
}

/// Lays out the files of `kernel/` below a directory.
pub(super) fn lay_out(place: &Path) -> io::Result<PathBuf> {
    let files = FILES.iter();
    let files: Vec<_> = files
        .map(|(path, content)| (*path, Content::Bytes(content)))
        .collect();
    layout::lay_out(place, &files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{BUILT_IN, inputs};
    use super::*;
    use toll_system::process;

    #[test]
    fn the_makefile_has_the_same_recipes_each_another() {
        let directory = tempfile::tempdir().unwrap();
        let sources = lay_out(directory.path()).unwrap();
        assert_eq!(lay_out(directory.path()).unwrap(), sources);
        let recipes = BUILT_IN.map(|name| inputs::find(name).unwrap().recipe.clone());
        for (name, recipe) in BUILT_IN.into_iter().zip(&recipes) {
            let name = format!("NAME={name}");
            let arguments = ["-s", "-C", sources.to_str().unwrap(), &name, "recipe"];
            let said = process::run("make", &arguments.map(str::as_ref)).unwrap();
            assert_eq!(said, *recipe, "{name}");
        }
        // The kernels of all suites have the same recipe: nothing of ours goes into them.
        let different: BTreeSet<&String> = recipes.iter().collect();
        assert_eq!(different.len(), 4);
    }
}
