//! How much of a mapping is in memory, and the process's peak resident set.

use std::fs;

use toll_wire::Failure;

use crate::failure::{self, OrFail};

/// Residency of one mapping according to `/proc/self/smaps`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residency {
    pub resident: u64,
    pub huge: u64,
}

impl Residency {
    /// Reads the mapping around an address. Counts page by page, unlike the
    /// totals of a process, which the kernel updates in batches per CPU.
    pub fn around(address: usize) -> Result<Self, Failure> {
        let text = fs::read_to_string("/proc/self/smaps").instrument_by(
            "tell how much of the buffer is in memory",
            "use a kernel with CONFIG_PROC_PAGE_MONITOR",
        )?;
        parse(&text, address).ok_or_else(|| {
            failure::instrument(
                "cannot tell how much of the buffer is in memory: it is not in /proc/self/smaps; \
                 use a kernel with CONFIG_PROC_PAGE_MONITOR",
            )
        })
    }
}

fn parse(smaps: &str, address: usize) -> Option<Residency> {
    let mut lines = smaps.lines();
    lines.find(|line| range(line).is_some_and(|range| range.contains(&address)))?;
    let mut found = Residency::default();
    for line in lines.take_while(|line| range(line).is_none()) {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let Some(kilobytes) = rest.trim().strip_suffix(" kB") else {
            continue;
        };
        let bytes = kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)?;
        match name {
            // Pages from the reserve are not in Rss (proc_pid_smaps(5)).
            "Private_Hugetlb" | "Shared_Hugetlb" => {
                found.resident += bytes;
                found.huge += bytes;
            }
            "Rss" => found.resident += bytes,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => found.huge += bytes,
            _ => {}
        }
    }
    Some(found)
}

/// Returns the addresses of a mapping, from its first line.
fn range(line: &str) -> Option<std::ops::Range<usize>> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Resets the peak resident set of this process to the present one, so that the next reading covers
/// only what follows. Returns whether that succeeded.
pub fn reset_peak() -> bool {
    // 5 resets the peak and nothing else (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use toll_wire::HugePages;

    use super::*;
    use crate::workloads::memory::{Backing, Region};

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
Rss:                2052 kB\n\
AnonHugePages:      2048 kB\n\
Private_Hugetlb:       0 kB\n\
VmFlags: rd wr mr\n\
7f0000400000-7f0000800000 rw-p 00000000 00:0f 123 /anon_hugepage (deleted)\n\
Rss:                   0 kB\n\
Private_Hugetlb:    4096 kB\n";

    #[test]
    fn the_mapping_around_an_address_is_read_and_no_other() {
        let first = parse(SMAPS, 0x7f00_0000_1000).unwrap();
        assert_eq!((first.resident, first.huge), (2052 << 10, 2048 << 10));
        let second = parse(SMAPS, 0x7f00_0040_0000).unwrap();
        assert_eq!((second.resident, second.huge), (4096 << 10, 4096 << 10));
        assert_eq!(parse(SMAPS, 0x7f00_0080_0000), None);
        assert_eq!(parse("", 0), None);
    }

    #[test]
    fn touched_pages_are_resident_and_others_are_not() {
        // A file mapping, because other tests map anonymous memory next to it.
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 << 20).unwrap();
        let backing = Backing::Shared(file.as_fd());
        let region = Region::map(backing, 16 << 20, HugePages::None, false).unwrap();
        assert_eq!(Residency::around(region.address()).unwrap().resident, 0);
        region.part(0, 1).write(0, 1);
        let found = Residency::around(region.address()).unwrap().resident;
        assert!((1..16 << 20).contains(&found), "{found}");
    }
}
