//! Checks whether this machine has the memory that trials ask for.

use std::fs::read_to_string;

/// Returns why this machine cannot provide a buffer of `bytes` bytes in a kind of pages; `None` if
/// it can. `huge_pages` is a value of the parameter of that name. If the kernel does not report how
/// much memory is available, the trial will show whether it suffices.
pub fn memory_obstacle(bytes: u64, huge_pages: &str) -> Option<String> {
    let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
    match huge_pages {
        "hugetlb" => reserve_obstacle(&meminfo, bytes),
        "madvise" => {
            let path = "/sys/kernel/mm/transparent_hugepage/enabled";
            let setting = read_to_string(path).ok();
            transparent_obstacle(setting.as_deref()).or_else(|| space_obstacle(&meminfo, bytes))
        }
        _ => space_obstacle(&meminfo, bytes),
    }
}

/// Returns "yes" if huge pages are available here, or else why they are not.
pub(super) fn huge_pages(kind: &str) -> Result<String, String> {
    match memory_obstacle(1, kind) {
        Some(reason) => Err(reason),
        None => Ok("yes".into()),
    }
}

fn space_obstacle(meminfo: &str, bytes: u64) -> Option<String> {
    // Memory that needs swap is available, too: a paged buffer is slow, but possible.
    let available = field(meminfo, "MemAvailable")?
        .checked_add(field(meminfo, "SwapFree").unwrap_or(0))?
        .checked_mul(1024)?;
    (bytes > available).then(|| {
        format!(
            "{} MiB of memory are needed, but {} MiB are available; free some, or use a smaller \
             buffer",
            bytes >> 20,
            available >> 20
        )
    })
}

fn reserve_obstacle(meminfo: &str, bytes: u64) -> Option<String> {
    let reserve = || {
        let page = field(meminfo, "Hugepagesize")?.checked_mul(1024)?;
        Some((field(meminfo, "HugePages_Free")?, page))
    };
    let Some((free, page_bytes)) = reserve().filter(|(_, page_bytes)| *page_bytes > 0) else {
        return Some("this kernel has no hugetlb pages; use `huge_pages = \"madvise\"`".into());
    };
    let needed = bytes.div_ceil(page_bytes);
    (needed > free).then(|| {
        format!(
            "{needed} reserved huge pages are needed, but {free} are free; \
             reserve them in /proc/sys/vm/nr_hugepages"
        )
    })
}

fn transparent_obstacle(setting: Option<&str>) -> Option<String> {
    match setting {
        None => {
            Some("this kernel has no transparent huge pages; use `huge_pages = \"none\"`".into())
        }
        Some(setting) if setting.contains("[never]") => Some(
            "transparent huge pages are switched off; \
             write madvise to /sys/kernel/mm/transparent_hugepage/enabled"
                .into(),
        ),
        Some(_) => None,
    }
}

/// Reads a number from `/proc/meminfo`, in the unit given there.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let value = super::inspect::field(meminfo, name)?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal: 9000 kB\nMemAvailable:   4096 kB\nSwapFree:  1024 kB\n\
        HugePages_Total:       4\nHugePages_Free:        3\nHugepagesize:       2048 kB\n";

    #[test]
    fn a_buffer_fits_in_memory_and_swap_together() {
        assert_eq!(space_obstacle(MEMINFO, 5 << 20), None);
        let reason = space_obstacle(MEMINFO, (5 << 20) + 1).unwrap();
        assert!(reason.contains("5 MiB are available"), "{reason}");
        assert_eq!(space_obstacle("", u64::MAX), None);
    }

    #[test]
    fn reserved_pages_are_counted_whole() {
        assert_eq!(reserve_obstacle(MEMINFO, 6 << 20), None);
        let reason = reserve_obstacle(MEMINFO, (6 << 20) + 1).unwrap();
        assert!(reason.starts_with("4 reserved huge pages"), "{reason}");
        assert!(reserve_obstacle("", 1).is_some());
    }

    #[test]
    fn transparent_pages_are_there_unless_switched_off() {
        assert_eq!(transparent_obstacle(Some("always [madvise] never\n")), None);
        for setting in [None, Some("always madvise [never]\n")] {
            assert!(transparent_obstacle(setting).is_some(), "{setting:?}");
        }
    }
}
