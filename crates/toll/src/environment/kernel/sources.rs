//! The files of `kernel/`. They are compiled into the program, since an installed
//! `toll` has no tree to read them from.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;

use super::inputs::file_hash;

/// Files by their path below `kernel/`, in the order of the paths.
type Files = &'static [(&'static str, &'static [u8])];

const FILES: Files = include!(concat!(env!("OUT_DIR"), "/kernel_files.rs"));

pub(super) fn makefile() -> &'static str {
    let file = FILES.iter().find(|(path, _)| *path == "Makefile");
    let text = file.and_then(|(_, content)| std::str::from_utf8(content).ok());
    text.expect("the program carries kernel/Makefile")
}

/// What the hash of a kernel is made of, as the target `recipe` of the Makefile has it:
/// configurations, patches, modules, in this order.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    /// A commit, of a kernel from a repository.
    pub revision: String,
    configs: String,
    patches: String,
    modules: String,
    trial_files: String,
    image: String,
}

impl Recipe {
    /// What this program brings for a kernel of its own.
    pub fn add_built_in(&mut self, name: &str) {
        self.add_configs(name);
        if name != "stock" {
            add_own(&mut self.patches, |path| path.starts_with("patches/"));
        }
        self.add_modules();
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

    pub fn config(&mut self, path: &Path) -> Result<(), String> {
        add(&mut self.configs, path)
    }

    pub fn patch(&mut self, path: &Path) -> Result<(), String> {
        add(&mut self.patches, path)
    }

    pub fn trial_file(&mut self, path: &Path) -> Result<(), String> {
        add(&mut self.trial_files, path)
    }

    pub fn image(&mut self, path: &Path) -> Result<(), String> {
        add(&mut self.image, path)
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

/// Lines as sha256sum prints them, of files of this program.
fn add_own(lines: &mut String, is_it: impl Fn(&str) -> bool) {
    for (path, content) in FILES.iter().filter(|(path, _)| is_it(path)) {
        writeln!(lines, "{}  {path}", hex(&Hash::hash(content))).expect("a string grows");
    }
}

fn add(lines: &mut String, path: &Path) -> Result<(), String> {
    let hash = hex(&file_hash(path)?);
    writeln!(lines, "{hash}  {}", path.display()).expect("a string grows");
    Ok(())
}

/// Enough of a hash to tell things apart, in hexadecimal.
pub(super) fn short_hash(bytes: &[u8]) -> String {
    hex(&Hash::hash(bytes)[..8])
}

/// Lays out all files below a directory, with a name of their content, and gives
/// that directory. It gets its name when it is whole.
pub(super) fn lay_out(place: &Path) -> io::Result<PathBuf> {
    let mut digest = Hash::new();
    for (path, content) in FILES {
        digest.update(Hash::hash(path.as_bytes()));
        digest.update(Hash::hash(content));
    }
    let directory = place.join(hex(&digest.finalize()[..8]));
    if directory.is_dir() {
        return Ok(directory);
    }
    let partial = place.join(format!("partial-{}", std::process::id()));
    for (path, content) in FILES {
        let file = partial.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(&partial))?;
        std::fs::write(&file, content)?;
    }
    match std::fs::rename(&partial, &directory) {
        // Another process was faster.
        Err(_) if directory.is_dir() => std::fs::remove_dir_all(&partial)?,
        renamed => renamed?,
    }
    Ok(directory)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{BUILT_IN, inputs};
    use super::*;
    use crate::environment::process;

    #[test]
    fn the_makefile_has_the_same_recipes_each_another() {
        let directory = tempfile::tempdir().unwrap();
        let sources = lay_out(directory.path()).unwrap();
        assert_eq!(lay_out(directory.path()).unwrap(), sources);
        let recipes = BUILT_IN.map(|name| inputs::of(name).unwrap().recipe.clone());
        for (name, recipe) in BUILT_IN.into_iter().zip(&recipes) {
            let name = format!("NAME={name}");
            let arguments = ["-s", "-C", sources.to_str().unwrap(), &name, "recipe"];
            let said = process::run("make", &arguments.map(str::as_ref)).unwrap();
            assert_eq!(said, *recipe, "{name}");
        }
        assert!(recipes[0] != recipes[1] && recipes[1] != recipes[2] && recipes[0] != recipes[2]);
    }
}
