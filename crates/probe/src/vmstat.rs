//! What reclaim did during a timed region, from `/proc/vmstat` (proc_vmstat(5)).
//!
//! All of it is of the whole system: the kernel counts these events a CPU, not
//! a process. On a machine where nothing else runs, such as a guest of our own,
//! that is the work's and the kernel's own.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use toll_wire::Sample;

use crate::buffer::page_bytes;
use crate::meter::put;

/// A metric, the counts that add up to it, and whether they count pages that
/// are told as bytes.
struct Source {
    metric: &'static str,
    counts: &'static [&'static str],
    in_bytes: bool,
}

const fn count(metric: &'static str, counts: &'static [&'static str]) -> Source {
    Source {
        metric,
        counts,
        in_bytes: false,
    }
}

const fn bytes(metric: &'static str, counts: &'static [&'static str]) -> Source {
    Source {
        metric,
        counts,
        in_bytes: true,
    }
}

/// Who scanned is a split of what was scanned, and so are anonymous and file
/// pages (mm/vmscan.c), so that only one of the two may be added up. Reclaimers
/// that a kernel has not are not counted by it.
const SOURCES: &[Source] = &[
    bytes("swapped_in_bytes", &["pswpin"]),
    bytes("swapped_out_bytes", &["pswpout"]),
    count("system_major_faults", &["pgmajfault"]),
    count("refaults_anonymous", &["workingset_refault_anon"]),
    count("refaults_file", &["workingset_refault_file"]),
    count(
        "pages_scanned",
        &[
            "pgscan_kswapd",
            "pgscan_direct",
            "pgscan_khugepaged",
            "pgscan_proactive",
        ],
    ),
    count(
        "pages_reclaimed",
        &[
            "pgsteal_kswapd",
            "pgsteal_direct",
            "pgsteal_khugepaged",
            "pgsteal_proactive",
        ],
    ),
    count("pages_activated", &["pgactivate"]),
    count("pages_deactivated", &["pgdeactivate"]),
    // What folio_check_references said of each page that reclaim looked at, on
    // a kernel that is patched to count it.
    count("reclaim_decision_reclaim", &["reclaim_decision_reclaim"]),
    count(
        "reclaim_decision_reclaim_clean",
        &["reclaim_decision_reclaim_clean"],
    ),
    count("reclaim_decision_keep", &["reclaim_decision_keep"]),
    count("reclaim_decision_activate", &["reclaim_decision_activate"]),
    count(
        "reclaim_activate_overruled",
        &["reclaim_activate_overruled"],
    ),
];

pub struct VmStat(BTreeMap<&'static str, u64>);

impl VmStat {
    /// Reads the totals; those that the kernel has not are left out.
    pub fn now() -> Self {
        Self::parse(&read_to_string("/proc/vmstat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let counts: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| {
                let (name, count) = line.split_once(' ')?;
                Some((name, count.trim().parse().ok()?))
            })
            .collect();
        let total = |source: &Source| {
            let known = source.counts.iter().filter_map(|name| counts.get(name));
            known.copied().reduce(u64::wrapping_add)
        };
        let totals = SOURCES
            .iter()
            .filter_map(|source| Some((source.metric, total(source)?)));
        Self(totals.collect())
    }

    /// Adds what happened since `before` to a sample; what the kernel does not
    /// tell is absent.
    pub fn add_since(&self, before: &Self, sample: &mut Sample) {
        for source in SOURCES {
            let Some((after, before)) = self.0.get(source.metric).zip(before.0.get(source.metric))
            else {
                continue;
            };
            let unit = if source.in_bytes {
                page_bytes() as u64
            } else {
                1
            };
            // A total never falls; it wraps only after centuries.
            let difference = after.saturating_sub(*before) * unit;
            put(sample, source.metric, difference as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(before: &str, after: &str) -> BTreeMap<String, f64> {
        let mut sample = Sample::default();
        VmStat::parse(after).add_since(&VmStat::parse(before), &mut sample);
        sample.metrics
    }

    #[test]
    fn what_the_kernel_has_not_is_absent_and_not_zero() {
        let metrics = difference("pswpin 3\n", "pswpin 5\npgmajfault 7\n");
        let page = page_bytes() as f64;
        assert_eq!(
            metrics,
            BTreeMap::from([("swapped_in_bytes".to_owned(), 2.0 * page)])
        );
        assert!(difference("", "").is_empty());
    }

    #[test]
    fn reclaimers_add_up_and_their_other_splits_do_not() {
        let before = "pgscan_kswapd 1\npgscan_direct 2\n";
        let after = "pgscan_kswapd 11\npgscan_direct 22\npgscan_anon 30\npgscan_file 5\n\
                     pgscan_direct_throttle 9\n";
        assert_eq!(difference(before, after)["pages_scanned"], 30.0);
    }

    #[test]
    fn decisions_are_told_by_a_kernel_that_counts_them() {
        let before = "reclaim_activate_overruled 4\n";
        let after = "reclaim_activate_overruled 9\n";
        assert_eq!(difference(before, after)["reclaim_activate_overruled"], 5.0);
    }

    #[test]
    fn this_kernel_tells_its_major_faults() {
        let mut sample = Sample::default();
        VmStat::now().add_since(&VmStat::now(), &mut sample);
        let metrics = sample.metrics;
        assert!(metrics.contains_key("system_major_faults"), "{metrics:?}");
    }
}
