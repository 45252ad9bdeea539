//! Puts the kernel sources of the tree into the program: an installed `toll`
//! has no tree to read them from.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The directories below `kernel/` from which kernels and modules are made.
const DIRECTORIES: &[&str] = &["configs", "modules", "patches", "common", "uapi"];

/// What building a module by hand leaves beside its sources.
const LEAVINGS: &[&str] = &[
    ".a",
    ".ko",
    ".mod",
    ".mod.c",
    ".o",
    "Module.symvers",
    "modules.order",
];

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo says where");
    let kernel = Path::new(&manifest).join("../../kernel");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", kernel.display());

    let mut files = Vec::new();
    for directory in DIRECTORIES {
        collect(&kernel.join(directory), &mut files);
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

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("the tree can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_left = name.starts_with('.') || LEAVINGS.iter().any(|left| name.ends_with(left));
        if path.is_dir() {
            collect(&path, found);
        } else if !is_left {
            found.push(path);
        }
    }
}
