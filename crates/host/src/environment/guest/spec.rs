//! The specification of a guest.

use std::path::PathBuf;

use toll_wire::guest::CountedCommand;

use crate::environment::kernel::Kernel;
use crate::spec::guest::GuestAccelerator;

/// Specifies a guest.
#[derive(Debug, Clone)]
pub struct GuestSpec {
    pub kernel: Kernel,
    pub memory_bytes: u64,
    /// The guest's number of virtual CPUs; [`Accelerator::Icount`] always has 1.
    pub vcpus: u32,
    /// The guest's swap in bytes; 0 for none.
    pub swap_bytes: u64,
    /// Text that is appended to the kernel's command line, where the last of two conflicting
    /// settings takes effect.
    pub command_line: String,
    pub accelerator: AcceleratorChoice,
    /// Seed of QEMU's random numbers, for [`Accelerator::Icount`].
    pub seed: u64,
    /// The static probe program, which becomes the guest's init.
    pub probe: PathBuf,
    /// Further files: the path of each on the host, and its path in the guest.
    pub extra_files: Vec<(PathBuf, PathBuf)>,
    /// Whether the guest has a host directory over 9p, which [`super::GuestDisk::share`] makes.
    pub has_shared_directory: bool,
    /// The command whose instructions the guest counts, instead of serving trials.
    pub counted: Option<CountedCommand>,
    /// Whether the instructions of trials are counted by function, under
    /// [`Accelerator::Icount`].
    pub counts_functions: bool,
}

impl GuestSpec {
    /// Whether QEMU loads the plugin that counts.
    pub(super) fn has_plugin(&self, accelerator: Accelerator) -> bool {
        accelerator == Accelerator::Icount && (self.counts_functions || self.counted.is_some())
    }

    /// Specifies a guest with one CPU, no swap, and the memory that distribution kernels
    /// need.
    pub fn new(kernel: Kernel, probe: PathBuf) -> Self {
        Self {
            kernel,
            memory_bytes: 512 << 20,
            vcpus: 1,
            swap_bytes: 0,
            command_line: String::new(),
            accelerator: AcceleratorChoice::Auto,
            seed: 1,
            probe,
            extra_files: Vec::new(),
            has_shared_directory: false,
            counted: None,
            counts_functions: false,
        }
    }
}

/// The choice of what executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorChoice {
    /// KVM if a guest boots under it on this machine, else TCG.
    Auto,
    /// This accelerator; a guest that does not boot under it fails.
    Only(Accelerator),
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The CPU itself. Measured times are valid for a virtual machine.
    Kvm,
    /// QEMU's translator, with a thread for each virtual CPU. Counts and results are meaningful;
    /// times only describe the emulation.
    Tcg,
    /// QEMU's translator, in which each instruction takes one nanosecond of the guest's time.
    Icount,
}

impl From<GuestAccelerator> for AcceleratorChoice {
    fn from(named: GuestAccelerator) -> Self {
        match named {
            GuestAccelerator::Auto => Self::Auto,
            GuestAccelerator::Kvm => Self::Only(Accelerator::Kvm),
            GuestAccelerator::Tcg => Self::Only(Accelerator::Tcg),
            GuestAccelerator::Icount => Self::Only(Accelerator::Icount),
        }
    }
}

impl Accelerator {
    pub fn word(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
        }
    }

    /// Whether a duration in the guest is a real duration.
    pub fn has_meaningful_times(self) -> bool {
        self == Self::Kvm
    }
}
