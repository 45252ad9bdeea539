//! Compiles the prime-counting code that a program, the kernel and a module
//! share, with the flags that give the same machine code in all three.

use std::path::Path;

fn main() {
    // Read at run time: the tree may have moved since this program was built.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    // A symbolic link in the tree, a directory in a published crate.
    let shared = Path::new(&manifest).join("kernel-common").canonicalize();
    let shared = shared.expect("the shared sources are in kernel-common");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", shared.display());
    let mut build = cc::Build::new();
    build.include(&shared);
    build.file(shared.join("count_primes_core.c"));
    // The flags match the guest's kernel, which is built for x86-64.
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        let flags = std::fs::read_to_string(shared.join("FLAGS")).expect("FLAGS can be read");
        let is_flag = |line: &&str| !line.is_empty() && !line.starts_with('#');
        for flag in flags.lines().map(str::trim).filter(is_flag) {
            build.flag(flag);
        }
        build.file(shared.join("return_thunk.S"));
    } else {
        build.flag("-O2");
    }
    build.compile("toll_count_primes");
}
