//! The boot workload: the cost of booting this guest, and its kernel's memory.
//!
//! The init reads the clock when it starts, and slab memory when the guest is
//! ready. It passes both values on to the trials, which are later processes.

use std::fs::read_to_string;

use toll_wire::{BootRequest, Failure, Request, Sample, TrialData};

use crate::failure::{self, OrFail};
use crate::meter::put;
use crate::proc_file;
use crate::trial::repeat;

/// Environment variable in which the init passes [`Booted`] to a trial.
pub const VARIABLE: &str = "TOLL_BOOTED";

/// Readings that the init took during the boot.
#[derive(Debug, Clone, Copy)]
pub struct Booted {
    /// Time until the init started, or instructions where the clock counts them. `None` if it is
    /// unknown how much of the count was idle time.
    pub start_ns: Option<u64>,
    /// Slab memory when the guest was ready.
    pub slab_bytes: u64,
}

impl Booted {
    pub fn to_text(self) -> String {
        let start = self.start_ns.map_or("-".into(), |ns| ns.to_string());
        format!("{start} {}", self.slab_bytes)
    }

    fn read(text: &str) -> Option<Self> {
        let (start, slab) = text.split_once(' ')?;
        let start_ns = match start {
            "-" => None,
            ns => Some(ns.parse().ok()?),
        };
        Some(Self {
            start_ns,
            slab_bytes: slab.parse().ok()?,
        })
    }
}

pub fn run(request: &Request, boot: &BootRequest) -> Result<TrialData, Failure> {
    let variable = std::env::var(VARIABLE).ok();
    let Some(booted) = variable.as_deref().and_then(Booted::read) else {
        return Err(failure::unsupported(
            "cannot measure a boot: only guests are booted for a trial; add --guest",
        ));
    };
    let start_ns = booted.start_ns.ok_or_else(|| {
        failure::unsupported(
            "cannot count the instructions of a boot: the CPU was idle meanwhile, and the kernel \
             does not say for how long; use an older kernel with CONFIG_NO_HZ_IDLE",
        )
    })?;
    let map = read_to_string("/proc/iomem").instrument_to("read /proc/iomem")?;
    repeat(request.warmup_iterations, request.iterations, || {
        let mut sample = Sample::default();
        put(&mut sample, "boot_duration_ns", start_ns as f64);
        put(&mut sample, "kernel_image_bytes", boot.image_bytes as f64);
        put(&mut sample, "slab_bytes", booted.slab_bytes as f64);
        for (metric, parts) in PARTS {
            put(&mut sample, metric, held(&map, parts) as f64);
        }
        Ok(sample)
    })
}

/// Parts of the kernel in memory, as `/proc/iomem` names them.
const PARTS: [(&str, &[&str]); 2] = [
    ("kernel_code_bytes", &["Kernel code"]),
    (
        "kernel_data_bytes",
        &["Kernel rodata", "Kernel data", "Kernel bss"],
    ),
];

/// Sums the bytes of `parts` in lines such as `  01000000-017fffff : Kernel code`.
fn held(map: &str, parts: &[&str]) -> u64 {
    let bytes = |line: &str| {
        let (range, name) = line.trim().split_once(" : ")?;
        let (first, last) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        let bytes = address(last)?
            .checked_sub(address(first)?)?
            .checked_add(1)?;
        parts.contains(&name).then_some(bytes)
    };
    map.lines().filter_map(bytes).sum()
}

/// Returns the kernel's slab memory in bytes (proc_meminfo(5)).
pub fn slab_bytes() -> Option<u64> {
    proc_file::bytes(&read_to_string("/proc/meminfo").ok()?, "Slab")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_kernel_are_added_up() {
        let map = "00100000-0fffffff : System RAM\n  01000000-017fffff : Kernel code\n  \
                   01800000-018fffff : Kernel rodata\n  01a00000-01a00fff : Kernel bss\n";
        assert_eq!(held(map, PARTS[0].1), 8 << 20);
        assert_eq!(held(map, PARTS[1].1), (1 << 20) + 4096);
    }

    #[test]
    fn what_the_init_says_is_read_as_it_was() {
        let booted = Booted {
            start_ns: Some(7),
            slab_bytes: 9,
        };
        let read = |booted: Booted| Booted::read(&booted.to_text()).unwrap();
        assert_eq!(
            (read(booted).start_ns, read(booted).slab_bytes),
            (Some(7), 9)
        );
        let start_ns = None;
        assert_eq!(read(Booted { start_ns, ..booted }).start_ns, None);
        assert!(Booted::read("7").is_none());
        assert!(slab_bytes().unwrap() > 0);
    }
}
