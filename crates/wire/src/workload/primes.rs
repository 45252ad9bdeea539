//! The primes workload: the same count of primes, computed in different places.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::levels::{count, from_levels};
use crate::work_request::WorkRequest;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrimesRequest {
    pub placement: PrimesPlacement,
    /// Number of values, and the largest value, from 2 to [`PRIMES_N_MAX`]. Each value is at least
    /// 2.
    #[serde(deserialize_with = "count::<2, { PRIMES_N_MAX as u64 }, _, _>")]
    pub n: u32,
    pub random: RandomSource,
    pub printing: Printing,
    pub allocation: PrimesAllocation,
    pub clock: PrimesClock,
    #[serde(rename = "@seed")]
    pub seed: u64,
}

impl Default for PrimesRequest {
    fn default() -> Self {
        Self {
            placement: PrimesPlacement::User,
            // The middle of the published experiment.
            n: 1000,
            random: RandomSource::Seeded,
            printing: Printing::None,
            allocation: PrimesAllocation::Usual,
            clock: PrimesClock::Monotonic,
            seed: 0,
        }
    }
}

/// Upper limit of the number of values and of each value (`TOLL_PRIMES_N_MAX`).
pub const PRIMES_N_MAX: u32 = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimesPlacement {
    User,
    /// In a process started for the count, which prints `n` and the count, as published. The
    /// published clock is [`PrimesClock::Inside`]; the other clocks measure the process from its
    /// start to its end.
    UserProcess,
    /// In system call 549, as published: it takes a pointer to `n`, which the kernel prints, and
    /// returns the count.
    SyscallPublished,
    /// In system call 550, which takes all parameters.
    Syscall,
    /// In the driver `toll_primes`, through an ioctl; guests only.
    Module,
    /// During the insertion of the module, which prints `n` and the count, as published; guests
    /// only.
    ModuleLoad,
    /// In a BPF program, over numbers that the probe has drawn into its map.
    Bpf,
}

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomSource {
    /// The same generator with the same seed in all places.
    Seeded,
    /// The kernel's generator, in one call for all values: `getrandom` or `get_random_bytes`.
    Bulk,
    /// One call per value: `rand` in user space, `get_random_u32` in the kernel.
    Each,
}

/// Whether the count is printed inside the timed region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Printing {
    None,
    /// Yes: `printf` and `fflush` to a pipe in user space, `printk` in the
    /// kernel.
    Inside,
}

/// How the array of numbers is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimesAllocation {
    /// The usual allocator: `malloc` in user space, `kmalloc` in the kernel.
    Usual,
    /// `kmalloc`: physically contiguous.
    Kmalloc,
    /// `vmalloc`: page by page.
    Vmalloc,
    /// `kvmalloc`: `kmalloc` if possible, otherwise `vmalloc`.
    Kvmalloc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimesClock {
    /// The probe's clock, around the whole operation.
    Monotonic,
    /// `gettimeofday` around the whole operation, in microseconds.
    Gettimeofday,
    /// Clock reads in the place that counts, without the way there and back. The time includes
    /// allocating, drawing and counting. In the published program and module, it includes
    /// everything from before `n` is printed until the count has been printed.
    Inside,
}

impl WorkRequest for PrimesRequest {
    fn read(levels: &[(&str, &str)]) -> Result<Self, String> {
        from_levels(levels.iter().copied())
    }

    fn place(&mut self, _directory: &Path, seed: u64) {
        self.seed = seed;
    }
}
