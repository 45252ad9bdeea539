//! Compiles the BPF programs. Without clang it writes an empty object file, which stands for the
//! missing programs.

use std::path::Path;
use std::process::Command;

#[expect(
    clippy::disallowed_methods,
    reason = "cc compiles for this machine, and not for BPF"
)]
fn main() {
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    let object = Path::new(&out).join("count_calls.o");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::rerun-if-changed=bpf");
    let status = Command::new("clang")
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra",
        ])
        // Debugging information contains file names: make their paths the same on every
        // machine.
        .arg(format!("-ffile-prefix-map={manifest}=."))
        // Debian has the headers of <linux/types.h> in a directory of the architecture.
        .arg("-I/usr/include/x86_64-linux-gnu")
        .args([
            "-Werror",
            "-Wno-unused-function",
            "-c",
            "bpf/count_calls.c",
            "-o",
        ])
        .arg(&object)
        .status();
    match status {
        Ok(status) => assert!(status.success(), "bpf/count_calls.c compiles"),
        Err(error) => {
            println!("cargo::warning=cannot run clang: {error}; toll trace will use strace");
            // Installing clang changes this directory, which causes a rebuild.
            println!("cargo::rerun-if-changed=/usr/bin");
            std::fs::write(&object, []).expect("OUT_DIR is writable");
        }
    }
}
