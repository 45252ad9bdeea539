//! Enforces the crate's invariant by reading its sources: no input, no output, no clock, no
//! environment, no dependency.

use std::path::Path;

#[test]
fn no_source_reaches_outside_its_arguments() {
    const BANNED: [&str; 9] = [
        "std::fs",
        "std::io",
        "std::env",
        "std::time",
        "std::net",
        "std::process",
        "std::thread",
        "static mut",
        "unsafe",
    ];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut read = 0;
    for entry in std::fs::read_dir(&sources).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for banned in BANNED {
            assert!(!text.contains(banned), "{banned} in {}", path.display());
        }
        read += 1;
    }
    assert!(read > 10, "only {read} sources in {}", sources.display());
}

#[test]
fn the_manifest_names_no_dependency() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    assert!(text.contains("[dev-dependencies]"));
    assert!(!text.contains("[dependencies") && !text.contains("[build-dependencies"));
}
