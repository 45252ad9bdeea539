//! Activity of reclaim during a timed region, from `/proc/vmstat`
//! (proc_vmstat(5)).
//!
//! All counts are of the whole system: the kernel counts these events per CPU,
//! not per process. On a machine where nothing else runs, such as a guest of
//! our own, the work and the kernel itself cause them.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use toll_wire::Sample;

use crate::buffer::page_bytes;
use crate::meter::put;

/// Metrics, and the counts that add up to each. Counts of pages are converted to bytes where the
/// metric is in bytes.
///
/// The kernel splits scanned pages by reclaimer, and also into anonymous and file pages
/// (mm/vmscan.c). Only one of the two splits may be added up. A kernel does not count reclaimers
/// that it does not have.
const SOURCES: &[(&str, &[&str])] = &[
    ("swapped_in_bytes", &["pswpin"]),
    ("swapped_out_bytes", &["pswpout"]),
    ("system_major_faults", &["pgmajfault"]),
    ("refaults_anonymous", &["workingset_refault_anon"]),
    ("refaults_file", &["workingset_refault_file"]),
    (
        "pages_scanned",
        &[
            "pgscan_kswapd",
            "pgscan_direct",
            "pgscan_khugepaged",
            "pgscan_proactive",
        ],
    ),
    (
        "pages_reclaimed",
        &[
            "pgsteal_kswapd",
            "pgsteal_direct",
            "pgsteal_khugepaged",
            "pgsteal_proactive",
        ],
    ),
    ("pages_activated", &["pgactivate"]),
    ("pages_deactivated", &["pgdeactivate"]),
    // Decisions of folio_check_references on each page that reclaim looked at,
    // on a kernel that is patched to count them.
    ("reclaim_decision_reclaim", &["reclaim_decision_reclaim"]),
    (
        "reclaim_decision_reclaim_clean",
        &["reclaim_decision_reclaim_clean"],
    ),
    ("reclaim_decision_keep", &["reclaim_decision_keep"]),
    ("reclaim_decision_activate", &["reclaim_decision_activate"]),
    (
        "reclaim_activate_overruled",
        &["reclaim_activate_overruled"],
    ),
];

pub struct VmStat(BTreeMap<&'static str, u64>);

impl VmStat {
    /// Reads the totals; leaves out those that the kernel does not have.
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
        let totals = SOURCES.iter().filter_map(|(metric, names)| {
            let known = names.iter().filter_map(|name| counts.get(name));
            Some((*metric, known.copied().reduce(u64::wrapping_add)?))
        });
        Self(totals.collect())
    }

    /// Adds the events since `before` to a sample; leaves out those that the
    /// kernel does not report.
    pub fn add_since(&self, before: &Self, sample: &mut Sample) {
        for (metric, after) in &self.0 {
            let Some(before) = before.0.get(metric) else {
                continue;
            };
            let unit = if metric.ends_with("_bytes") {
                page_bytes() as u64
            } else {
                1
            };
            // A total never falls; it wraps only after centuries.
            let difference = after.saturating_sub(*before) * unit;
            put(sample, metric, difference as f64);
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
        let before = "pgscan_kswapd 1\npgscan_direct 2\nreclaim_activate_overruled 4\n";
        let after = "pgscan_kswapd 11\npgscan_direct 22\npgscan_anon 30\npgscan_file 5\n\
                     pgscan_direct_throttle 9\nreclaim_activate_overruled 9\n";
        let metrics = difference(before, after);
        assert_eq!(metrics["pages_scanned"], 30.0);
        assert_eq!(metrics["reclaim_activate_overruled"], 5.0);
    }

    #[test]
    fn this_kernel_tells_its_major_faults() {
        let mut sample = Sample::default();
        VmStat::now().add_since(&VmStat::now(), &mut sample);
        let metrics = sample.metrics;
        assert!(metrics.contains_key("system_major_faults"), "{metrics:?}");
    }
}
