//! Passes on where Cargo puts the programs that tests start.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    // TARGET/HOST/PROFILE/build/PACKAGE/out
    let programs = PathBuf::from(out).ancestors().nth(3).map(PathBuf::from);
    let programs = programs.expect("OUT_DIR is deep");
    let target = programs.ancestors().nth(2).expect("OUT_DIR is deep");
    println!("cargo::rustc-env=TOLL_PROGRAMS={}", programs.display());
    println!("cargo::rustc-env=TOLL_TARGET={}", target.display());
}
