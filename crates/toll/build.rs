//! Puts the kernel sources of the tree into the program: an installed `toll`
//! has no tree to read them from.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a build needs of each directory below `kernel/`; what else lies there
/// (documents, tests, the leavings of a build by hand) changes no kernel.
const WANTED: &[(&str, &[&str])] = &[
    ("configs", &[".config"]),
    ("patches", &[".patch"]),
    ("modules", &[".c", ".h", "Makefile", "Kbuild"]),
    ("uapi", &[".h"]),
    ("shared", &[".c", ".h"]),
];

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo says where");
    let kernel = Path::new(&manifest).join("../../kernel");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", kernel.display());

    let mut files = Vec::new();
    for (directory, endings) in WANTED {
        collect(&kernel.join(directory), endings, &mut files);
    }
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&kernel).expect("it lies below");
        let name = name.to_str().expect("names are UTF-8");
        let path = file.to_str().expect("the tree's path is UTF-8");
        writeln!(code, "({name:?}, include_bytes!({path:?}).as_slice()),").expect("text grows");
    }
    code.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("Cargo says where");
    std::fs::write(Path::new(&out).join("kernel_files.rs"), code).expect("OUT_DIR takes files");
}

fn collect(directory: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("the tree can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A module build leaves NAME.mod.c beside the sources.
        let is_made = name.ends_with(".mod.c");
        if path.is_dir() {
            collect(&path, endings, found);
        } else if !is_made && endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}
