//! The files of `kernel/`. They are compiled into the program, since an installed
//! `toll` has no tree to read them from.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;

use super::Variant;

/// Files by their path below `kernel/`, in the order of the paths.
type Files = &'static [(&'static str, &'static [u8])];

const FILES: Files = include!(concat!(env!("OUT_DIR"), "/kernel_files.rs"));

pub(super) fn makefile() -> &'static str {
    let file = FILES.iter().find(|(path, _)| *path == "Makefile");
    let text = file.and_then(|(_, content)| std::str::from_utf8(content).ok());
    text.expect("the program carries kernel/Makefile")
}

/// The hash of all that this program gives to a variant, as the target `recipe` of
/// the Makefile has it.
pub(super) fn recipe(variant: Variant) -> String {
    let configs: &[&str] = match variant {
        Variant::Toll => &["configs/guest.config"],
        Variant::Debug => &["configs/guest.config", "configs/debug.config"],
        Variant::Stock => &[],
    };
    let below = |directories: &'static [&str]| {
        FILES.iter().filter(move |(path, _)| {
            let (directory, _) = path.split_once('/').unwrap_or_default();
            directories.contains(&directory)
        })
    };
    let configs = configs
        .iter()
        .filter_map(|config| FILES.iter().find(|(path, _)| path == config));
    let patches = below(&["patches"]).filter(|_| variant != Variant::Stock);
    let modules = below(&["common", "modules", "uapi"]);
    let method = makefile()
        .lines()
        .find_map(|line| line.strip_prefix("METHOD := "))
        .expect("the Makefile names its method");
    let mut list = format!("{method}\n");
    for (path, content) in configs.chain(patches).chain(modules) {
        writeln!(list, "{}  {path}", hex(&Hash::hash(content))).expect("a string grows");
    }
    hex(&Hash::hash(list.as_bytes())[..8])
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
    use super::*;
    use crate::environment::process;

    #[test]
    fn the_makefile_has_the_same_recipes_each_another() {
        let directory = tempfile::tempdir().unwrap();
        let sources = lay_out(directory.path()).unwrap();
        assert_eq!(lay_out(directory.path()).unwrap(), sources);
        let recipes = Variant::ALL.map(recipe);
        for (variant, recipe) in Variant::ALL.into_iter().zip(&recipes) {
            let name = format!("NAME={}", variant.word());
            let arguments = ["-s", "-C", sources.to_str().unwrap(), &name, "recipe"];
            let said = process::run("make", &arguments.map(str::as_ref)).unwrap();
            assert_eq!(said, *recipe, "{name}");
        }
        assert!(recipes[0] != recipes[1] && recipes[1] != recipes[2] && recipes[0] != recipes[2]);
    }
}
