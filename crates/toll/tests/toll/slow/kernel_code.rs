//! Checks the kernel parts with the kernel's own tools, if its source and a build of it are in the
//! cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use toll_host::environment::kernel;
use toll_system::paths;
use toll_testing::{has_program, probe, skip, source_tree};

/// Returns a part (a subdirectory) of the newest build tree of the pinned kernel whose part
/// contains this file.
fn newest(part: &str, file: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(paths::kernel_work().ok()?.path().ok()?.join("build")).ok()?;
    // Beside `toll-VERSION` there are the trees of toll-debug and of the user's own kernels.
    let is_pinned = |name: &str| {
        let version = name.strip_prefix("toll-");
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let trees = entries
        .flatten()
        .filter(|entry| is_pinned(&entry.file_name().to_string_lossy()));
    trees
        .map(|entry| entry.path().join(part))
        .filter(|tree| tree.join(file).exists())
        .max_by_key(|tree| tree.join(file).metadata().and_then(|m| m.modified()).ok())
}

/// Returns the patched source of the pinned kernel.
pub(crate) fn patched_source() -> Option<PathBuf> {
    newest("source", "scripts/checkpatch.pl")
}

/// Returns the patched source of the pinned kernel and its build.
fn built() -> Option<(PathBuf, PathBuf)> {
    super::guest::kernel("toll")?;
    let both = patched_source().zip(newest("objects", "vmlinux"));
    if both.is_none() {
        skip("no build of the pinned kernel is in the cache; run toll kernel build");
    }
    both
}

fn tool(name: &str, arguments: &[&Path]) {
    let output = Command::new(source_tree().join("tools").join(name))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn patches_module_and_selftests_pass_the_kernels_own_checks() {
    for program in ["perl", "sparse"] {
        if !has_program(program) {
            return skip(&format!(
                "{program} is missing; install the package {program}"
            ));
        }
    }
    if let Some((source, build)) = built() {
        tool("kernel-check", &[&source, &build]);
    }
}

#[test]
fn primes_are_counted_by_the_same_instructions_in_every_place() {
    let Some((_, build)) = built() else {
        return;
    };
    let mut files = vec![build.join("vmlinux"), probe()];
    for name in ["toll", "stock"] {
        let kernel = kernel::find(name).into_iter();
        let modules = kernel.flat_map(|kernel| kernel.modules);
        files.extend(modules.filter(|module| module.ends_with("toll_primes.ko")));
    }
    assert!(files.len() > 2, "{files:?}");
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    tool("same-code", &files);
}

/// Returns the functions and data that a module exports to the linker.
fn global_symbols(module: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["--defined-only", "--extern-only"])
        .arg(module)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", module.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').nth(2));
    // Kbuild and the linker script add these to every module.
    let of_every_module = ["init_module", "cleanup_module"];
    names
        .filter(|name| !of_every_module.contains(name) && !name.starts_with("__"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_devices_modules_can_be_linked_into_one_kernel() {
    let Some(kernel) = super::guest::kernel(toll_testing::any_kernel()) else {
        return;
    };
    let symbols = |name: &str| {
        let module = kernel.modules.iter().find(|module| module.ends_with(name));
        global_symbols(module.expect("the kernel has this module"))
    };
    let shared = symbols("tolldev.ko");
    assert!(shared.contains("tolldev_open"), "{shared:?}");
    let foreign: Vec<&String> = shared
        .iter()
        .filter(|name| !name.starts_with("tolldev_"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!(symbols("master.ko"), BTreeSet::new());
    assert_eq!(symbols("slave.ko"), BTreeSet::new());
}
