//! What a guest is to be.

use std::path::PathBuf;

use crate::environment::kernel::Kernel;

/// What a guest is to be.
#[derive(Debug, Clone)]
pub struct GuestSpec {
    /// The kernel that it runs.
    pub kernel: Kernel,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its virtual CPUs; 1 under [`Accelerator::Icount`] whatever stands here.
    pub vcpus: u32,
    /// Its swap in bytes; 0 for none.
    pub swap_bytes: u64,
    /// Put behind the kernel's command line; of two settings of one thing the
    /// last holds.
    pub command_line: String,
    /// What executes its instructions.
    pub accelerator: AcceleratorChoice,
    /// Seed of what QEMU makes random, for [`Accelerator::Icount`].
    pub seed: u64,
    /// The static probe program, which becomes its init.
    pub probe: PathBuf,
    /// Further files: the path on the host, and the path in the guest.
    pub extra_files: Vec<(PathBuf, PathBuf)>,
}

/// What is to execute a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AcceleratorChoice {
    /// KVM if a guest boots under it on this machine, else TCG.
    Auto,
    /// The CPU itself; a guest that does not boot under it fails.
    Kvm,
    /// QEMU's translator, a thread for each virtual CPU.
    Tcg,
    /// QEMU's translator with a clock that counts instructions.
    Icount,
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accelerator {
    /// The CPU itself. Times are times of a virtual machine.
    Kvm,
    /// QEMU's translator. Counts and results mean what they say; times are those
    /// of an emulation.
    Tcg,
    /// QEMU's translator, one nanosecond of the guest being one instruction.
    Icount,
}

impl AcceleratorChoice {
    /// The words for all of them.
    pub const WORDS: [&'static str; 4] = ["auto", "kvm", "tcg", "icount"];

    /// The choice that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "kvm" => Self::Kvm,
            "tcg" => Self::Tcg,
            "icount" => Self::Icount,
            _ => return None,
        })
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
        }
    }
}

impl Accelerator {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
        }
    }

    /// Whether a duration in the guest is the duration of something real.
    pub fn has_meaningful_times(self) -> bool {
        self == Self::Kvm
    }
}
