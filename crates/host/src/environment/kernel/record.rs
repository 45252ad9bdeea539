//! The record of a kernel in the cache, `kernel.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::KernelName;

/// The machine that a kernel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Board {
    /// QEMU's microvm, which only has the virtio-mmio devices that the kernel's command line lists.
    /// This board boots in a third of the time.
    Microvm,
    /// A PC with ACPI and PCI, for distribution kernels.
    Pc,
}

/// A kernel that a guest can boot: the content of `kernel.json`. Paths are relative in the file and
/// absolute here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    pub name: KernelName,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The image to boot (bzImage).
    pub image: PathBuf,
    /// The configuration with which the kernel was built.
    pub config: PathBuf,
    /// This project's own modules, `.ko`.
    pub modules: Vec<PathBuf>,
    /// Modules that are inserted for each trial and removed after it.
    pub trial_modules: Vec<PathBuf>,
    /// Uncompressed modules that an initramfs must insert, in this order, before there is a disk or
    /// a console. Empty if they are built in.
    pub boot_modules: Vec<PathBuf>,
    pub board: Board,
    /// Whether the kernel checks itself (KASAN), and so takes several times as long.
    pub checks_itself: bool,
    /// The name of the kernel's cache entry: the kernel's name and a hash of everything that it was
    /// made from.
    pub key: String,
    /// A hash of this project's part in the kernel: configuration, patches, modules.
    pub recipe: String,
    /// Packages and their versions, such as `linux-source-6.12 6.12.117-1`.
    pub source: String,
    /// The compiler's own name and version.
    pub compiler: String,
    /// File names of the patches, in order.
    pub patches: Vec<String>,
    /// When the kernel was completed, RFC 3339 in UTC.
    pub built_at: String,
    /// The directory of the kernel's cache entry.
    #[serde(default)]
    pub directory: PathBuf,
}
