//! Compiles the programs that count in the kernel. Without clang there are none, and
//! an empty file says so.

use std::path::Path;
use std::process::Command;

#[expect(
    clippy::disallowed_methods,
    reason = "cc compiles for this machine, and not for BPF"
)]
fn main() {
    let out = std::env::var_os("OUT_DIR").expect("Cargo says where");
    let object = Path::new(&out).join("count_calls.o");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo says where");
    println!("cargo::rerun-if-changed=bpf");
    let status = Command::new("clang")
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra",
        ])
        // Its debugging information names files, by paths that are the same everywhere.
        .arg(format!("-ffile-prefix-map={manifest}=."))
        // Debian has the headers of <linux/types.h> in a directory of the machine's.
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
            println!("cargo::warning=toll trace will use strace, for lack of clang: {error}");
            // Where it will be installed.
            println!("cargo::rerun-if-changed=/usr/bin");
            std::fs::write(&object, []).expect("OUT_DIR takes files");
        }
    }
}
