//! Embeds the kernel sources in the program, since an installed `toll` has no source tree.

use std::fmt::Write;
use std::path::Path;

/// Files below `kernel/` from which kernels and modules are made. A module that is built by hand
/// leaves other files there.
const FILES: &[(&str, &[&str])] = &[
    ("common", &[".c", ".h", ".S", "FLAGS"]),
    ("configs", &[".config"]),
    ("modules", &[".c", ".h", "Kbuild", "Makefile"]),
    ("patches", &[".patch"]),
    ("scripts", &[""]),
    ("uapi", &[".h"]),
];

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    // In the source tree `kernel` is a link, in a published crate a directory.
    let kernel = Path::new(&manifest).join("kernel").canonicalize();
    let kernel = kernel.expect("the kernel's sources are next to this program's");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", kernel.display());

    let mut names = vec!["Makefile".to_owned()];
    for (directory, endings) in FILES {
        collect(&kernel, directory, endings, &mut names);
    }
    names.sort();
    let mut code = String::from("&[\n");
    for name in &names {
        let path = kernel.join(name);
        let path = path.to_str().expect("the tree's path is UTF-8");
        writeln!(code, "({name:?}, include_bytes!({path:?}).as_slice()),").expect("text grows");
    }
    code.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets it");
    std::fs::write(Path::new(&out).join("kernel_files.rs"), code).expect("OUT_DIR is writable");
    compile_plugin(Path::new(&manifest), Path::new(&out));
}

/// Compiles the plugin that QEMU loads. This program does not call it.
#[expect(
    clippy::disallowed_methods,
    reason = "cc's own command links statically, which a plugin cannot be"
)]
fn compile_plugin(manifest: &Path, out: &Path) {
    let source = manifest.join("plugin/count_blocks.c");
    println!("cargo::rerun-if-changed={}", source.display());
    let compiler = cc::Build::new().get_compiler();
    let status = std::process::Command::new(compiler.path())
        .args([
            "-shared",
            "-fPIC",
            "-O2",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            "-o",
        ])
        .arg(out.join("count_blocks.so"))
        .arg(&source)
        .status();
    let is_done = status.expect("a C compiler is installed").success();
    assert!(is_done, "the plugin does not compile");
}

/// Collects the files below a directory whose names end with one of `endings`, as paths below
/// `kernel`.
fn collect(kernel: &Path, directory: &str, endings: &[&str], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(kernel.join(directory))
        .into_iter()
        .flatten()
    {
        let name = entry.expect("the tree can be read").file_name();
        let path = format!("{directory}/{}", name.to_str().expect("names are UTF-8"));
        let is_wanted = endings.iter().any(|ending| path.ends_with(ending));
        if kernel.join(&path).is_dir() {
            collect(kernel, &path, endings, found);
        } else if is_wanted && !path.ends_with(".mod.c") {
            found.push(path);
        }
    }
}
