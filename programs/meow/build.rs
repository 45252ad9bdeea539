//! Links `meow` to fixed addresses.
//!
//! A program that can be loaded anywhere first relocates itself, which touches pages
//! that a short copy never needs. The probe stays relocatable, because its addresses
//! should vary among trials.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bin=meow=-no-pie");
    println!("cargo::rustc-link-arg-bin=meow=-static");
}
