//! Events of single vendors that stand in for generic ones that the kernel
//! does not have for their CPUs.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorEvent {
    pub name: &'static str,
    pub config: u64,
}

/// This CPU's event for a generic counter, if a documented one counts the same.
pub fn event(name: &str) -> Option<VendorEvent> {
    static CPUINFO: OnceLock<String> = OnceLock::new();
    let text = CPUINFO.get_or_init(|| std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
    event_of(text, name)
}

fn event_of(cpuinfo: &str, name: &str) -> Option<VendorEvent> {
    let field = |name: &str| {
        let line = cpuinfo
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let family: u32 = field("cpu family")?.parse().ok()?;
    // Zen is family 17h and later. The kernel's table for it
    // (amd_hw_cache_event_ids_f17h in arch/x86/events/amd/core.c) has no writes
    // to L1D; PMCx029, unit mask 02h, counts stores as they are dispatched
    // (Processor Programming Reference for family 17h, "LS Dispatch"). It tells
    // no misses of the data TLB by writes apart from those by reads.
    match (field("vendor_id")?, name) {
        ("AuthenticAMD", "l1d-write-accesses") if family >= 0x17 => Some(VendorEvent {
            name: "ls_dispatch.store_dispatch",
            config: 0x0229,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZEN: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 1\n";

    #[test]
    fn zen_counts_stores_by_an_event_of_its_own() {
        let event = event_of(ZEN, "l1d-write-accesses").unwrap();
        assert_eq!(event.config, 0x0229);
        assert_eq!(event_of(ZEN, "dtlb-write-misses"), None);
    }

    #[test]
    fn other_cpus_have_no_stand_in() {
        let intel = ZEN.replace("AuthenticAMD", "GenuineIntel");
        let bulldozer = ZEN.replace("25", "21");
        for text in [&intel, &bulldozer, ""] {
            assert_eq!(event_of(text, "l1d-write-accesses"), None, "{text:?}");
        }
    }
}
