//! Kernels for guests.

use std::path::PathBuf;

/// Which kernel a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The project's own, small.
    Toll,
    /// The same with the kernel's checks of itself.
    Debug,
    /// The distribution's.
    Stock,
}

/// A kernel that is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Which one it is.
    pub variant: Variant,
    /// Its release (`uname -r`).
    pub release: String,
    /// The image to boot.
    pub image: PathBuf,
    /// The project's own modules, built for it.
    pub modules: Vec<PathBuf>,
    /// What must be inserted, in this order, before disks and ports are there.
    pub boot_modules: Vec<PathBuf>,
    /// What it was built from, as a hash.
    pub key: String,
    /// The source's package and version.
    pub source: String,
    /// The compiler that built it.
    pub compiler: String,
    /// Its patches, by name.
    pub patches: Vec<String>,
}
