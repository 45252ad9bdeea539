//! The record of a kernel in the cache, `kernel.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::KernelName;

/// The machine that a kernel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Board {
    /// QEMU's microvm, which only has virtio-mmio devices that the kernel's command line lists. It
    /// boots in a third of the time.
    Microvm,
    /// A PC with ACPI and PCI, for distribution kernels.
    Pc,
}

/// A kernel that a guest can boot: the content of `kernel.json`, with paths that
/// are relative there and absolute here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    pub name: KernelName,
    /// As `uname -r` prints it.
    pub release: String,
    /// The image to boot (bzImage).
    pub image: PathBuf,
    /// The configuration it was built with.
    pub config: PathBuf,
    /// This project's own modules, `.ko`.
    pub modules: Vec<PathBuf>,
    /// Modules that are inserted for each trial and removed after it.
    pub trial_modules: Vec<PathBuf>,
    /// Uncompressed modules that an initramfs must insert, in this order, before a disk or a
    /// console exists; empty if they are built in.
    pub boot_modules: Vec<PathBuf>,
    pub board: Board,
    /// Whether it checks itself (KASAN), and so takes several times as long.
    pub checks_itself: bool,
    /// The name of its cache entry: name and a hash of everything that it was made
    /// from.
    pub key: String,
    /// A hash of this project's part in it: configuration, patches, modules.
    pub recipe: String,
    /// Packages and their versions, such as `linux-source-6.12 6.12.117-1`.
    pub source: String,
    /// The compiler's own name and version.
    pub compiler: String,
    /// File names of the patches, in order.
    pub patches: Vec<String>,
    /// When it was completed, RFC 3339 in UTC.
    pub built_at: String,
    /// Its cache entry.
    #[serde(default)]
    pub directory: PathBuf,
}
